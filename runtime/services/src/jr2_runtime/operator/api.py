"""The operator's own requests to the API, apart from the watches that kopf holds.

Source: design §6.4 (lightkube reads and writes).
"""

from __future__ import annotations

import asyncio

import httpx2
import kopf
from lightkube import AsyncClient, KubeConfig
from lightkube.core.exceptions import ConfigError
from lightkube.generic_resource import create_namespaced_resource

from jr2 import names

from .health import Reading

KINDS = {
    "sandboxes": create_namespaced_resource(
        names.API_GROUP, names.API_VERSION, "Sandbox", "sandboxes"
    ),
    "repos": create_namespaced_resource(names.API_GROUP, names.API_VERSION, "Repo", "repos"),
}
"""Plural → resource of every kind that the operator watches."""

_CONNECTION_TIMEOUT = httpx2.Timeout(5.0)
_REFUSALS = frozenset({401, 403, 404})
"""No permission, or no such kind; other errors are those of a server in trouble."""


def open_client() -> AsyncClient:
    """Connect as the pod's service account, or as the kubeconfig says outside a cluster."""
    return AsyncClient(config=KubeConfig.from_env(), timeout=_CONNECTION_TIMEOUT, trust_env=False)


def connection_info(settings: kopf.OperatorSettings) -> kopf.ConnectionInfo | None:
    """Return what kopf connects with: the pod's service account, or what the kubeconfig says.

    In a pod the address is that of the environment, so the watches do not hang on the cluster's
    DNS. kopf asks again when the API stops accepting the token, and gets the one that the kubelet
    wrote since.
    """
    try:
        account = KubeConfig.from_service_account().get()
    except ConfigError:
        return kopf.login_with_kubeconfig(settings=settings)
    assert account is not None, "a service account's config has one context"
    return kopf.ConnectionInfo(
        server=account.cluster.server,
        ca_path=account.cluster.certificate_auth,
        token=account.user.token if account.user else None,
        default_namespace=account.namespace,
    )


async def read_kind(client: AsyncClient, plural: str, deadline: float) -> Reading:
    """List at most one object of a kind in all namespaces and say how the API answered.

    Args:
        client: the connection.
        plural: the kind.
        deadline: seconds after which no answer counts as none.
    """
    try:
        async with asyncio.timeout(deadline):
            async for _ in client.list(KINDS[plural], namespace="*", chunk_size=1):
                break
    except TimeoutError:
        return Reading(answer="unreachable", detail=f"no answer in {deadline:g} s")
    except httpx2.HTTPStatusError as error:
        refused = error.response.status_code in _REFUSALS
        return Reading(answer="refused" if refused else "unreachable", detail=str(error))
    except httpx2.HTTPError as error:
        return Reading(answer="unreachable", detail=f"{type(error).__name__}: {error}")
    return Reading(answer="listed")
