"""Which Orchestrator a verb speaks to, and the way to it.

With a URL nothing else is needed. Without one the Instance folder gives the namespace, the kubectl
context gives the cluster, the Secret `jr2-instance` gives the token, and a port-forward that lives
as long as the command gives the way. An Instance that is not there and a cluster that does not
answer are two different errors.

Source: spec/converge.md §2.3, seed 000.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from jr2 import errors, names, repo_identity

from . import way

if TYPE_CHECKING:
    from jr2_infra.kube import KubeContext

    from .client import Orchestrator
    from .output import Output
    from .port_forward import PortForward


_DNS_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


def _check_namespace(_: type, given: str | None) -> None:
    """Refuse what no cluster takes as a namespace.

    Raises:
        Usage: it is no DNS label.
    """
    if given is not None and not _DNS_LABEL.fullmatch(given):
        shown = json.dumps(given, ensure_ascii=False)
        raise errors.Usage(
            f"{shown} cannot name a namespace: a name has 1 to 63 of a-z, 0-9 and `-`, and starts "
            "and ends with a letter or a digit"
        )


def _check_context(_: type, given: str | None) -> None:
    """Refuse a context without a name: it would lead to the current one, unasked.

    Raises:
        Usage: it is empty, or holds what stands in no line.
    """
    if given is not None and not (given and given.isprintable()):
        shown = json.dumps(given, ensure_ascii=False)
        raise errors.Usage(
            f"{shown} cannot name a context — leave --context out to take the current one"
        )


Namespace = Annotated[str | None, Parameter(name=["--namespace", "-n"], validator=_check_namespace)]
"""The option that names a namespace, the same for each verb."""

Context = Annotated[str | None, Parameter(validator=_check_context)]
"""The option that names a context of the kubeconfig, the same for each verb."""


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The options that name an Orchestrator."""

    url: Annotated[str | None, Parameter(env_var=names.ENV_URL, show_env_var=True)] = None
    """Address of the Orchestrator; no cluster and no Instance folder is needed then."""

    namespace: Namespace = None
    """Namespace of the Instance; without it, the name that the config gives."""

    context: Context = None
    """Context of the kubeconfig; without it, the current one."""


class NotDeployed(errors.StepFailed):
    """The cluster answers, and the Instance is not in it."""


class Unreadable(errors.StepFailed):
    """The API server does not answer, or refuses to show an object."""


