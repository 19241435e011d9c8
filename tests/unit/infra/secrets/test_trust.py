"""The file of `harness.ca_bundle`, and the bundles that pods trust."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

import pytest

from jr2.errors import StepFailed
from jr2_infra.secrets import trust
from jr2_infra.secrets.certificates import Certificates, Issued


@pytest.fixture(scope="module")
def corporate() -> Issued:
    return Certificates().authority("corp", ["corp.example"])


def printed(root: Path, given: str) -> str:
    with pytest.raises(StepFailed) as raised:
        trust.read_bundle(root, given)
    return raised.value.printed


def test_no_bundle(tmp_path: Path) -> None:
    assert trust.read_bundle(tmp_path, None) is None
    assert trust.bundles(None, None) == {}


def test_the_certificates_of_the_file_and_nothing_around_them(
    tmp_path: Path, corporate: Issued
) -> None:
    text = "# the corporate root\r\n" + corporate.certificate.replace("\n", "\r\n") + "trailing"
    (tmp_path / "ca.crt").write_bytes(text.encode() + corporate.certificate.encode())

    assert trust.read_bundle(tmp_path, "ca.crt") == corporate.certificate * 2


def test_what_is_refused(tmp_path: Path, corporate: Issued) -> None:
    folder = tmp_path / "inst"
    folder.mkdir()
    cannot = 'error: harness.ca_bundle "{}" cannot be used: {}'
    path = folder / "ca.crt"
    assert printed(folder, "ca.crt") == (
        f'error: harness.ca_bundle "ca.crt" cannot be read (ENOENT): {path}'
    )
    (tmp_path / "ca.crt").write_text(corporate.certificate)
    outside = f"{tmp_path / 'ca.crt'} is outside the Instance folder, whose part it must be"
    assert printed(folder, "../ca.crt") == cannot.format("../ca.crt", outside)
    (folder / "link.crt").symlink_to(tmp_path / "ca.crt")
    assert printed(folder, "link.crt") == cannot.format("link.crt", outside)
    path.write_text("nothing")
    assert printed(folder, "ca.crt") == cannot.format(
        "ca.crt", f"{path} holds no certificate in PEM"
    )
    path.write_text(corporate.certificate + corporate.key)
    said = printed(folder, "ca.crt")
    assert said == cannot.format(
        "ca.crt", f"{path} holds a private key, and every pod reads this file"
    )
    path.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    assert printed(folder, "ca.crt") == cannot.format(
        "ca.crt", f"certificate 1 of {path} cannot be read"
    )
    request = "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"
    path.write_text(corporate.certificate + request)
    assert printed(folder, "ca.crt") == cannot.format(
        "ca.crt", f"block 2 of {path} is a CERTIFICATE REQUEST, no certificate"
    )
    path.write_text("x" * (256 * 2**10 + 1))
    assert printed(folder, "ca.crt") == cannot.format(
        "ca.crt", f"{path} has 262145 bytes, and 262144 is the most"
    )


def test_what_each_bundle_trusts(corporate: Issued) -> None:
    own = Certificates().authority("demo", ["api.example.com"])

    found = trust.bundles(corporate.certificate, own.certificate)

    assert set(found) == {"ca.crt", "extra.crt", "bundle.crt", "upstream.crt"}
    assert found["ca.crt"] == corporate.certificate
    assert found["extra.crt"] == corporate.certificate + own.certificate
    assert found["bundle.crt"] == found["upstream.crt"] + own.certificate
    assert own.certificate not in found["upstream.crt"]
    assert corporate.certificate in found["upstream.crt"]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=found["bundle.crt"])
    assert len(context.get_ca_certs()) > 100
    # A ConfigMap takes 1 MiB.
    assert sum(map(len, found.values())) < 2**20


def test_a_bundle_alone_and_an_authority_alone(corporate: Issued) -> None:
    assert trust.bundles(corporate.certificate, None) == {"ca.crt": corporate.certificate}
    alone = trust.bundles(None, corporate.certificate)
    assert set(alone) == {"extra.crt", "bundle.crt", "upstream.crt"}
    assert alone["extra.crt"] == corporate.certificate


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ca.crt")

    assert printed(tmp_path, "ca.crt") == (
        f'error: harness.ca_bundle "ca.crt" cannot be read (ENXIO): {tmp_path / "ca.crt"}'
    )
