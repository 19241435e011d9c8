"""The authority signs for the bound hosts alone, and what fits is kept."""

from __future__ import annotations

import base64
import datetime
import ssl
import tempfile
from collections.abc import Mapping
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from jr2 import names
from jr2.held import leaf_stem
from jr2_infra.secrets.authority import (
    CA_LIFE,
    CA_RENEWAL,
    LEAF_LIFE,
    LEAF_RENEWAL,
    Pki,
    decide_pki,
)
from jr2_infra.secrets.certificates import Certificates, Issued
from jr2_infra.secrets.targets import Target

NOW = datetime.datetime(2026, 11, 30, 12, 0, tzinfo=datetime.UTC)
DAY = datetime.timedelta(days=1)
API, OTHER = Target("api.example.com"), Target("other.example.com", 8443)
ADDRESS = Target("10.1.2.3", 8443)


def secret(values: Mapping[str, str]) -> dict[str, Any]:
    return {"data": {k: base64.b64encode(v.encode()).decode() for k, v in values.items()}}


def ca_secret(pki: Pki) -> dict[str, Any]:
    return secret({"ca.crt": pki.authority.certificate, "ca.key": pki.authority.key})


def tls_secret(pki: Pki) -> dict[str, Any]:
    files = {f"{stem}.crt": leaf.certificate for stem, leaf in pki.leaves.items()}
    return secret(files | {f"{stem}.key": leaf.key for stem, leaf in pki.leaves.items()})


def first(*targets: Target, now: datetime.datetime = NOW, instance: str = "demo") -> Pki:
    return decide_pki(instance, targets, None, None, Certificates(now))


def again(pki: Pki, *targets: Target, now: datetime.datetime = NOW, instance: str = "demo") -> Pki:
    return decide_pki(instance, targets, ca_secret(pki), tls_secret(pki), Certificates(now))


def verify(authority: Issued, leaf: Issued, name: x509.GeneralName) -> None:
    """Judge as a client does that follows the rules of the web."""
    store = Store([x509.load_pem_x509_certificate(authority.certificate.encode())])
    assert isinstance(name, x509.DNSName | x509.IPAddress)
    verifier = PolicyBuilder().store(store).time(NOW).build_server_verifier(name)
    verifier.verify(x509.load_pem_x509_certificate(leaf.certificate.encode()), [])


def loaded(issued: Issued) -> x509.Certificate:
    return x509.load_pem_x509_certificate(issued.certificate.encode())


def test_what_an_authority_and_its_certificates_say() -> None:
    pki = first(API)
    authority = loaded(pki.authority)
    assert authority.subject.rfc4514_string() == "CN=jr2 held-secret CA (demo)"
    assert authority.not_valid_after_utc == NOW + CA_LIFE
    assert authority.not_valid_before_utc == NOW - datetime.timedelta(hours=1)
    basic = authority.extensions.get_extension_for_class(x509.BasicConstraints).value
    assert (basic.ca, basic.path_length) == (True, 0)
    limits = authority.extensions.get_extension_for_class(x509.NameConstraints)
    assert limits.critical
    assert limits.value.permitted_subtrees == [x509.DNSName("api.example.com")]

    [(stem, issued)] = pki.leaves.items()
    leaf = loaded(issued)
    assert stem == leaf_stem("api.example.com", 443)
    assert leaf.not_valid_after_utc == NOW + LEAF_LIFE
    assert leaf.serial_number.bit_length() <= 127
    assert "PRIVATE" not in repr(pki)


def test_a_client_takes_the_certificate_of_a_bound_host() -> None:
    pki = first(API, ADDRESS)
    by_stem = pki.leaves
    verify(pki.authority, by_stem[leaf_stem(API.host, API.port)], x509.DNSName(API.host))


@pytest.mark.parametrize(
    ("bound", "other"),
    [(API, OTHER), (ADDRESS, OTHER), (API, ADDRESS), (ADDRESS, Target("10.1.2.4"))],
)
def test_no_client_takes_one_for_another_host(bound: Target, other: Target) -> None:
    """Whoever has the authority's key gains no host that was not bound, of neither kind."""
    now = datetime.datetime.now(datetime.UTC)  # OpenSSL judges by its own clock
    pki = first(bound, now=now)
    forged = Certificates(now).leaf(pki.authority, other)
    context = ssl.create_default_context(cadata=pki.authority.certificate)
    handshake(context, pki.leaves[leaf_stem(bound.host, bound.port)], bound.host)
    with pytest.raises(ssl.SSLCertVerificationError, match="subtree violation"):
        handshake(context, forged, other.host)


def handshake(context: ssl.SSLContext, leaf: Issued, host: str) -> None:
    """Do a TLS handshake in memory, with OpenSSL at both ends."""
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(leaf.certificate + leaf.key)
        file.flush()
        server_side.load_cert_chain(file.name)
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(down, up, server_hostname=host)
    server = server_side.wrap_bio(up, down, server_side=True)
    for _ in range(4):
        for end in (client, server):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert client.version() is not None


