"""The authority of an Instance and the certificates that its Custodians show, one for each bound host.

A Custodian ends the TLS of a request to a bound host, so the Harness must trust a certificate for
it. The authority behind it can sign for the bound hosts and nothing else: its name constraints are
critical and name them, so whoever gets its key gains no other host. What stands in the cluster is
kept while it fits; the authority is made anew when the bound hosts change, when it has less than a
year and a month left, or when it is of no use, and so is each certificate under it. A certificate
alone is renewed a month before its end.

Source: spec/converge.md §9.4, ADR-0145.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from jr2 import names
from jr2.held import leaf_stem

from .certificates import Certificates, Issued
from .targets import Target

CA_LIFE: Final = datetime.timedelta(days=3650)
LEAF_LIFE: Final = datetime.timedelta(days=365)
LEAF_RENEWAL: Final = datetime.timedelta(days=30)
CA_RENEWAL: Final = LEAF_LIFE + LEAF_RENEWAL
"""An authority with less left could not sign a certificate for a whole life."""
_EARLIER: Final = datetime.timedelta(hours=1)
"""How long before now a certificate starts to hold, for a pod whose clock is behind."""
_SERIAL_BITS: Final = 127
"""Of 16 bytes, of which the first bit is the sign."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pki:
    """The authority and the certificates under it, by the stem of their files."""

    authority: Issued
    leaves: Mapping[str, Issued]


def decide_pki(
    instance: str,
    targets: Sequence[Target],
    live_ca: Mapping[str, Any] | None,
    live_tls: Mapping[str, Any] | None,
    certificates: Certificates,
) -> Pki:
    """Return what stands while it fits, and what is new in its place.

    Args:
        instance: the Instance.
        targets: the bound hosts; one or more.
        live_ca: the Secret `jr2-held-ca` as the API gave it, or `None`.
        live_tls: the Secret `jr2-held-tls`, likewise.
        certificates: makes what is missing.
    """
    hosts = sorted({target.host for target in targets})
    now = certificates.now
    authority = _issued(live_ca, names.KEY_CA_CERTIFICATE, names.KEY_CA_KEY)
    if authority is None or not _authority_fits(authority, instance, hosts, now):
        authority = certificates.authority(instance, hosts)
    leaves: dict[str, Issued] = {}
    for target in sorted(set(targets)):
        stem = leaf_stem(target.host, target.port)
        leaf = _issued(live_tls, f"{stem}.crt", f"{stem}.key")
        if leaf is None or not _leaf_fits(leaf, authority, target.host, now):
            leaf = certificates.leaf(authority, target)
        leaves[stem] = leaf
    return Pki(authority=authority, leaves=leaves)


def _authority_fits(
    issued: Issued, instance: str, hosts: Sequence[str], now: datetime.datetime
) -> bool:
    try:
        found = x509.load_pem_x509_certificate(issued.certificate.encode())
        basic = found.extensions.get_extension_for_class(x509.BasicConstraints)
        limits = found.extensions.get_extension_for_class(x509.NameConstraints)
        return (
            basic.value.ca
            and _is_key_of(issued, found)
            and found.subject == _subject(instance)
            and limits.critical
            and limits.value == _constraints(hosts)
            and found.not_valid_before_utc <= now
            and found.not_valid_after_utc - now > CA_RENEWAL
        )
    except (ValueError, TypeError, x509.ExtensionNotFound, x509.DuplicateExtension):
        return False


def _leaf_fits(issued: Issued, authority: Issued, host: str, now: datetime.datetime) -> bool:
    try:
        found = x509.load_pem_x509_certificate(issued.certificate.encode())
        found.verify_directly_issued_by(
            x509.load_pem_x509_certificate(authority.certificate.encode())
        )
        names_of = found.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        return (
            names_of.value == x509.SubjectAlternativeName([_general_name(host)])
            and _is_key_of(issued, found)
            and found.not_valid_before_utc <= now
            and found.not_valid_after_utc - now > LEAF_RENEWAL
        )
    except (
        ValueError,
        TypeError,
        InvalidSignature,
        x509.ExtensionNotFound,
        x509.DuplicateExtension,
    ):
        return False