class Link:
    """The open way to one Orchestrator: its client, and the forward under it when there is one.

    Args:
        url: the address, when one was given.
        token: the Instance token.
        cluster: the Instance in a cluster, when no address was given.
        signing_key: the Instance's, when a token is sent through a forward: the Orchestrator proves
            itself with it first.
    """

    def __init__(
        self,
        *,
        url: str | None,
        token: str | None,
        cluster: ClusterTarget | None = None,
        signing_key: str | None = None,
    ) -> None:
        self._signing_key = signing_key
        self._url = url
        self._token = token
        self._cluster = cluster
        self._forward: PortForward | None = None
        self._client: Orchestrator | None = None

    @property
    def client(self) -> Orchestrator:
        """The client; it is opened on first use.

        Raises:
            ForwardFailed: the port could not be forwarded.
            NotDeployed: it could not, since the Instance is not there.
        """
        if self._client is None:
            from .client import Orchestrator

            self._client = Orchestrator(self._address(), self._token)
        return self._client

    @property
    def address(self) -> str | None:
        """The address that was given; `None` for a cluster."""
        return self._url

    def drop(self) -> None:
        """Close the way; the next use of `client` opens it again."""
        client, self._client = self._client, None
        forward, self._forward = self._forward, None
        if client is not None:
            client.close()
        if forward is not None:
            forward.close()

    def _address(self) -> str:
        if self._url is not None:
            return self._url
        assert self._cluster is not None
        self._forward = way.open_to(self._cluster)
        way.wait_until_it_answers(self._cluster, self._forward, self._signing_key)
        return self._forward.url


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """What a command needs of the Secret `jr2-instance`; never shown."""

    token: str = field(repr=False)
    signing_key: str | None = field(repr=False)
    """`None` when it cannot be read, and the token came from elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterTarget:
    """An Instance in a cluster.

    Args:
        context: the cluster.
        namespace: the Instance's namespace.
    """

    context: KubeContext
    namespace: str

    def open_forward(self, within: float) -> PortForward:
        """Open a port-forward to the Orchestrator's Service.

        Args:
            within: seconds that kubectl has to announce its port.

        Raises:
            ForwardFailed: kubectl ended, or said no port in time.
        """
        from . import port_forward, tools

        return port_forward.PortForward(
            tools.require("kubectl"),
            context=self.context.name,
            namespace=self.namespace,
            ready_within=within,
        )

    def check_namespace(self) -> None:
        """Look whether the namespace is there to stay.

        Raises:
            NotDeployed: it is being deleted.
            Unreadable: the API server does not answer, or does not show it.
        """
        found = self.get(f"/api/v1/namespaces/{self.namespace}")
        if ((found or {}).get("metadata") or {}).get("deletionTimestamp") is not None:
            raise NotDeployed(
                f"namespace {self.namespace} of {self.context.name} is being deleted — once it is "
                "gone, `jr2 up` deploys the Instance again"
            )

    def unready(self) -> str | None:
        """Say why the Orchestrator takes no connection; `None` when it should take one.

        Raises:
            NotDeployed: there is none.
            Unreadable: the API server does not answer, or does not show it.
        """
        path = f"/apis/apps/v1/namespaces/{self.namespace}/deployments/{names.ORCHESTRATOR}"
        found = self.get(path)
        if found is None:
            raise NotDeployed(
                f"not deployed here — {described(self)} holds no Deployment {names.ORCHESTRATOR}; "
                "run `jr2 up`"
            )
        status = found.get("status") or {}
        if status.get("readyReplicas"):
            return None
        return (
            f"the Orchestrator in namespace {self.namespace} of {self.context.name} is not ready\n"
            f"  see: kubectl --context={self.context.name} -n {self.namespace} get pods"
        )

    def values(self) -> Values:
        """Read the Instance token and the signing key from the Secret `jr2-instance`.

        Raises:
            NotDeployed: there is no such Secret.
            StepFailed: the API server does not answer, or does not give it.
        """
        secret = self.get(f"/api/v1/namespaces/{self.namespace}/secrets/{names.INSTANCE_SECRET}")
        if secret is None:
            with contextlib.suppress(Unreadable):
                self.check_namespace()
            raise NotDeployed(
                f"not deployed here — {described(self)} holds no Secret "
                f"{names.INSTANCE_SECRET}; run `jr2 up`"
            )
        return Values(
            token=self._value(secret, names.KEY_INSTANCE_TOKEN),
            signing_key=self._value(secret, names.KEY_SIGNING_KEY),
        )

    def _value(self, secret: dict[str, Any], key: str) -> str:
        encoded = (secret.get("data") or {}).get(key)
        if not isinstance(encoded, str):
            raise errors.StepFailed(
                f"Secret {names.INSTANCE_SECRET} in namespace {self.namespace} holds no key "
                f"{key} — run `jr2 up`"
            )
        from jr2_infra import headers

        try:
            text = base64.b64decode(encoded, validate=True).decode("ascii")
        except (binascii.Error, ValueError):
            text = ""
        if not headers.can_carry(text):
            raise errors.StepFailed(
                f"Secret {names.INSTANCE_SECRET} in namespace {self.namespace} holds a {key} that "
                "is not printable ASCII; the value itself is not shown — delete that key, and run "
                "`jr2 up`"
            )
        return text

    def get(self, path: str) -> dict[str, Any] | None:
        """Read one object of the API server; `None` when there is none.

        Args:
            path: the path of the object.

        Raises:
            Unreadable: the API server does not answer, or refuses.
        """
        import httpx2

        try:
            with self.context.http() as client:
                response = client.get(path)
        except httpx2.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise Unreadable(
                f"cannot reach the API server of {self.context.name} ({reason})"
            ) from error
        if response.status_code == httpx2.codes.NOT_FOUND:
            return None
        body = _json(response)
        if response.is_error or body is None:
            said = (body or {}).get("message") or f"HTTP {response.status_code}"
            raise Unreadable(f"the API server of {self.context.name} answered: {said}")
        return body


@contextlib.contextmanager
def connect(target: Target, out: Output) -> Iterator[Link]:
    """Find the Orchestrator that the options name, say which one it is, and open the way.

    Args:
        target: the options.
        out: where `→ …` is written.

    Raises:
        StepFailed: not inside an Instance, no context, not deployed, or not reachable.
    """
    token = _given_token()
    if target.url:
        out.line(f"→ {repo_identity.shown(target.url)}", code="target")
        link = Link(url=target.url.rstrip("/"), token=token)
    else:
        cluster = in_cluster(target)
        out.line(f"→ {described(cluster)}", code="target")
        values = _values(cluster, token, out)
        link = Link(url=None, token=values.token, cluster=cluster, signing_key=values.signing_key)
    try:
        yield link
    finally:
        link.drop()


def _given_token() -> str | None:
    """Return the token of the environment.

    Raises:
        StepFailed: no header can carry it.
    """
    from jr2_infra import headers

    token = os.environ.get(names.ENV_TOKEN) or None
    if token is not None and not headers.can_carry(token):
        raise headers.uncarried(names.ENV_TOKEN)
    return token


def _values(cluster: ClusterTarget, token: str | None, out: Output) -> Values:
    """Return the token and the key that the Orchestrator proves itself with.

    Who gave a token may lack the right to read the key: then nothing can be proved, and that is
    said before the token is sent.

    Args:
        cluster: the Instance.
        token: the one of the environment.
        out: where it is said.

    Raises:
        StepFailed: no token was given, and the Secret does not give one.
    """
    if token is None:
        return cluster.values()
    try:
        return Values(token=token, signing_key=cluster.values().signing_key)
    except errors.StepFailed:
        out.warning(
            f"warning: the key that proves the Orchestrator cannot be read from Secret "
            f"{names.INSTANCE_SECRET} — the token of {names.ENV_TOKEN} is sent unproved"
        )
        return Values(token=token, signing_key=None)


def in_cluster(target: Target) -> ClusterTarget:
    """Resolve the options to an Instance in a cluster; nothing is asked of the cluster.

    Raises:
        StepFailed: not inside an Instance, another Kit version, or no context.
    """
    from jr2_infra import kube

    from . import instance

    namespace = instance.namespace(Path.cwd(), target.namespace)
    return ClusterTarget(context=kube.load_context(target.context), namespace=namespace)


def described(cluster: ClusterTarget) -> str:
    """Say which Instance it is, as the line of the contract does."""
    return f"context {cluster.context.name} / namespace {cluster.namespace}"


def _json(response: Any) -> dict[str, Any] | None:
    try:
        body = response.json()
    except ValueError:
        return None
    return body if isinstance(body, dict) else None
