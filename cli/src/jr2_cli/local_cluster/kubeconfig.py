"""The context `jr2-local` in a person's kubeconfig: put in, and taken out again.

Only the entries of this name are touched; every other entry, the order of them, and the owner and
permissions of the file stay. The file is replaced whole, so a reader never sees half of it.

Source: design §7.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from jr2.errors import StepFailed

from . import layout
from .layout import Layout

_LISTS = ("clusters", "contexts", "users")


def default_path(environ: Mapping[str, str]) -> Path:
    """The kubeconfig that is written: the first file of KUBECONFIG, or `~/.kube/config`.

    Args:
        environ: the environment.
    """
    for name in environ.get("KUBECONFIG", "").split(os.pathsep):
        if name:
            return Path(name).absolute()
    return Path(environ.get("HOME") or Path.home()) / ".kube" / "config"


def admin_entries(files: Layout) -> dict[str, dict[str, Any]]:
    """The cluster, the user and the context, with jr2's own certificate in them."""
    return {
        "clusters": {
            "name": layout.CONTEXT,
            "cluster": {
                "server": layout.SERVER,
                "certificate-authority-data": _inline(files.certificate("ca")),
            },
        },
        "users": {
            "name": layout.CONTEXT,
            "user": {
                "client-certificate-data": _inline(files.certificate("admin")),
                "client-key-data": _inline(files.key("admin")),
            },
        },
        "contexts": {
            "name": layout.CONTEXT,
            "context": {"cluster": layout.CONTEXT, "user": layout.CONTEXT},
        },
    }


def with_context(
    present: Mapping[str, Any], entries: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """A kubeconfig with the context in it; it becomes the current one when there is none.

    Args:
        present: the kubeconfig as it is; empty for a new one.
        entries: what `admin_entries` gives.
    """
    merged = {"apiVersion": "v1", "kind": "Config", **present}
    for key in _LISTS:
        found = list(merged.get(key) or [])
        names = [entry.get("name") for entry in found]
        if layout.CONTEXT in names:
            found[names.index(layout.CONTEXT)] = dict(entries[key])
        else:
            found.append(dict(entries[key]))
        merged[key] = found
    if not merged.get("current-context"):
        merged["current-context"] = layout.CONTEXT
    return merged


def without_context(present: Mapping[str, Any]) -> dict[str, Any]:
    """A kubeconfig without the context; no other context becomes the current one."""
    left = dict(present)
    for key in _LISTS:
        if key in left:
            left[key] = [e for e in left[key] or [] if e.get("name") != layout.CONTEXT]
    if left.get("current-context") == layout.CONTEXT:
        del left["current-context"]
    return left


def holds_nothing(config: Mapping[str, Any]) -> bool:
    """Tell whether a kubeconfig says no more than that it is one."""
    return not any(
        value for key, value in config.items() if key not in ("apiVersion", "kind", "preferences")
    )


def merge(path: Path, entries: Mapping[str, Mapping[str, Any]]) -> None:
    """Put the context into a kubeconfig; a new file is private to its owner.

    Raises:
        StepFailed: the file is no kubeconfig, or cannot be written.
    """
    present = _read(path)
    merged = with_context(present, entries)
    if merged != present:
        _write(path, merged)


def unmerge(path: Path) -> None:
    """Take the context out of a kubeconfig; a file that then holds nothing goes.

    Raises:
        StepFailed: the file is no kubeconfig, or cannot be written.
    """
    if not path.exists():
        return
    present = _read(path)
    left = without_context(present)
    if left == present:
        return
    if holds_nothing(left):
        path.unlink()
    else:
        _write(path, left)


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise StepFailed(f"cannot read the kubeconfig {path}: {error}") from error
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        # The error's own text quotes the file, which holds keys.
        raise StepFailed(f"the kubeconfig {path} is no YAML; nothing was changed in it") from error
    if value is None:
        return {}
    lists = isinstance(value, dict) and all(
        isinstance(value.get(key) or [], list)
        and all(isinstance(entry, dict) for entry in value.get(key) or [])
        for key in _LISTS
    )
    if not isinstance(value, dict) or not lists:
        raise StepFailed(f"{path} is no kubeconfig; nothing was changed in it")
    return value


def _write(path: Path, config: Mapping[str, Any]) -> None:
    """Replace a file whole; an existing one keeps its owner and permissions, a link its target."""
    target = path.resolve()
    part = target.with_name(f".{target.name}.jr2-{os.getpid()}")
    text = yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True)
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
            if target.exists():
                status = target.stat()
                os.fchown(file.fileno(), status.st_uid, status.st_gid)
                os.fchmod(file.fileno(), status.st_mode & 0o7777)
        os.replace(part, target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise StepFailed(f"cannot write the kubeconfig {path}: {error.strerror}") from error


def _inline(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
