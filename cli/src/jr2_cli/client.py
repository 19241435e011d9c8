"""The HTTP API of the Orchestrator, as the verbs use it.

An answer is read by the shapes of `jr2.wire`, and fields that a later version adds are let
through. Every answer that is not a success becomes an `ApiFailed` with the Orchestrator's own
words; a connection that breaks becomes a `ConnectionLost`. A token enters no message.

Source: spec/converge.md §2.7, spec/runtime.md §1.4.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, TypeVar
from urllib.parse import quote

import httpx2
from pydantic import ValidationError

from jr2 import errors, names, repo_identity, trace, wire

from . import sse

_Shape = TypeVar("_Shape", bound=wire.Wire)

_WORKFLOW: Final = re.compile(r"[A-Za-z0-9_-]+")
_TIMEOUT: Final = httpx2.Timeout(30.0, connect=10.0)
_SILENCE: Final = 45.0
"""Seconds without a byte after which a feed counts as broken; a live one says something each 15."""


class ConnectionLost(errors.StepFailed):
    """The connection to the Orchestrator could not be made, or broke.

    Args:
        message: what was tried, and what happened.
        was_sent: a request may have reached it.
    """

    def __init__(self, message: str, *, was_sent: bool = True) -> None:
        self.was_sent = was_sent
        super().__init__(message)


class ApiFailed(errors.StepFailed):
    """The Orchestrator answered with an error.

    Args:
        status: the HTTP status.
        path: the path that was asked.
        said: the Orchestrator's own words.
    """

    def __init__(self, status: int, path: str, said: str, hint: str | None = None) -> None:
        self.status = status
        self.path = path
        self.said = said
        super().__init__(said if hint is None else f"{said}\n{hint}")


class Orchestrator:
    """A client of one Orchestrator; use it as a context manager.

    Args:
        url: its address, without a path.
        token: the Instance token; `None` asks only what is open to all.
        transport: another way to send; tests give one.
    """

    def __init__(
        self, url: str, token: str | None, *, transport: httpx2.BaseTransport | None = None
    ) -> None:
        shown = repo_identity.shown(url)
        headers = {"Accept": "application/json", trace.HEADER: trace.traceparent(os.environ)}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        try:
            # Proxies of the environment are for other hosts than a forward on 127.0.0.1.
            self._http = httpx2.Client(
                base_url=url,
                headers=headers,
                timeout=_TIMEOUT,
                transport=transport,
                trust_env=not _is_local(url),
            )
        except (httpx2.InvalidURL, ValueError) as error:
            raise errors.Usage(f"{shown!r} is not a URL: {error}") from error
        self._url = shown

    def __enter__(self) -> Orchestrator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def health(self) -> wire.Health:
        """Ask what is deployed; this route is open to all."""
        return self.parse(wire.Health, self._ask("GET", "/healthz"), "/healthz")

    def start_run(self, workflow: str, value: Mapping[str, Any], key: str) -> wire.RunStarted:
        """Start a run of a Workflow.

        Args:
            workflow: its name.
            value: the input of the run.
            key: the same key starts the same run.

        Raises:
            ApiFailed: 404 for an unknown Workflow, 400 for an input that does not fit its door.
        """
        path = f"/workflows/{_segment(workflow)}/runs"
        if not _WORKFLOW.fullmatch(workflow):
            # No Workflow has such a name, and as a part of a path it could lead to another route.
            known = ", ".join(map(str, self._list("/workflows"))) or "none"
            said = f"no workflow {json.dumps(workflow, ensure_ascii=False)} — workflows: {known}"
            raise ApiFailed(404, path, said, self._skew(404, path))
        return self.parse(wire.RunStarted, self._ask("POST", path, body=value, key=key), path)

    def live_runs(self) -> list[Any]:
        """List the live runs, as the Orchestrator gave them."""
        return self._list("/runs")

    def run(self, run_id: str) -> dict[str, Any]:
        """Return the status of a run with its open Gates, as the Orchestrator gave it.

        Raises:
            ApiFailed: 404 for an unknown run.
        """
        path = f"/runs/{_segment(run_id)}"
        answer = self._ask("GET", path)
        if not isinstance(answer, dict):
            raise self._unknown_shape(path)
        return answer

    def resolve(self, prefix: str) -> wire.Resolved:
        """Find the runs whose id starts with `prefix`."""
        path = "/runs/resolve"
        return self.parse(wire.Resolved, self._ask("GET", path, query={"prefix": prefix}), path)

    def assemblies(self) -> dict[str, Any]:
        """Return the Assemblies that are held, as the Orchestrator gave them."""
        answer = self._ask("GET", "/assemblies")
        if not isinstance(answer, dict):
            raise self._unknown_shape("/assemblies")
        return answer

    def cancel(self, run_id: str, key: str) -> None:
        """Cancel a run, once for a key."""
        self._ask("POST", f"/runs/{_segment(run_id)}/events", body={"type": "CANCEL"}, key=key)

    def answer_gate(self, run_id: str, gate: str, event: Mapping[str, Any], key: str) -> None:
        """Deliver an event, `{"type": …, …}`, to an open Gate of a run, once for a key.

        Raises:
            ApiFailed: 404 when no such Gate is open, 400 when it does not take the event.
        """
        path = f"/runs/{_segment(run_id)}/gates/{_segment(gate)}/events"
        self._ask("POST", path, body=event, key=key)

    @contextlib.contextmanager
    def follow(self, run_id: str) -> Iterator[Iterator[sse.Event]]:
        """Open the feed of a run: first where it stands, then each thing that happens.

        Raises:
            ApiFailed: 404 for an unknown run.
            ConnectionLost: the connection broke; also while the feed is read.
        """
        path = f"/runs/{_segment(run_id)}/events"
        timeout = httpx2.Timeout(_SILENCE, connect=10.0)
        with (
            self._connection(),
            self._http.stream(
                "GET", path, headers={"Accept": "text/event-stream"}, timeout=timeout
            ) as response,
        ):
            if response.is_error:
                response.read()
                raise self._failed(response, path)
            yield sse.events(response.iter_lines())

    def parse(self, shape: type[_Shape], value: object, path: str) -> _Shape:
        """Read a value of the Orchestrator by a shape of `jr2.wire`.

        Raises:
            StepFailed: it has another shape.
        """
        try:
            return shape.model_validate(value, extra="ignore")
        except ValidationError:
            # The library's words quote the values, and a run's context may hold anything.
            raise self._unknown_shape(path) from None

    def _list(self, path: str) -> list[Any]:
        answer = self._ask("GET", path)
        if not isinstance(answer, list):
            raise self._unknown_shape(path)
        return answer

    def _ask(
        self,
        method: Literal["GET", "POST"],
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
        key: str | None = None,
    ) -> Any:
        headers = {} if key is None else {names.HEADER_IDEMPOTENCY_KEY: key}
        with self._connection():
            response = self._http.request(method, path, json=body, params=query, headers=headers)
        if response.is_error or response.is_redirect:
            raise self._failed(response, path)
        try:
            return json.loads(response.content)
        except ValueError:
            raise self._unknown_shape(path) from None

    @contextlib.contextmanager
    def _connection(self) -> Iterator[None]:
        try:
            yield
        except httpx2.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise ConnectionLost(
                f"cannot reach the Orchestrator at {self._url} ({reason})",
                was_sent=not isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout),
            ) from error

    def _failed(self, response: httpx2.Response, path: str) -> ApiFailed:
        said = _own_words(response)
        return ApiFailed(response.status_code, path, said, self._skew(response.status_code, path))

    def _skew(self, status: int, path: str) -> str | None:
        """Ask what is deployed, while the way to it is still open, and say it when it explains."""
        if status not in (404, 405):
            return None
        try:
            deployed = self.health()
        except errors.Jr2Error:
            return None
        return skew_line(path, deployed)

    def _unknown_shape(self, path: str) -> errors.StepFailed:
        return errors.StepFailed(
            f"the Orchestrator at {self._url} answered {path} in a shape that jr2 "
            f"{names.KIT_VERSION} does not know"
        )


def skew_line(path: str, deployed: wire.Health) -> str | None:
    """Say which Kit version and Assembly are deployed, when that may be why a path is unknown.

    The Instance's own version explains an unknown route; its Assembly explains an unknown
    Workflow. An unknown run of the same version is neither.

    Args:
        path: the path that was answered with 404 or 405.
        deployed: what `/healthz` says.
    """
    if deployed.version == names.KIT_VERSION and not path.startswith("/workflows/"):
        return None
    assembly = f" (assembly {deployed.hash[: names.SHORT_HASH]})" if deployed.hash else ""
    return (
        f"  this instance runs jr2 {deployed.version}{assembly}, this command is jr2 "
        f"{names.KIT_VERSION} — `jr2 up` converges it"
    )


def _own_words(response: httpx2.Response) -> str:
    """Return the Orchestrator's `error`, or the bare status when something else answered."""
    if response.status_code == httpx2.codes.UNAUTHORIZED:
        return (
            f"{response.request.url.host} does not accept the Instance token (HTTP 401) — "
            f"{names.ENV_TOKEN} gives another one"
        )
    try:
        body = json.loads(response.content)
    except ValueError:
        body = None
    if isinstance(body, dict) and isinstance(body.get("error"), str):
        return str(body["error"])
    return f"HTTP {response.status_code} for {response.request.url.path}"


def _segment(text: str) -> str:
    # `.` and `..` would be folded away as path segments.
    return quote(text, safe="").replace(".", "%2E") if text in (".", "..") else quote(text, safe="")


def _is_local(url: str) -> bool:
    return httpx2.URL(url).host in ("127.0.0.1", "localhost", "::1")
