"""Who may push: password, token, identity token, helper programs, and certificates.

Every secret holds the word CANARY, which no message may hold.
"""

from __future__ import annotations

import base64
import datetime
import ipaddress
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from jr2.errors import StepFailed
from jr2_infra import oci
from tests.registry.conftest import (
    HTPASSWD,
    PASSWORD,
    USER,
    Image,
    Registry,
    StartRegistry,
    logged_in,
    ref,
)
from tests.registry.tokens import IDENTITY, TokenServer

pytestmark = pytest.mark.timeout(1800)

SECRETS = ("CANARY", base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode(), "eyJ")
"""What no message holds: the secrets, as they travel, and the start of each token."""


def basic(user: str = USER, password: str = PASSWORD) -> dict[str, str]:
    return {"auth": base64.b64encode(f"{user}:{password}".encode()).decode()}


def push(registry: str, environ: Mapping[str, str], folder: Path) -> oci.Result:
    image = Image()
    layout = image.folder(folder, image.manifest(os.urandom(50_000), b"two"))
    with oci.Client(environ, sleep=lambda seconds: None) as client:
        result = client.push(layout, ref(registry))
        assert client.exists(ref(registry))
    return result


def refused(registry: str, environ: Mapping[str, str], folder: Path) -> str:
    with pytest.raises(StepFailed) as raised:
        push(registry, environ, folder)
    chain: BaseException | None = raised.value
    while chain is not None:
        assert not any(secret in f"{chain!s}{chain!r}" for secret in SECRETS)
        chain = chain.__cause__
    return raised.value.message


@pytest.fixture
def guarded(start_registry: StartRegistry, tmp_path: Path) -> Registry:
    """A registry that wants user and password."""
    file = tmp_path / "htpasswd"
    file.write_text(HTPASSWD)
    return start_registry(auth={"htpasswd": {"realm": "tests", "path": str(file)}})


def test_a_registry_that_wants_a_login_says_who_did_not_log_in(
    guarded: Registry, environ: dict[str, str], tmp_path: Path
) -> None:
    said = refused(guarded.host, environ, tmp_path / "layout")

    assert said.splitlines() == [
        f"{guarded.host} refuses the look at 1 ({guarded.host}/team/app): 401 Unauthorized",
        f"  no credentials for it in {environ['HOME']}/.docker/config.json — run `docker login "
        f"{guarded.host}`, then try again",
    ]


@pytest.mark.parametrize("prefix", ["", "http://", "https://"])
def test_what_docker_login_wrote_is_used(
    guarded: Registry, environ: dict[str, str], tmp_path: Path, prefix: str
) -> None:
    logged_in(environ, auths={f"{prefix}{guarded.host}": basic(), "other.example": basic("eve")})

    assert push(guarded.host, environ, tmp_path / "layout").sent == 3


def test_a_wrong_password_is_said_without_it(
    guarded: Registry, environ: dict[str, str], tmp_path: Path
) -> None:
    path = logged_in(environ, auths={guarded.host: basic(password="CANARY-wrong")})

    said = refused(guarded.host, environ, tmp_path / "layout")

    assert "401 Unauthorized" in said
    assert f"with the credentials of auths of {path} — run `docker login {guarded.host}`" in said


HELPER = """#!/bin/sh
# Stands for the helper of an operating system's key ring.
read -r registry
echo "$1 $registry" >> "${0%/*}/asked"
case "$registry" in
HOST) echo '{"ServerURL":"HOST","Username":"NAME","Secret":"SECRET"}' ;;
*) echo "credentials not found in native keychain"; exit 1 ;;
esac
"""

WriteHelper = Callable[..., Path]


