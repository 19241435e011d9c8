"""A real API server for tests, with no node behind it: etcd and kube-apiserver on loopback.

It starts in a few seconds, needs no root, and several run side by side, each with its own data.
Objects, admission, rights and dry runs are the real thing; no pod ever runs. Controllers run when
a test names them: without `namespace` a deleted Namespace stays Terminating, and without
`serviceaccount` no namespace has an account `default`, which pods need to be admitted.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import json
import signal
import ssl
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import httpx2

from jr2_cli import tools
from jr2_infra import kube, processes
from tests.apiserver.certificates import Authority
from tests.ports import free_ports
from tests.waiting import LIMIT, wait_for

LIGHT_CONTROLLERS: Final = (
    "namespace-controller",
    "serviceaccount-controller",
    "garbage-collector-controller",
    "persistentvolumeclaim-protection-controller",
)
"""What makes namespaces go and accounts come, as in a whole cluster."""

WITHOUT_POD_RESOURCES: Final = {
    "PodLevelResources": False,
    # These depend on it, and a server with one of them on does not start.
    "InPlacePodLevelResourcesVerticalScaling": False,
    "PodLevelResourceManagers": False,
}
"""Gates of a server that drops pod-level resources."""

_ATTEMPTS: Final = 4


class ApiServer:
    """One running API server.

    Args:
        folder: where its files lie; removed by nobody but the test.
        context: the name of its context in `kubeconfig`.
        feature_gates: gates of kube-apiserver, such as `{"PodLevelResources": False}`.
        controllers: names of controllers that run; none starts no controller manager.
        flags: further flags of kube-apiserver.
    """

    def __init__(
        self,
        folder: Path,
        *,
        context: str = "tests",
        feature_gates: Mapping[str, bool] | None = None,
        controllers: Sequence[str] = LIGHT_CONTROLLERS,
        flags: Sequence[str] = (),
    ) -> None:
        self.folder = folder
        self.context = context
        self.authority = Authority(folder / "pki")
        self._processes: list[subprocess.Popen[bytes]] = []
        self._http: httpx2.Client | None = None
        self._names: dict[int, str] = {}
        self._accounts = self.authority.service_account_key()
        self._serving = self.authority.issue(
            "kube-apiserver", hosts=("localhost", "127.0.0.1", "kubernetes.default.svc")
        )
        self._gates = dict(feature_gates or {})
        self._controllers = tuple(controllers)
        self._flags = tuple(flags)
        self.server = ""
        self.kubeconfig = folder / "kubeconfig"
        """A kubeconfig of an administrator, with the one context `context`."""
        self.kubectl = tools.require("kubectl")

    def __enter__(self) -> ApiServer:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the processes and wait until the server answers `ok`."""
        for attempt in range(_ATTEMPTS):
            # Another server can take a free port before ours listens on it.
            try:
                self._start(*free_ports(3), data=self.folder / f"etcd-{attempt}")
            except _Ended as ended:
                self.stop()
                if attempt + 1 == _ATTEMPTS or "address already in use" not in str(ended):
                    raise
            else:
                return

    def stop(self) -> None:
        """End the processes, the last started first."""
        if self._http is not None:
            self._http.close()
            self._http = None
        for process in reversed(self._processes):
            process.kill()
            process.wait()
        self._processes.clear()

    def user_kubeconfig(self, user: str, *groups: str, server: str | None = None) -> Path:
        """Write a kubeconfig of a user who is known by a certificate.

        Args:
            user: the name of the user.
            groups: the groups that the user is in.
            server: another address, such as that of a proxy in between.
        """
        pair = self.authority.issue(user, groups)
        path = self.folder / f"{pair.key.stem}-{len(list(self.folder.iterdir()))}.kubeconfig"
        credentials = {
            "client-certificate": str(pair.certificate),
            "client-key": str(pair.key),
        }
        self._write_kubeconfig(path, credentials, server or self.server)
        return path

    def context_kubeconfig(self, context: str) -> Path:
        """Write a kubeconfig of the administrator whose one context has another name."""
        path = self.folder / f"{context}.kubeconfig"
        path.write_text(self.kubeconfig.read_text().replace(f'"{self.context}"', f'"{context}"'))
        path.chmod(0o600)
        return path

    def account_kubeconfig(self, namespace: str, account: str) -> Path:
        """Write a kubeconfig with a token of a ServiceAccount, as the API server issues it."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = self.post(path, body)["status"]["token"]
        written = self.folder / f"{namespace}-{account}.kubeconfig"
        self._write_kubeconfig(written, {"token": token}, self.server)
        return written

    def kube_context(self, kubeconfig: Path | None = None) -> kube.KubeContext:
        """Return the context as the Converge loads it from a kubeconfig."""
        return kube.load_context(self.context, {"KUBECONFIG": str(kubeconfig or self.kubeconfig)})

    @contextlib.contextmanager
    def client(self) -> Iterator[httpx2.Client]:
        """A client of an administrator for plain requests."""
        trust = ssl.create_default_context(cafile=str(self.authority.certificate))
        admin = self._admin
        trust.load_cert_chain(admin.certificate, admin.key)
        with httpx2.Client(
            base_url=self.server, verify=trust, timeout=LIMIT, trust_env=False
        ) as http:
            yield http

    def get(self, path: str) -> Any:
        """Return what a GET answers; `None` for what does not exist."""
        answer = self._own.get(path)
        return None if answer.status_code == 404 else _checked(answer)

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Make an object and return it."""
        return _checked(self._own.post(path, json=dict(body)))

    def patch(self, path: str, body: Mapping[str, Any]) -> Any:
        """Merge fields into an object and return it."""
        return _checked(
            self._own.patch(
                path,
                content=json.dumps(body),
                headers={"Content-Type": "application/merge-patch+json"},
            )
        )

    def wait_for_rights(self, objects: Sequence[Mapping[str, Any]]) -> None:
        """Wait until what Roles and their bindings give holds: it does a moment after they stand.

        Args:
            objects: those that were just applied; each binding's Role is one of them.
        """
        roles = {
            (obj["kind"], obj["metadata"].get("namespace"), obj["metadata"]["name"]): obj
            for obj in objects
        }
        for binding in objects:
            if not binding["kind"].endswith("Binding") or "roleRef" not in binding:
                continue
            space = binding["metadata"].get("namespace")
            role, kind = binding["roleRef"]["name"], binding["roleRef"]["kind"]
            rules = roles[kind, space if kind == "Role" else None, role]["rules"]
            for subject in binding["subjects"]:
                has = functools.partial(self._has, subject, rules, space)
                wait_for(f"{subject['name']} has {role}", has)

    def _has(self, subject: Mapping[str, Any], rules: Any, space: str | None) -> bool:
        """Whether a user or an account has each rule: one verb, resource and name of it."""
        user = subject["name"]
        if subject["kind"] == "ServiceAccount":
            user = f"system:serviceaccount:{subject['namespace']}:{user}"
        for rule in rules:
            if "resources" not in rule:
                continue
            resource, _, sub = rule["resources"][0].partition("/")
            asked = {
                "verb": rule["verbs"][0],
                "group": rule["apiGroups"][0],
                "resource": resource,
                "subresource": sub,
                "name": (rule.get("resourceNames") or [""])[0],
                "namespace": space or "",
            }
            review = {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SubjectAccessReview",
                "spec": {"user": user, "resourceAttributes": asked},
            }
            answer = self.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
            if not answer["status"]["allowed"]:
                return False
        return True

    def run_kubectl(self, *arguments: str) -> str:
        """Run kubectl as an administrator and return what it printed."""
        done = self._kubectl(arguments)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def kubectl_refusal(self, *arguments: str) -> str | None:
        """Run kubectl as an administrator and return why it did nothing; `None` when it did."""
        done = self._kubectl(arguments)
        return done.stderr if done.returncode else None

    def _kubectl(self, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.kubectl), "--kubeconfig", str(self.kubeconfig), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )

    def add_namespace(self, name: str, labels: Mapping[str, str] | None = None) -> None:
        """Make a Namespace, and wait for its account `default` when a controller makes one."""
        self.post(
            "/api/v1/namespaces",
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": name, "labels": dict(labels or {})},
            },
        )
        if "serviceaccount-controller" in self._controllers:
            wait_for(
                f"an account in {name}",
                lambda: self.get(f"/api/v1/namespaces/{name}/serviceaccounts/default") is not None,
            )

    def add_node(
        self,
        name: str,
        *,
        architecture: str = "amd64",
        cpu: str = "4",
        memory: str = "8Gi",
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Mapping[str, str]] = (),
        unschedulable: bool = False,
        images: Sequence[str] = (),
    ) -> None:
        """Make a Node by hand, as a kubelet of that machine would report it.

        Args:
            name: its name.
            architecture: as Go names it, such as `arm64`.
            cpu: the allocatable cpu.
            memory: the allocatable memory.
            labels: labels beside those of the kubelet.
            taints: its taints.
            unschedulable: whether it is cordoned.
            images: names of images that it holds.
        """
        spec: dict[str, Any] = {"taints": [dict(taint) for taint in taints]}
        if unschedulable:
            spec["unschedulable"] = True
        own = {
            "kubernetes.io/arch": architecture,
            "kubernetes.io/os": "linux",
            "kubernetes.io/hostname": name,
        }
        self.post(
            "/api/v1/nodes",
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": {**own, **(labels or {})}},
                "spec": spec,
            },
        )
        # Admission gives a new node the taint `not-ready`, which a controller takes away again.
        self.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": spec["taints"]}})
        sizes = {"cpu": cpu, "memory": memory, "pods": "110"}
        self.patch(
            f"/api/v1/nodes/{name}/status",
            {
                "status": {
                    "capacity": sizes,
                    "allocatable": sizes,
                    "conditions": [{"type": "Ready", "status": "True", "reason": "Tests"}],
                    "images": [{"names": [image], "sizeBytes": 1} for image in images],
                    "nodeInfo": {"architecture": architecture, "operatingSystem": "linux"},
                }
            },
        )

    def remove(self, path: str) -> None:
        """Delete an object, if it is there."""
        answer = self._own.delete(path)
        assert answer.status_code in (200, 202, 404), answer.text

    @property
    def _own(self) -> httpx2.Client:
        """The client of this object's own requests; it ends with the server."""
        if self._http is None:
            # As the Converge does, it asks again while the server makes the storage of a new kind.
            self._http = self.kube_context().http(timeout=LIMIT)
        return self._http

    def _start(self, client: int, peer: int, secure: int, *, data: Path) -> None:
        store = f"http://127.0.0.1:{client}"
        etcd = self._run(
            "etcd",
            f"--data-dir={data}",
            f"--listen-client-urls={store}",
            f"--advertise-client-urls={store}",
            f"--listen-peer-urls=http://127.0.0.1:{peer}",
            f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
            f"--initial-cluster=default=http://127.0.0.1:{peer}",
            "--log-level=warn",
            # The data live as long as the test.
            "--unsafe-no-fsync",
        )
        gates = ",".join(f"{gate}={str(on).lower()}" for gate, on in self._gates.items())
        server = self._run(
            "kube-apiserver",
            f"--etcd-servers={store}",
            "--bind-address=127.0.0.1",
            f"--secure-port={secure}",
            # It is written nowhere, and a loopback address is refused.
            "--advertise-address=192.0.2.1",
            "--endpoint-reconciler-type=none",
            f"--tls-cert-file={self._serving.certificate}",
            f"--tls-private-key-file={self._serving.key}",
            f"--client-ca-file={self.authority.certificate}",
            f"--service-account-key-file={self._accounts.certificate}",
            f"--service-account-signing-key-file={self._accounts.key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--authorization-mode=RBAC",
            "--profiling=false",
            *([f"--feature-gates={gates}"] if gates else []),
            *(
                []
                if "serviceaccount-controller" in self._controllers
                else ["--disable-admission-plugins=ServiceAccount"]
            ),
            *self._flags,
        )
        self.server = f"https://127.0.0.1:{secure}"
        self._admin = self.authority.issue("tests-admin", ("system:masters",))
        self._write_kubeconfig(
            self.kubeconfig,
            {
                "client-certificate": str(self._admin.certificate),
                "client-key": str(self._admin.key),
            },
            self.server,
        )
        wait_for("the API server", lambda: self._is_ready(etcd, server))
        if self._controllers:
            self._run(
                "kube-controller-manager",
                f"--kubeconfig={self.kubeconfig}",
                f"--controllers={','.join(self._controllers)}",
                # It serves nobody, so it needs no port and no certificate.
                "--secure-port=0",
                "--leader-elect=false",
                "--kube-api-qps=200",
                "--kube-api-burst=300",
                "--profiling=false",
            )

    def _run(self, name: str, *flags: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                # A pytest that is killed leaves no server behind.
                processes.bound_to_us([tools.require(name), *flags], signal.SIGKILL),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._processes.append(process)
        self._names[process.pid] = name
        return process

    def _is_ready(self, *processes: subprocess.Popen[bytes]) -> bool:
        for process in processes:
            if process.poll() is not None:
                raise _Ended(self._last_words(process))
        try:
            # Roles and priority classes of the system are made after the first answer.
            return self._own.get("/readyz").text == "ok"
        except httpx2.HTTPError:
            return False

    def _last_words(self, process: subprocess.Popen[bytes]) -> str:
        name = self._names[process.pid]
        words = (self.folder / f"{name}.log").read_text(errors="replace").splitlines()[-12:]
        return f"{name} ended with code {process.returncode}:\n" + "\n".join(words)

    def _write_kubeconfig(self, path: Path, credentials: Mapping[str, str], server: str) -> None:
        # JSON is YAML.
        path.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": self.context,
                    "contexts": [
                        {
                            "name": self.context,
                            "context": {"cluster": self.context, "user": self.context},
                        }
                    ],
                    "clusters": [
                        {
                            "name": self.context,
                            "cluster": {
                                "server": server,
                                "certificate-authority-data": base64.b64encode(
                                    self.authority.certificate.read_bytes()
                                ).decode(),
                            },
                        }
                    ],
                    "users": [{"name": self.context, "user": dict(credentials)}],
                }
            )
        )
        path.chmod(0o600)


class _Ended(Exception):
    """A process ended before it served."""


def _checked(answer: httpx2.Response) -> Any:
    assert answer.is_success, f"{answer.request.method} {answer.request.url.path}: {answer.text}"
    return answer.json()
