"""Which cluster a command speaks to: the kubeconfig as kubectl reads it, and one context of it.

The files of `KUBECONFIG` are merged as kubectl merges them: a missing file is skipped, the first
file that names a cluster, a user, a context or the current context wins, and a relative path is
relative to the file that it stands in. Nothing here speaks to a cluster.

Source: spec/converge.md §2, design §3.1 and §5.3, libraries.md §3 (row Kubeconfig).
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from jr2.errors import Refusal, StepFailed

from . import regular

if TYPE_CHECKING:
    import httpx2
    import lightkube

NO_CONTEXT: Final = (
    "no kube context — `jr2 cluster create` or `kind create cluster` (or point kubectl at one), "
    "then re-run `jr2 up`"
)

_CLUSTER_FILES: Final = (("certificate-authority", "certificate-authority-data"),)
_USER_FILES: Final = (
    ("client-certificate", "client-certificate-data"),
    ("client-key", "client-key-data"),
)


class UnknownContext(StepFailed):
    """The context, or the cluster or the user that it names, is not in the kubeconfig."""


def unreachable(context: str, error: str) -> Refusal:
    """Build the refusal of a converge whose API server does not answer.

    Args:
        context: the name of the context.
        error: what happened, on one line; for an unknown context the whole `error: …` text.
    """
    return Refusal(f"cannot reach the API server of {context} ({error}). Nothing was applied.")


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeContext:
    """One context of the kubeconfig, with everything that a client needs.

    Args:
        name: the name of the context.
        server: the address of the API server.
        namespace: the namespace that the context names, or `default`.
        cluster: the cluster's entry, with absolute paths.
        user: the user's entry, with absolute paths; empty when the context names no user.
    """

    name: str
    server: str
    namespace: str
    cluster: Mapping[str, Any] = field(repr=False)
    user: Mapping[str, Any] = field(repr=False)

    def kubeconfig_text(self) -> str:
        """Return a kubeconfig with this context alone; certificates and keys stand in it as data.

        A token file stays a path, since its content may change while a run goes on. Whoever writes
        the text to a file keeps it as private as the key in it.

        Raises:
            StepFailed: a file that the kubeconfig names cannot be read.
        """
        context = {"cluster": self.name, "user": self.name, "namespace": self.namespace}
        return yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": self.name,
                "clusters": [
                    {"name": self.name, "cluster": _inlined(self.cluster, _CLUSTER_FILES)}
                ],
                "contexts": [{"name": self.name, "context": context}],
                "users": [{"name": self.name, "user": _inlined(self.user, _USER_FILES)}],
            },
            sort_keys=True,
            allow_unicode=True,
        )

    def client(self, *, timeout: float = 10.0) -> lightkube.Client:
        """Return a lightkube client of this context; the caller closes it.

        Args:
            timeout: seconds for each request; a watch has no limit on reading.
        """
        import httpx2
        import lightkube
        from lightkube.config.kubeconfig import SingleConfig
        from lightkube.config.models import Cluster, Context, User

        from . import kube_auth

        config = SingleConfig(
            context_name=self.name,
            context=Context(cluster=self.name, user=self.name, namespace=self.namespace),
            cluster=Cluster(server=self.server),
            user=User(),
        )
        return lightkube.Client(
            config=config,
            timeout=httpx2.Timeout(timeout),
            transport=kube_auth.transport(self),
        )

    def http(self, *, timeout: float = 10.0) -> httpx2.Client:
        """Return a plain HTTP client of this context, for objects as the API gives them.

        Args:
            timeout: seconds for each request.
        """
        import httpx2

        from . import kube_auth

        return httpx2.Client(
            base_url=self.server, timeout=timeout, transport=kube_auth.transport(self)
        )


def load_context(name: str | None = None, environ: Mapping[str, str] = os.environ) -> KubeContext:
    """Read one context of the kubeconfig.

    Args:
        name: the context that `--context` names; `None` takes the current one.
        environ: where `KUBECONFIG` and `HOME` come from.

    Raises:
        UnknownContext: the kubeconfig has no such context, or not its cluster or user.
        StepFailed: there is no context at all, or a file of the kubeconfig cannot be read.
    """
    config = _merged(environ)
    chosen = config.chosen(name)
    context = config.contexts.get(chosen)
    if context is None:
        raise UnknownContext(f'context "{chosen}" does not exist')
    cluster_name, user_name = context.get("cluster"), context.get("user")
    cluster = config.clusters.get(str(cluster_name)) if cluster_name else None
    if cluster is None or not cluster.get("server"):
        raise UnknownContext(f'cluster "{cluster_name or ""}" does not exist')
    user: Mapping[str, Any] | None = {}
    if user_name:
        user = config.users.get(str(user_name))
    if user is None:
        raise UnknownContext(f'auth info "{user_name}" does not exist')
    return KubeContext(
        name=chosen,
        server=str(cluster["server"]).rstrip("/"),
        namespace=str(context.get("namespace") or "default"),
        cluster=cluster,
        user=user,
    )


def context_name(name: str | None = None, environ: Mapping[str, str] = os.environ) -> str:
    """Return the name of the context that a command takes, whether or not it exists.

    Args:
        name: the context that `--context` names; `None` takes the current one.
        environ: where `KUBECONFIG` and `HOME` come from.

    Raises:
        StepFailed: no context is named and none is current.
    """
    return name or _merged(environ).chosen(None)


@dataclass(slots=True)
class _Merged:
    current: str = ""
    clusters: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    users: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    contexts: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def chosen(self, name: str | None) -> str:
        chosen = name or self.current
        if not chosen:
            raise StepFailed(NO_CONTEXT)
        return chosen


def _merged(environ: Mapping[str, str]) -> _Merged:
    config = _Merged()
    for path in _files(environ):
        document = _document(path)
        if document is None:
            continue
        config.current = config.current or str(document.get("current-context") or "")
        for name, entry in _entries(document, "clusters", "cluster", path):
            config.clusters.setdefault(name, _absolute(entry, _CLUSTER_FILES, path.parent))
        for name, entry in _entries(document, "users", "user", path):
            config.users.setdefault(name, _absolute_user(entry, path.parent))
        for name, entry in _entries(document, "contexts", "context", path):
            config.contexts.setdefault(name, entry)
    return config


def _files(environ: Mapping[str, str]) -> list[Path]:
    listed = [part for part in environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    if listed:
        return [Path(os.path.abspath(part)) for part in dict.fromkeys(listed)]
    home = environ.get("HOME")
    return [Path(home) / ".kube" / "config"] if home else []


def _document(path: Path) -> Mapping[str, Any] | None:
    """Read one file; `None` when it does not exist or says nothing."""
    try:
        text = regular.read(path).decode("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise StepFailed(f"cannot read the kubeconfig {path}: {_reason(error)}") from error
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError:
        # The library's words quote the line, and the line may hold a token.
        raise StepFailed(f"cannot read the kubeconfig {path}: it is not YAML") from None
    if document is None:
        return None
    if not isinstance(document, dict):
        raise StepFailed(f"cannot read the kubeconfig {path}: it is not a mapping")
    return document


def _entries(
    document: Mapping[str, Any], many: str, one: str, path: Path
) -> list[tuple[str, Mapping[str, Any]]]:
    found: list[tuple[str, Mapping[str, Any]]] = []
    for item in document.get(many) or []:
        if not isinstance(item, dict) or "name" not in item:
            raise StepFailed(f"cannot read the kubeconfig {path}: {many} is not a list of names")
        entry = item.get(one) or {}
        if not isinstance(entry, dict):
            raise StepFailed(f"cannot read the kubeconfig {path}: {one} is not a mapping")
        found.append((str(item["name"]), entry))
    return found


def _absolute(
    entry: Mapping[str, Any], files: tuple[tuple[str, str], ...], folder: Path
) -> dict[str, Any]:
    result = dict(entry)
    for key, _ in files:
        if result.get(key):
            result[key] = os.path.join(folder, str(result[key]))
    return result


def _absolute_user(entry: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    result = _absolute(entry, (*_USER_FILES, ("tokenFile", "token")), folder)
    plugin = result.get("exec")
    # As in kubectl, a command without a separator is looked for on PATH.
    if isinstance(plugin, dict) and os.sep in str(plugin.get("command", "")):
        result["exec"] = {**plugin, "command": os.path.join(folder, str(plugin["command"]))}
    return result


def _inlined(entry: Mapping[str, Any], files: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    result = dict(entry)
    for key, data_key in files:
        path = result.pop(key, None)
        if not path or result.get(data_key):
            continue
        result[data_key] = base64.b64encode(read_file(Path(str(path)))).decode()
    return result


def read_file(path: Path) -> bytes:
    """Read a file that the kubeconfig names.

    Raises:
        StepFailed: it cannot be read.
    """
    try:
        return regular.read(path)
    except OSError as error:
        raise StepFailed(
            f"cannot read {path}, which the kubeconfig names: {_reason(error)}"
        ) from error


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