def _is_key_of(issued: Issued, certificate: x509.Certificate) -> bool:
    key = serialization.load_pem_private_key(issued.key.encode(), password=None)
    return key.public_key() == certificate.public_key()


def _issued(live: Mapping[str, Any] | None, certificate: str, key: str) -> Issued | None:
    data = (live or {}).get("data") or {}
    try:
        return Issued(
            certificate=base64.b64decode(data[certificate], validate=True).decode("ascii"),
            key=base64.b64decode(data[key], validate=True).decode("ascii"),
        )
    except (KeyError, binascii.Error, UnicodeDecodeError):
        return None


def new_authority(instance: str, hosts: Sequence[str], now: datetime.datetime) -> Issued:
    """Make an authority that can sign for these hosts alone."""
    key = ec.generate_private_key(ec.SECP256R1())
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    builder = (
        _builder(_subject(instance), _subject(instance), key, now, CA_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(sign=True), critical=True)
        .add_extension(_constraints(hosts), critical=True)
        .add_extension(identifier, critical=False)
    )
    return _signed(builder, key, key)


def new_leaf(authority: Issued, host: str, now: datetime.datetime) -> Issued:
    """Make the certificate of a host under an authority."""
    issuer = x509.load_pem_x509_certificate(authority.certificate.encode())
    issuing = serialization.load_pem_private_key(authority.key.encode(), password=None)
    assert isinstance(issuing, ec.EllipticCurvePrivateKey), "an authority has such a key"
    key = ec.generate_private_key(ec.SECP256R1())
    of_issuer = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    builder = (
        # The subject stays empty: a name there has a limit of 64, and nobody reads it.
        _builder(x509.Name([]), issuer.subject, key, now, LEAF_LIFE)
        .add_extension(x509.SubjectAlternativeName([_general_name(host)]), critical=True)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(sign=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(of_issuer),
            critical=False,
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return _signed(builder, key, issuing)


def _constraints(hosts: Sequence[str]) -> x509.NameConstraints:
    """Return the names that an authority may sign for.

    A kind of name that has no permitted one is unlimited, so the kind that is not bound at all is
    excluded as a whole.
    """
    permitted = [_subtree(host) for host in hosts]
    excluded: list[x509.GeneralName] = []
    if not any(isinstance(name, x509.DNSName) for name in permitted):
        excluded.append(x509.DNSName(""))
    if not any(isinstance(name, x509.IPAddress) for name in permitted):
        excluded += [
            x509.IPAddress(ipaddress.ip_network("0.0.0.0/0")),
            x509.IPAddress(ipaddress.ip_network("::/0")),
        ]
    return x509.NameConstraints(permitted_subtrees=permitted, excluded_subtrees=excluded or None)


def _subtree(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_network(host))
    except ValueError:
        return x509.DNSName(host)


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _subject(instance: str) -> x509.Name:
    # A common name has at most 64 characters, and an Instance's name alone may have 63.
    text = f"jr2 held-secret CA ({instance})"
    if len(text) > 64:
        return x509.Name(
            [
                x509.NameAttribute(NameOID.COMMON_NAME, "jr2 held-secret CA"),
                x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, instance),
            ]
        )
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime.datetime,
    life: datetime.timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number() >> (159 - _SERIAL_BITS) or 1)
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + life)
    )


def _usage(*, sign: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not sign,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=sign,
        crl_sign=sign,
        encipher_only=False,
        decipher_only=False,
    )


def _signed(
    builder: x509.CertificateBuilder,
    key: ec.EllipticCurvePrivateKey,
    issuing: ec.EllipticCurvePrivateKey,
) -> Issued:
    certificate = builder.sign(issuing, hashes.SHA256())
    return Issued(
        certificate=certificate.public_bytes(serialization.Encoding.PEM).decode(),
        key=key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ).decode(),
    )