@pytest.fixture
def helper(environ: dict[str, str], tmp_path: Path) -> WriteHelper:
    """Writes a helper program that knows one registry."""

    def write(host: str, *, user: str = USER, secret: str = PASSWORD, text: str = HELPER) -> Path:
        program = tmp_path / "bin" / "docker-credential-ring"
        program.parent.mkdir(exist_ok=True)
        program.write_text(
            text.replace("HOST", host).replace("NAME", user).replace("SECRET", secret)
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return program

    return write


@pytest.mark.parametrize("kind", ["credHelpers", "credsStore"])
def test_a_helper_program_is_asked_once(
    guarded: Registry, environ: dict[str, str], tmp_path: Path, helper: WriteHelper, kind: str
) -> None:
    program = helper(guarded.host)
    logged_in(environ, **{kind: {guarded.host: "ring"} if kind == "credHelpers" else "ring"})

    assert push(guarded.host, environ, tmp_path / "layout").sent == 3

    assert (program.parent / "asked").read_text() == f"get {guarded.host}\n"


def test_a_store_that_knows_nothing_leaves_the_file(
    guarded: Registry, environ: dict[str, str], tmp_path: Path, helper: WriteHelper
) -> None:
    helper("other.example")
    logged_in(environ, credsStore="ring", auths={guarded.host: basic()})

    assert push(guarded.host, environ, tmp_path / "layout").changed


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("#!/bin/sh\necho CANARY >&2; exit 3\n", "ring failed for {host} (exit code 3)"),
        ('#!/bin/sh\necho \'{"Secret":"CANARY"}\'\n', "ring gave no credential for {host}"),
        (None, "names the credential helper docker-credential-ring, and it is not on PATH"),
    ],
)
def test_a_helper_that_fails_is_named(
    guarded: Registry,
    environ: dict[str, str],
    tmp_path: Path,
    helper: WriteHelper,
    text: str | None,
    said: str,
) -> None:
    if text is not None:
        helper(guarded.host, text=text)
    logged_in(environ, credHelpers={guarded.host: "ring"})

    assert said.format(host=guarded.host) in refused(guarded.host, environ, tmp_path / "layout")


@pytest.fixture
def tokens() -> Iterator[TokenServer]:
    server = TokenServer(USER, PASSWORD)
    yield server
    server.close()


@pytest.fixture
def tokened(start_registry: StartRegistry, tokens: TokenServer, tmp_path: Path) -> Registry:
    """A registry that wants a token of the token server."""
    return start_registry(auth=tokens.auth(tmp_path))


def test_a_token_is_fetched_once_for_each_set_of_rights(
    tokened: Registry, tokens: TokenServer, environ: dict[str, str], tmp_path: Path
) -> None:
    logged_in(environ, auths={tokened.host: basic()})

    assert push(tokened.host, environ, tmp_path / "layout").sent == 3

    assert [(method, query["scope"]) for method, query in tokens.asked] == [
        ("GET", ["repository:team/app:pull,push"]),
        ("GET", ["repository:team/app:pull"]),
    ]
    assert tokens.asked[0][1]["service"] == ["registry"]
    assert tokens.asked[0][1]["account"] == [USER]


def test_a_mount_asks_for_the_right_to_read_the_other_repository(
    tokened: Registry, tokens: TokenServer, environ: dict[str, str], tmp_path: Path
) -> None:
    logged_in(environ, auths={tokened.host: basic()})
    push(tokened.host, environ, tmp_path / "layout")

    with oci.Client(environ) as client:
        result = client.copy(ref(tokened.host), ref(tokened.host, "mirror/app"))

    assert (result.sent, result.mounted) == (0, 3)
    assert tokens.asked[-1][1]["scope"] == [
        "repository:mirror/app:pull,push",
        "repository:team/app:pull",
    ]


def test_a_token_whose_rights_do_not_do_is_fetched_anew(
    tokened: Registry, tokens: TokenServer, environ: dict[str, str], tmp_path: Path
) -> None:
    logged_in(environ, auths={tokened.host: basic()})
    tokens.grants_next = ["pull"]

    assert push(tokened.host, environ, tmp_path / "layout").sent == 3


def test_a_user_without_the_right_to_push_is_told_so(
    tokened: Registry, tokens: TokenServer, environ: dict[str, str], tmp_path: Path
) -> None:
    path = logged_in(environ, auths={tokened.host: basic()})
    tokens.granted = "pull"

    said = refused(tokened.host, environ, tmp_path / "layout")

    assert f"{tokened.host} refuses the push of the blob sha256:" in said
    assert f"({tokened.host}/team/app): 401 Unauthorized: UNAUTHORIZED" in said
    assert f"with the credentials of auths of {path} — run `docker login" in said
    assert len(tokens.asked) < 10


