"""The cluster's certificates: two authorities, and one certificate for each process and for jr2.

The authority of etcd is apart from the cluster's, so that no certificate of the cluster opens
etcd, where all data lie. Each process is the user that Kubernetes knows it as; jr2 has a user of
its own in a group of its own, so that taking its rights away needs no new authority.

Keys are made once and are private to root. A certificate is renewed, at a start and while the
cluster runs, when less than a third of its life is left, or when it is not the one that this jr2
would make. An authority is renewed in the same way and keeps its key, so what it signed stays good,
and who still holds its older certificate has years left to get the new one.

Each process of the cluster reads its certificate from its file again: servers within a minute,
clients within five. None has to be started again.

Source: design §7.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from .. import layout, private_files

ADMIN_GROUP: Final = "jr2-local:admins"
ADMIN_USER: Final = "jr2"
COREDNS_USER: Final = "jr2-local:coredns"
ROUTER_USER: Final = "jr2-local:kube-router"
STORAGE_USER: Final = "jr2-local:local-path-provisioner"
KUBELET_CLIENT_USER: Final = "jr2-local:kube-apiserver-kubelet-client"

CLUSTER_AUTHORITY: Final = "ca"
ETCD_AUTHORITY: Final = "etcd-ca"
SERVICE_ACCOUNT_KEY: Final = "service-accounts"

_AUTHORITY_DAYS: Final = 3650
_DAYS: Final = 365
_BACKDATED: Final = datetime.timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Whom a certificate is for.

    Args:
        file: the name of its files.
        user: the common name, which Kubernetes takes as the user.
        group: the organisation, which Kubernetes takes as the group.
        hosts: names and addresses that it serves on; none for a client.
        authority: who signs it.
    """

    file: str
    user: str
    group: str | None = None
    hosts: tuple[str, ...] = ()
    authority: str = CLUSTER_AUTHORITY


SUBJECTS: Final[tuple[Subject, ...]] = (
    Subject(file="etcd", user="etcd", hosts=("localhost", "127.0.0.1"), authority=ETCD_AUTHORITY),
    Subject(file="etcd-client", user="kube-apiserver", authority=ETCD_AUTHORITY),
    Subject(
        file="kube-apiserver",
        user="kube-apiserver",
        hosts=(
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            f"kubernetes.default.svc.{layout.CLUSTER_DOMAIN}",
            layout.KUBERNETES_SERVICE,
            layout.NODE_ADDRESS,
        ),
    ),
    Subject(file="kubelet-client", user=KUBELET_CLIENT_USER),
    Subject(
        file="kubelet",
        user=f"system:node:{layout.NODE_NAME}",
        group="system:nodes",
        hosts=(layout.NODE_NAME, layout.NODE_ADDRESS),
    ),
    Subject(
        file="kube-controller-manager",
        user="system:kube-controller-manager",
        hosts=("localhost", "127.0.0.1"),
    ),
    Subject(file="kube-scheduler", user="system:kube-scheduler", hosts=("localhost", "127.0.0.1")),
    Subject(file="kube-proxy", user="system:kube-proxy"),
    Subject(file="coredns", user=COREDNS_USER),
    Subject(file="kube-router", user=ROUTER_USER),
    Subject(file="local-path-provisioner", user=STORAGE_USER),
    # Makes the first objects, and asks for health; it never leaves the state folder.
    Subject(file="bootstrap", user="jr2-local:bootstrap", group="system:masters"),
    Subject(file="admin", user=ADMIN_USER, group=ADMIN_GROUP),
)


def needs_renewal(certificate: x509.Certificate, now: datetime.datetime) -> bool:
    """Tell whether less than a third of a certificate's life is left, or it has not yet begun.

    Args:
        certificate: the certificate.
        now: the time, with its zone.
    """
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return now < begin or end - now < (end - begin) / 3


def ensure_certificates(
    files: layout.Layout, now: datetime.datetime | None = None
) -> tuple[str, ...]:
    """Make what is missing and renew what is old; keys stay.

    Args:
        files: where they lie.
        now: the time; `None` is now.

    Returns:
        The names of the certificates that were written.
    """
    moment = datetime.datetime.now(datetime.UTC) if now is None else now
    files.pki.mkdir(mode=0o700, parents=True, exist_ok=True)
    written = [
        name
        for name in (CLUSTER_AUTHORITY, ETCD_AUTHORITY)
        if _ensure_authority(files, name, moment)
    ]
    public = _ensure_key(files.key(SERVICE_ACCOUNT_KEY)).public_key()
    text = public.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    public_path = files.pki / f"{SERVICE_ACCOUNT_KEY}.pub"
    if not public_path.exists() or public_path.read_bytes() != text:
        private_files.write(public_path, text)
    written += [subject.file for subject in SUBJECTS if _ensure_certificate(files, subject, moment)]
    return tuple(written)


def _ensure_authority(files: layout.Layout, name: str, now: datetime.datetime) -> bool:
    path = files.certificate(name)
    if path.exists():
        present = x509.load_pem_x509_certificate(path.read_bytes())
        if not needs_renewal(present, now):
            return False
    key = _ensure_key(files.key(name))
    subject = _name(f"jr2-local {name}", None)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + datetime.timedelta(days=_AUTHORITY_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    private_files.write(path, certificate.public_bytes(serialization.Encoding.PEM))
    return True


def _ensure_certificate(files: layout.Layout, subject: Subject, now: datetime.datetime) -> bool:
    path = files.certificate(subject.file)
    if path.exists():
        present = x509.load_pem_x509_certificate(path.read_bytes())
        if is_for(present, subject) and not needs_renewal(present, now):
            return False
    key = _ensure_key(files.key(subject.file))
    authority = x509.load_pem_x509_certificate(files.certificate(subject.authority).read_bytes())
    authority_key = _load_key(files.key(subject.authority))
    uses = [ExtendedKeyUsageOID.CLIENT_AUTH]
    if subject.hosts:
        uses.append(ExtendedKeyUsageOID.SERVER_AUTH)
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(subject.user, subject.group))
        .issuer_name(authority.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + datetime.timedelta(days=_DAYS))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()),
            critical=False,
        )
    )
    if subject.hosts:
        builder = builder.add_extension(
            x509.SubjectAlternativeName(_alternative_names(subject.hosts)), critical=False
        )
    certificate = builder.sign(authority_key, hashes.SHA256())
    private_files.write(path, certificate.public_bytes(serialization.Encoding.PEM))
    return True


def is_for(certificate: x509.Certificate, subject: Subject) -> bool:
    """Tell whether a certificate names the user, the group and the hosts that it should."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        hosts = set(found)
    except x509.ExtensionNotFound:
        hosts = set()
    return certificate.subject == _name(subject.user, subject.group) and hosts == set(
        _alternative_names(subject.hosts)
    )


def _alternative_names(hosts: Sequence[str]) -> list[x509.GeneralName]:
    found: list[x509.GeneralName] = []
    for host in hosts:
        try:
            found.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            found.append(x509.DNSName(host))
    return found


def _name(user: str, group: str | None) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, user)]
    if group is not None:
        parts.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
    return x509.Name(parts)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _ensure_key(path: Path) -> ec.EllipticCurvePrivateKey:
    if path.exists():
        return _load_key(path)
    key = ec.generate_private_key(ec.SECP256R1())
    private_files.write(
        path,
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )
    return key


def _load_key(path: Path) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key
