"""The certificates are what Kubernetes takes its users, groups and hosts from."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import ipaddress
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from jr2_cli.local_cluster import kubeconfig, layout, record, renewal, verb_lock
from jr2_cli.local_cluster.definition import certificates

NOW = datetime.datetime(2026, 11, 30, tzinfo=datetime.UTC)


@pytest.fixture
def files(tmp_path: Path) -> layout.Layout:
    files = layout.Layout(tmp_path)
    certificates.ensure_certificates(files, NOW)
    return files


def load(files: layout.Layout, name: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(files.certificate(name).read_bytes())


def test_each_certificate_says_who_it_is_and_is_signed_by_its_authority(
    files: layout.Layout,
) -> None:
    for subject in certificates.SUBJECTS:
        certificate = load(files, subject.file)
        certificate.verify_directly_issued_by(load(files, subject.authority))
        names = certificate.subject
        users = [a.value for a in names.get_attributes_for_oid(NameOID.COMMON_NAME)]
        groups = [a.value for a in names.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
        assert users == [subject.user]
        assert groups == ([] if subject.group is None else [subject.group])


def test_no_certificate_of_the_cluster_opens_etcd(files: layout.Layout) -> None:
    etcd = load(files, "etcd-ca")
    openers = []
    for subject in certificates.SUBJECTS:
        try:
            load(files, subject.file).verify_directly_issued_by(etcd)
        except ValueError:
            continue
        openers.append(subject.file)

    assert sorted(openers) == ["etcd", "etcd-client"]


def test_only_the_bootstrap_user_is_above_all_rules(files: layout.Layout) -> None:
    masters = [s.file for s in certificates.SUBJECTS if s.group == "system:masters"]

    assert masters == ["bootstrap"]
    admin = load(files, "admin").subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    assert admin[0].value == "jr2-local:admins"


def test_a_client_cannot_serve_and_the_api_server_serves_its_addresses(
    files: layout.Layout,
) -> None:
    uses = {
        name: set(load(files, name).extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
        for name in ("admin", "kube-apiserver")
    }
    names = load(files, "kube-apiserver").extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )

    assert uses["admin"] == {ExtendedKeyUsageOID.CLIENT_AUTH}
    assert ExtendedKeyUsageOID.SERVER_AUTH in uses["kube-apiserver"]
    assert set(names.value.get_values_for_type(x509.IPAddress)) == {
        ipaddress.ip_address("10.96.0.1"),
        ipaddress.ip_address("10.245.255.1"),
    }


def test_keys_are_private_to_their_owner(files: layout.Layout) -> None:
    assert files.pki.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in files.pki.iterdir()} == {0o600}


def test_a_young_certificate_stays_and_an_old_one_is_renewed_with_its_key(
    files: layout.Layout,
) -> None:
    before = {path.name: path.read_bytes() for path in files.pki.iterdir()}

    certificates.ensure_certificates(files, NOW + datetime.timedelta(days=200))
    assert {path.name: path.read_bytes() for path in files.pki.iterdir()} == before

    certificates.ensure_certificates(files, NOW + datetime.timedelta(days=300))
    after = {path.name: path.read_bytes() for path in files.pki.iterdir()}
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {f"{subject.file}.crt" for subject in certificates.SUBJECTS}
    load(files, "admin").verify_directly_issued_by(load(files, "ca"))


def test_a_renewal_says_what_it_wrote_and_writes_nothing_twice(files: layout.Layout) -> None:
    later = NOW + datetime.timedelta(days=300)

    written = certificates.ensure_certificates(files, later)

    assert written == tuple(subject.file for subject in certificates.SUBJECTS)
    assert certificates.ensure_certificates(files, later) == ()


def test_an_authority_is_renewed_with_its_key_so_that_both_of_its_certificates_hold(
    files: layout.Layout,
) -> None:
    older, leaf = load(files, "ca"), load(files, "admin")
    later = NOW + datetime.timedelta(days=2600)

    written = certificates.ensure_certificates(files, later)

    newer, renewed = load(files, "ca"), load(files, "admin")
    assert set(written) >= {"ca", "etcd-ca", "admin"}
    assert newer.serial_number != older.serial_number
    assert newer.not_valid_after_utc > renewed.not_valid_after_utc > later
    leaf.verify_directly_issued_by(newer)
    renewed.verify_directly_issued_by(older)


def test_a_certificate_of_the_future_or_for_other_hosts_is_renewed(files: layout.Layout) -> None:
    assert certificates.needs_renewal(load(files, "admin"), NOW - datetime.timedelta(days=1))
    server = next(s for s in certificates.SUBJECTS if s.file == "kube-apiserver")
    assert certificates.is_for(load(files, "kube-apiserver"), server)
    more = dataclasses.replace(server, hosts=(*server.hosts, "10.0.0.1"))
    assert not certificates.is_for(load(files, "kube-apiserver"), more)


def test_a_renewal_reaches_the_kubeconfigs_that_hold_the_context(
    files: layout.Layout, tmp_path: Path
) -> None:
    held, broken = tmp_path / "held", tmp_path / "broken"
    kubeconfig.merge(held, kubeconfig.admin_entries(files))
    broken.write_text("{ CANARY")
    noted = record.Record(kubernetes="1.36.3", created_at=0.0, kubeconfigs=(broken, held))
    files.record.write_text(noted.model_dump_json())
    before = held.read_bytes()

    assert len(renewal.renew(files, NOW)) == 1
    assert held.read_bytes() == before
    problems = renewal.renew(files, NOW + datetime.timedelta(days=300))

    assert problems == [f"the kubeconfig {broken} is no YAML; nothing was changed in it"]
    user = yaml.safe_load(held.read_text())["users"][0]["user"]
    given = x509.load_pem_x509_certificate(base64.b64decode(user["client-certificate-data"]))
    assert given == load(files, "admin")
    assert given.not_valid_after_utc > NOW + datetime.timedelta(days=600)


def test_the_chore_leaves_a_cluster_alone_that_a_verb_is_at_work_on(tmp_path: Path) -> None:
    files = layout.Layout(tmp_path / "state" / "cluster")
    files.root.mkdir(parents=True)

    with verb_lock.hold(files.root.parent, lambda: None):
        assert renewal.main([str(files.root)]) == 0
        assert not files.pki.exists()
    assert renewal.main([str(files.root)]) == 0

    assert files.certificate("admin").exists()