def test_what_stands_is_kept() -> None:
    pki = first(API, OTHER)
    assert again(pki, OTHER, API) == pki
    assert again(pki, API, OTHER, now=NOW + LEAF_LIFE - LEAF_RENEWAL - DAY) == pki


def test_one_run_gives_the_same_twice() -> None:
    """A plan is made before the Lease is held and once more under it."""
    certificates = Certificates(NOW)
    both = [decide_pki("demo", [API], None, None, certificates) for _ in range(2)]
    assert both[0] == both[1]
    assert first(API) != both[0]


def test_a_change_of_the_bound_hosts_makes_all_of_it_anew() -> None:
    pki = first(API)
    changed = again(pki, API, OTHER)
    assert changed.authority != pki.authority
    for target in (API, OTHER):
        leaf = changed.leaves[leaf_stem(target.host, target.port)]
        verify(changed.authority, leaf, x509.DNSName(target.host))
    assert again(changed, API).authority != changed.authority


def test_another_port_of_a_bound_host_changes_no_authority() -> None:
    pki = first(API)
    more = again(pki, API, Target(API.host, 8443))
    assert more.authority == pki.authority
    assert len(more.leaves) == 2
    stem = leaf_stem(API.host, 443)
    assert more.leaves[stem] == pki.leaves[stem]


def test_a_certificate_is_renewed_a_month_before_its_end() -> None:
    pki = first(API)
    later = again(pki, API, now=NOW + LEAF_LIFE - LEAF_RENEWAL)
    assert later.authority == pki.authority
    [old], [new] = pki.leaves.values(), later.leaves.values()
    assert loaded(new).not_valid_after_utc - loaded(old).not_valid_after_utc > 300 * DAY


def test_an_authority_is_renewed_while_it_can_still_sign_for_a_year() -> None:
    pki = first(API)
    assert again(pki, API, now=NOW + CA_LIFE - CA_RENEWAL - DAY).authority == pki.authority
    assert again(pki, API, now=NOW + CA_LIFE - CA_RENEWAL).authority != pki.authority


def test_what_is_of_no_use_is_made_anew() -> None:
    pki, foreign = first(API), first(API)
    broken: list[tuple[dict[str, Any] | None, dict[str, Any] | None]] = [
        (None, tls_secret(pki)),
        (secret({"ca.crt": pki.authority.certificate}), tls_secret(pki)),
        (secret({"ca.crt": "x", "ca.key": "y"}), tls_secret(pki)),
        ({"data": {"ca.crt": "%%", "ca.key": "%%"}}, tls_secret(pki)),
        (
            secret({"ca.crt": pki.authority.certificate, "ca.key": foreign.authority.key}),
            tls_secret(pki),
        ),
        (ca_secret(first(API, instance="another")), tls_secret(pki)),
    ]
    for ca, tls in broken:
        found = decide_pki("demo", [API], ca, tls, Certificates(NOW))
        assert found.authority not in (pki.authority, foreign.authority)
        [leaf] = found.leaves.values()
        verify(found.authority, leaf, x509.DNSName(API.host))


def test_a_certificate_of_another_authority_or_host_is_made_anew() -> None:
    pki, stem = first(API), leaf_stem(API.host, API.port)
    other = Certificates(NOW).leaf(pki.authority, OTHER)
    [own] = pki.leaves.values()
    [foreign] = first(API).leaves.values()
    for certificate, key in (
        (foreign.certificate, foreign.key),
        (other.certificate, other.key),
        (own.certificate, foreign.key),
    ):
        tls = secret({f"{stem}.crt": certificate, f"{stem}.key": key})
        found = decide_pki("demo", [API], ca_secret(pki), tls, Certificates(NOW))
        assert found.authority == pki.authority
        [leaf] = found.leaves.values()
        assert leaf not in (foreign, other)
        verify(found.authority, leaf, x509.DNSName(API.host))


def test_the_longest_name_of_an_instance_is_in_the_subject() -> None:
    long = "i" * 63
    pki = first(API, instance=long)
    assert long in loaded(pki.authority).subject.rfc4514_string()
    assert again(pki, API, instance=long) == pki


def test_a_forged_authority_without_limits_is_not_kept() -> None:
    """Somebody who may write the Secret cannot make the Converge sign under an open authority."""
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    subject = loaded(first(API).authority).subject
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(NOW - DAY)
        .not_valid_after(NOW + CA_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    forged = Issued(
        certificate=made.public_bytes(serialization.Encoding.PEM).decode(),
        key=key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ).decode(),
    )
    ca = secret({names.KEY_CA_CERTIFICATE: forged.certificate, names.KEY_CA_KEY: forged.key})
    assert decide_pki("demo", [API], ca, None, Certificates(NOW)).authority != forged


def test_the_verifier_of_these_tests_can_say_no() -> None:
    pki = first(API)
    [leaf] = pki.leaves.values()
    with pytest.raises(VerificationError):
        verify(first(API).authority, leaf, x509.DNSName(API.host))