def test_a_token_server_that_refuses_is_told_of(
    tokened: Registry, environ: dict[str, str], tmp_path: Path
) -> None:
    logged_in(environ, auths={tokened.host: basic(password="CANARY-wrong")})

    said = refused(tokened.host, environ, tmp_path / "layout")

    assert f"{tokened.host} refuses the token of 127.0.0.1" in said
    assert "401 Unauthorized: UNAUTHORIZED who is that?" in said


@pytest.mark.parametrize("place", ["file", "helper"])
def test_an_identity_token_is_exchanged(
    tokened: Registry,
    tokens: TokenServer,
    environ: dict[str, str],
    tmp_path: Path,
    helper: WriteHelper,
    place: str,
) -> None:
    if place == "file":
        logged_in(environ, auths={tokened.host: {"identitytoken": IDENTITY}})
    else:
        helper(tokened.host, user="<token>", secret=IDENTITY)
        logged_in(environ, credsStore="ring")

    assert push(tokened.host, environ, tmp_path / "layout").sent == 3

    method, form = tokens.asked[0]
    assert method == "POST"
    assert form["grant_type"] == ["refresh_token"]
    assert form["scope"] == ["repository:team/app:pull,push"]


def certificate(
    folder: Path, name: str, issuer: tuple[x509.Name, ec.EllipticCurvePrivateKey] | None
) -> tuple[Path, Path, tuple[x509.Name, ec.EllipticCurvePrivateKey]]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    signer, signing = issuer or (subject, key)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(signer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        .sign(signing, hashes.SHA256())
    )
    cert_file, key_file = folder / f"{name}.crt", folder / f"{name}.key"
    cert_file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return cert_file, key_file, (subject, key)


@pytest.fixture
def private(start_registry: StartRegistry, tmp_path: Path) -> tuple[Registry, Path]:
    """A registry whose certificate is of a private authority, and the authority's certificate."""
    authority, _, issuer = certificate(tmp_path, "authority", None)
    cert, key, _ = certificate(tmp_path, "registry", issuer)
    file = tmp_path / "htpasswd"
    file.write_text(HTPASSWD)
    auth: dict[str, Any] = {"htpasswd": {"realm": "tests", "path": str(file)}}
    return start_registry(auth=auth, tls=(cert, key)), authority


@pytest.mark.parametrize("place", ["certs.d", "SSL_CERT_FILE"])
def test_a_private_authority_is_trusted_where_docker_reads_it(
    private: tuple[Registry, Path], environ: dict[str, str], tmp_path: Path, place: str
) -> None:
    registry, authority = private
    logged_in(environ, auths={registry.host: basic()})
    if place == "certs.d":
        folder = Path(environ["HOME"]) / ".docker/certs.d" / registry.host
        folder.mkdir(parents=True)
        (folder / "ca.crt").write_bytes(authority.read_bytes())
    else:
        environ["SSL_CERT_FILE"] = str(authority)

    assert push(registry.host, environ, tmp_path / "layout").sent == 3


def test_an_unknown_authority_is_an_error_that_says_where_it_belongs(
    private: tuple[Registry, Path], environ: dict[str, str], tmp_path: Path
) -> None:
    registry, _ = private
    logged_in(environ, auths={registry.host: basic()})

    said = refused(registry.host, environ, tmp_path / "layout")

    assert said.startswith(f"the certificate of {registry.host} is not trusted (")
    assert f"/etc/docker/certs.d/{registry.host}/ca.crt" in said


def test_a_config_that_cannot_be_read_is_named_without_its_words(
    guarded: Registry, environ: dict[str, str], tmp_path: Path
) -> None:
    path = logged_in(environ)
    path.write_text('{"auths": {"a": {"auth": "CANARY')

    said = refused(guarded.host, environ, tmp_path / "layout")

    assert said == f"{path} cannot be read: it is not JSON"
    path.write_text(json.dumps({"auths": {guarded.host: {"auth": "CANARY!"}}}))
    said = refused(guarded.host, environ, tmp_path / "layout")
    assert said.startswith(f'{path} at auths."{guarded.host}".auth is no base64 text')
