"""The Harness's tree as an image volume, in pods whose image is not ours.

The first image holds a static busybox under one name and nothing else: no libc, no `/bin/sh`, no
certificates. The second has a Python and libraries of its own.
"""

from __future__ import annotations

import dataclasses
import datetime
import ipaddress
import json
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from jr2 import names
from jr2_cli import tools
from jr2_cli.local_cluster import local_import
from jr2_infra.images.build import oci, recipe
from jr2_infra.images.build.layers import pack_folder
from jr2_infra.images.checkout import archive_path, checkout_images
from jr2_infra.images.delivery import deliver
from jr2_infra.images.delivery.local import LocalNode
from tests.waiting import LIMIT

from .settled import wait_for_account

pytestmark = pytest.mark.cluster

CHECKOUT = Path(__file__).resolve().parents[2]
NAMESPACE = "jr2-test-harness-tree"
BUSYBOX = "/busybox"
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
    "runAsUser": names.HARNESS_UID,
    "runAsGroup": names.HARNESS_UID,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
IN_BUSYBOX = f"""
import ctypes, functools, http.server, json, os, pathlib, sqlite3, ssl, subprocess, sys, threading

def run(*argv, **more):
    environment = dict(os.environ, HOME="/tmp", **more)
    done = subprocess.run(argv, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, (argv, done.stdout, done.stderr)
    return done.stdout.strip()

GIT = {names.TREE_GIT!r}
git = functools.partial(run, GIT, "-c", "user.name=a", "-c", "user.email=a@example", "-C")
seen = dict(
    root=sorted(os.listdir("/")),
    executable=sys.executable,
    libraries=sorted({{
        os.path.dirname(line.split()[-1])
        for line in open("/proc/self/maps") if line.split()[-1].startswith("/")
    }}),
    sqlite=sqlite3.connect(":memory:").execute("select 6 * 7").fetchone()[0],
    authorities=ssl.create_default_context().cert_store_stats()["x509_ca"] > 50,
    ctypes=ctypes.CDLL(None).getpid() == os.getpid(),
    child=run(sys.executable, "-ISB", "-c", "import ssl, sys; print(sys.prefix)"),
    ripgrep=run({names.TREE_RIPGREP!r}, "--count", "prefix", "/opt/jr2/lib/python3.11/site.py") != "",
)

run(GIT, "init", "--quiet", "-b", "main", "/tmp/one")
pathlib.Path("/tmp/one/file").write_text("content")
git("/tmp/one", "add", "file")
git("/tmp/one", "commit", "--quiet", "-m", "first")
run(GIT, "clone", "--quiet", "/tmp/one", "/tmp/two")
seen["clone"] = git("/tmp/two", "log", "--format=%s %an")
seen["exec-path"] = run(GIT, "--exec-path")

run(GIT, "clone", "--quiet", "--bare", "/tmp/one", "/tmp/served/one.git")
git("/tmp/served/one.git", "update-server-info")
for name in ("CERTIFICATE", "KEY"):
    pathlib.Path("/tmp", name).write_text(os.environ[name])
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("/tmp/CERTIFICATE", "/tmp/KEY")
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory="/tmp/served")
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
server.socket = context.wrap_socket(server.socket, server_side=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"https://127.0.0.1:{{server.server_port}}/one.git"
run(GIT, "clone", "--quiet", url, "/tmp/three", GIT_SSL_CAINFO="/tmp/CERTIFICATE")
seen["https"] = git("/tmp/three", "log", "--format=%s")
refused = subprocess.run([GIT, "ls-remote", url], capture_output=True, text=True)
seen["unknown authority"] = refused.returncode != 0 and "certificate" in refused.stderr

seen["busybox"] = run({BUSYBOX!r}, "readlink", "/proc/self/exe")
inherited = {{line.split("=")[0] for line in run({BUSYBOX!r}, "env", "-0").split("\\0")}}
seen["added variables"] = sorted(inherited - set(os.environ) - {{"HOME", ""}})
print(json.dumps(seen))
"""
IN_OWN_PYTHON = """
import json, subprocess, sys
LOOK = (
    "import json, ssl, sys\\n"
    "files = {line.split()[-1] for line in open('/proc/self/maps') if '.so' in line}\\n"
    "print(json.dumps([sys.prefix, sorted({path.split('/')[1] for path in files})]))"
)
own = [sys.executable, "-ISB", "-c", LOOK]
image = ["/usr/bin/python3", "-ISB", "-c", LOOK]
print(json.dumps([json.loads(subprocess.check_output(argv)) for argv in (own, image)]))
"""


