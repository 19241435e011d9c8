"""The API server as a pod reaches it: the address of the environment, the token of the kubelet.

Source: design §6.4, spec/runtime.md §1.12.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx2

from jr2 import names

from .following import SILENT_AFTER


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """How the API server is reached from inside a pod."""

    url: str
    namespace: str
    token_file: Path
    ca_file: Path | None

    @classmethod
    def find(cls, environment: Mapping[str, str], account: Path) -> Cluster | None:
        """Return the cluster that this pod runs in; `None` outside of one."""
        host = environment.get("KUBERNETES_SERVICE_HOST")
        namespace = environment.get(names.ENV_NAMESPACE)
        if not host or not namespace or not (account / "token").is_file():
            return None
        port = environment.get("KUBERNETES_SERVICE_PORT", "443")
        shown = f"[{host}]" if ":" in host else host
        return cls(
            url=f"https://{shown}:{port}",
            namespace=namespace,
            token_file=account / "token",
            ca_file=account / "ca.crt",
        )

    def client(self, transport: httpx2.AsyncBaseTransport | None = None) -> httpx2.AsyncClient:
        """Return a client that reads the token at each request: the kubelet renews it."""

        async def authorize(request: httpx2.Request) -> None:
            token = await asyncio.to_thread(self.token_file.read_text)
            request.headers["Authorization"] = f"Bearer {token.strip()}"

        verify = ssl.create_default_context(cafile=self.ca_file) if self.ca_file else True
        return httpx2.AsyncClient(
            base_url=self.url,
            verify=verify,
            transport=transport,
            timeout=httpx2.Timeout(10.0, read=SILENT_AFTER),
            event_hooks={"request": [authorize]},
            trust_env=False,
        )
