"""The few calls that the Converge makes to the API server itself, objects as plain dicts.

An answer of 404 to a read is `None`; every other refusal of the server is an `ApiError` with the
server's own words. A connection that fails stays an `httpx2` error: only a caller knows what it
means.

Source: design §5.2 (LIST of each kind, namespace by server-side apply), libraries.md §3.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from jr2 import names

from .closed_list import Kind

if TYPE_CHECKING:
    import httpx2

PAGE = 500


class ApiError(Exception):
    """The API server refused a request.

    Args:
        status: the HTTP status.
        message: the server's words.
        reason: its machine-readable reason, such as `Forbidden`.
    """

    def __init__(self, status: int, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.reason = reason


def words(error: Exception) -> str:
    """Return the first line of what an error says; its name, when it says nothing.

    A connection that the other side cuts fails without a word.
    """
    return str(error).splitlines()[0] if str(error) else type(error).__name__


class Api:
    """A client for plain objects; it may be used from several threads."""

    def __init__(self, http: httpx2.Client) -> None:
        self._http = http

    def get(self, path: str, **params: str) -> dict[str, Any] | None:
        """Return one object, or `None` when it does not exist."""
        return self._answer(self._http.get(path, params=params), missing_is_none=True)

    def objects(
        self, kind: Kind, namespace: str | None = None, **params: str
    ) -> list[dict[str, Any]]:
        """Return every object of a kind, each with its `apiVersion` and `kind`.

        A kind that the cluster does not know has no objects.
        """
        found: list[dict[str, Any]] = []
        query = {"limit": str(PAGE), **params}
        while True:
            page = self.get(kind.path(namespace), **query)
            if page is None:
                return found
            for item in page.get("items") or []:
                found.append({"apiVersion": kind.api_version, "kind": kind.kind, **item})
            token = page.get("metadata", {}).get("continue")
            if not token:
                return found
            query["continue"] = str(token)

    def apply(self, kind: Kind, obj: Mapping[str, Any]) -> dict[str, Any]:
        """Apply an object server-side as the manager `jr2`, with force."""
        metadata = obj["metadata"]
        response = self._http.patch(
            kind.path(metadata.get("namespace"), metadata["name"]),
            params={"fieldManager": names.FIELD_MANAGER, "force": "true"},
            content=json.dumps(obj).encode(),
            headers={"Content-Type": "application/apply-patch+yaml"},
        )
        return self._answer(response) or {}

    def json_patch(self, path: str, operations: list[dict[str, Any]]) -> dict[str, Any]:
        """Apply a JSON patch; a `test` that does not hold is an `ApiError` with status 422."""
        response = self._http.patch(
            path,
            params={"fieldManager": names.FIELD_MANAGER},
            content=json.dumps(operations).encode(),
            headers={"Content-Type": "application/json-patch+json"},
        )
        return self._answer(response) or {}

    def merge_patch(self, path: str, body: Mapping[str, Any], *, manager: str) -> dict[str, Any]:
        """Merge fields into an object as another field manager than `jr2`."""
        response = self._http.patch(
            path,
            params={"fieldManager": manager},
            content=json.dumps(body).encode(),
            headers={"Content-Type": "application/merge-patch+json"},
        )
        return self._answer(response) or {}

    def server_time(self) -> datetime:
        """Return the time by the API server's clock, to the second.

        Raises:
            ApiError: the server refused, or says no time.
        """
        response = self._http.get("/version")
        self._answer(response)
        try:
            return parsedate_to_datetime(response.headers["Date"])
        except (KeyError, ValueError) as error:
            raise ApiError(response.status_code, "the API server says no time") from error

    def create(self, path: str, obj: Mapping[str, Any]) -> dict[str, Any]:
        """Send an object that the server answers and does not keep, such as a review."""
        return self._answer(self._http.post(path, json=dict(obj))) or {}

    def dry_run_create(self, kind: Kind, obj: Mapping[str, Any]) -> dict[str, Any]:
        """Ask the server what it would store; nothing is stored."""
        response = self._http.post(
            kind.path(obj["metadata"].get("namespace")), params={"dryRun": "All"}, json=dict(obj)
        )
        return self._answer(response) or {}

    def delete(self, path: str, *, uid: str) -> bool:
        """Delete one object if it still has this uid; say whether it was there."""
        body = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": {"uid": uid},
        }
        response = self._http.request("DELETE", path, json=body)
        return self._answer(response, missing_is_none=True) is not None

    def text(self, path: str, **params: str) -> str | None:
        """Return the body of an answer that is not an object, such as a log."""
        response = self._http.get(path, params=params)
        if response.status_code == 404:
            return None
        if response.is_error:
            self._answer(response)
        return response.text

    def _answer(
        self, response: httpx2.Response, *, missing_is_none: bool = False
    ) -> dict[str, Any] | None:
        if response.status_code == 404 and missing_is_none:
            return None
        body: Any = None
        try:
            body = response.json()
        except ValueError:
            body = None
        if response.is_error:
            status = body if isinstance(body, dict) else {}
            message = str(status.get("message") or response.reason_phrase or "no reason given")
            raise ApiError(response.status_code, message, str(status.get("reason") or ""))
        return body if isinstance(body, dict) else {}