def kubectl(*arguments: str, stdin: dict[str, Any] | None = None) -> str:
    done = subprocess.run(
        [str(tools.require("kubectl")), "--context", names.LOCAL_CONTEXT, *arguments],
        input=None if stdin is None else json.dumps(stdin),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def node(kit_images: None) -> LocalNode:
    """The node of the local cluster, which holds the Harness image."""
    found = local_import()
    assert found is not None
    node = LocalNode(found.ctr, found.socket)
    deliver(checkout_images(CHECKOUT).harness, node)
    return node


@pytest.fixture(scope="module")
def namespace(node: LocalNode) -> Iterator[str]:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    metadata = {"name": NAMESPACE, "labels": labels}
    kubectl(
        "apply", "-f", "-", stdin={"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    )
    wait_for_account(kubectl, NAMESPACE)
    yield NAMESPACE
    kubectl("delete", "namespace", NAMESPACE, "--wait=false")


def busybox_image(folder: Path, node: LocalNode) -> str:
    """An image of one file, a static busybox that has no other name."""
    busybox = shutil.which("busybox")
    assert busybox is not None, "apt-get install busybox-static"
    root = folder / "root"
    root.mkdir()
    shutil.copyfile(busybox, root / BUSYBOX[1:])
    (root / BUSYBOX[1:]).chmod(0o755)
    layer = pack_folder(root, folder / "layer.tar")
    image = dataclasses.replace(
        recipe.HARNESS,
        name="jr2-test-busybox",
        python=BUSYBOX,
        programs=(),
        title="One static file",
    )
    ref = f"{names.CHECKOUT_HOME}/{image.name}:{layer.digest[7:19]}"
    target = folder / archive_path(ref).name
    oci.write_archive(
        image,
        ref=ref,
        content_hash=layer.digest[7:],
        architecture=architecture_of_images(),
        layers=[layer],
        target=target,
    )
    node.load(target, ref)
    return ref


def architecture_of_images() -> str:
    """The OCI name of the architecture that the Harness image was built for."""
    with tarfile.open(archive_path(checkout_images(CHECKOUT).harness)) as tar:
        file = tar.extractfile("index.json")
        assert file is not None
        return str(json.load(file)["manifests"][0]["platform"]["architecture"])


def certificate() -> dict[str, str]:
    """A certificate for 127.0.0.1 that is its own authority, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "loopback")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    encoded = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return {
        "CERTIFICATE": made.public_bytes(serialization.Encoding.PEM).decode(),
        "KEY": encoded.decode(),
    }


def say(name: str, image: str, script: str, environment: dict[str, str]) -> Any:
    """Run a script by the tree's Python in a pod of an image, and return the JSON that it printed."""
    container = {
        "name": "main",
        "image": image,
        "imagePullPolicy": "Never",
        "command": [names.TREE_PYTHON, "-ISB", "-c", script],
        "env": [{"name": key, "value": value} for key, value in environment.items()],
        "securityContext": RESTRICTED,
        "volumeMounts": [
            {
                "name": "jr2",
                "mountPath": names.TREE_PATH,
                "subPath": names.TREE_SUBPATH,
                "readOnly": True,
            },
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    }
    reference = checkout_images(CHECKOUT).harness
    kubectl(
        *("apply", "-f", "-"),
        stdin={
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {
                "restartPolicy": "Never",
                "automountServiceAccountToken": False,
                "enableServiceLinks": False,
                "containers": [container],
                "volumes": [
                    {"name": "jr2", "image": {"reference": reference, "pullPolicy": "Never"}},
                    {"name": "tmp", "emptyDir": {}},
                ],
            },
        },
    )
    ended = "--for=jsonpath={.status.containerStatuses[0].state.terminated}"
    kubectl("-n", NAMESPACE, "wait", ended, f"pod/{name}", "--timeout=200s")
    said = kubectl("-n", NAMESPACE, "logs", name)
    pod = json.loads(kubectl("-n", NAMESPACE, "get", "pod", name, "-o", "json"))
    assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0, said
    return json.loads(said.splitlines()[-1])


def test_python_git_and_ripgrep_run_where_only_busybox_is(
    namespace: str, node: LocalNode, tmp_path: Path
) -> None:
    seen = say("busybox", busybox_image(tmp_path, node), IN_BUSYBOX, certificate())

    mounted = {"dev", "etc", "opt", "proc", "sys", "tmp", "var", "run"}
    assert set(seen.pop("root")) - mounted == {"busybox"}
    assert seen == {
        "executable": names.TREE_PYTHON,
        "libraries": ["/opt/jr2/bin", "/opt/jr2/lib", "/opt/jr2/lib/python3.11/lib-dynload"],
        "sqlite": 42,
        "authorities": True,
        "ctypes": True,
        "child": names.TREE_PATH,
        "ripgrep": True,
        "clone": "first a",
        "exec-path": "/opt/jr2/git-core",
        "https": "first",
        "unknown authority": True,
        "busybox": BUSYBOX,
        "added variables": [],
    }


def test_the_image_s_own_programs_keep_their_libraries(namespace: str, node: LocalNode) -> None:
    image = checkout_images(CHECKOUT).orchestrator
    deliver(image, node)
    own, of_image = say("own-python", image, IN_OWN_PYTHON, {})

    assert own == [names.TREE_PATH, ["opt"]]
    assert of_image == ["/usr", ["usr"]]
