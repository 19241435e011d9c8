"""The few requests that bring a new cluster up: read an object, and apply one.

Source: design §7.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final

import httpx2

from jr2 import names
from jr2.errors import StepFailed

from . import layout
from .layout import Layout

_MANAGER: Final = names.LOCAL_CONTEXT
_SECONDS: Final = 10.0

_PLACES: Final[dict[tuple[str, str], str]] = {
    ("v1", "Namespace"): "/api/v1/namespaces",
    ("v1", "Service"): "/api/v1/namespaces/{namespace}/services",
    ("v1", "ServiceAccount"): "/api/v1/namespaces/{namespace}/serviceaccounts",
    ("v1", "ConfigMap"): "/api/v1/namespaces/{namespace}/configmaps",
    ("discovery.k8s.io/v1", "EndpointSlice"): (
        "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
    ),
    ("storage.k8s.io/v1", "StorageClass"): "/apis/storage.k8s.io/v1/storageclasses",
    ("rbac.authorization.k8s.io/v1", "ClusterRole"): (
        "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    ),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"): (
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    ),
    ("rbac.authorization.k8s.io/v1", "Role"): (
        "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles"
    ),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): (
        "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings"
    ),
}


class Api:
    """The API server, as the user that makes the first objects.

    Args:
        files: where its certificate lies.
    """

    def __init__(self, files: Layout) -> None:
        context = ssl.create_default_context(cafile=files.certificate("ca"))
        context.load_cert_chain(files.certificate("bootstrap"), files.key("bootstrap"))
        self._client = httpx2.Client(
            base_url=layout.SERVER, verify=context, timeout=_SECONDS, trust_env=False
        )

    def __enter__(self) -> Api:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.close()

    def read(self, path: str) -> dict[str, Any] | None:
        """Read an object or a list; `None` while there is none, or no answer."""
        try:
            answer = self._client.get(path)
        except httpx2.HTTPError:
            return None
        if answer.status_code != 200:
            return None
        value = answer.json()
        assert isinstance(value, dict)
        return value

    def version(self) -> str | None:
        """The version of the API server, without `v`; `None` while it does not answer."""
        found = self.read("/version")
        return None if found is None else str(found["gitVersion"]).removeprefix("v")

    def apply(self, wanted: Mapping[str, Any]) -> None:
        """Apply an object on the server's side.

        Raises:
            StepFailed: the API server said no, or did not answer.
        """
        metadata = wanted["metadata"]
        place = _PLACES[wanted["apiVersion"], wanted["kind"]]
        path = place.format(namespace=metadata.get("namespace"))
        what = f"{wanted['kind']} {metadata['name']}"
        try:
            answer = self._client.patch(
                f"{path}/{metadata['name']}",
                params={"fieldManager": _MANAGER, "force": "true"},
                content=json.dumps(wanted),
                headers={"Content-Type": "application/apply-patch+yaml"},
            )
        except httpx2.HTTPError as error:
            raise StepFailed(f"the API server did not take {what}: {error}") from error
        if answer.status_code >= 400:
            raise StepFailed(f"the API server did not take {what}: {answer.text.strip()}")
