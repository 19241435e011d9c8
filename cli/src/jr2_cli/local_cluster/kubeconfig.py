"""The context `jr2-local` in a person's kubeconfig: put in, and taken out again.

Only the entries of this name are touched. Every other entry stays with its comments, its quotes and
its place, and so do keys that we do not know, the owner and the permissions of the file. The file
is replaced whole, so a reader never sees half of it, and what was written is compared with what was
read before it takes the file's place.

Source: design §7.
"""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Mapping, MutableMapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jr2.errors import StepFailed
from jr2_infra import user_home

from . import layout
from .layout import Layout

if TYPE_CHECKING:
    from ruamel.yaml import YAML

_LISTS: Final = ("clusters", "contexts", "users")
_FOLDER: Final = ".kube"
_NO_WRAP: Final = 2**31 - 1


def paths(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """The kubeconfigs of a person, the first of which is written: KUBECONFIG, or `~/.kube/config`.

    Args:
        environ: the environment.
    """
    named = [name for name in environ.get("KUBECONFIG", "").split(os.pathsep) if name]
    if named:
        return tuple(Path(name).absolute() for name in named)
    return (user_home.folder(environ) / ".kube" / "config",)


def default_path(environ: Mapping[str, str]) -> Path:
    """The kubeconfig that is written."""
    return paths(environ)[0]


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


def put_context(
    config: MutableMapping[str, Any],
    entries: Mapping[str, Mapping[str, Any]],
    *,
    becomes_current: bool,
) -> None:
    """Put the context into a kubeconfig.

    Args:
        config: the kubeconfig; empty for a new one.
        entries: what `admin_entries` gives.
        becomes_current: whether it becomes the current context when the kubeconfig has none.
    """
    if not config:
        config.update(apiVersion="v1", kind="Config")
    for key in _LISTS:
        if not config.get(key):
            config[key] = []
        found = config[key]
        names = [entry.get("name") for entry in found]
        if layout.CONTEXT not in names:
            found.append(dict(entries[key]))
        elif found[names.index(layout.CONTEXT)] != entries[key]:
            found[names.index(layout.CONTEXT)] = dict(entries[key])
    if becomes_current and not config.get("current-context"):
        config["current-context"] = layout.CONTEXT


def take_context(config: MutableMapping[str, Any]) -> None:
    """Take the context out of a kubeconfig; no other context becomes the current one."""
    for key in _LISTS:
        found = config.get(key) or []
        for index in reversed(range(len(found))):
            if found[index].get("name") == layout.CONTEXT:
                del found[index]
    if config.get("current-context") == layout.CONTEXT:
        del config["current-context"]


def holds_nothing(config: Mapping[str, Any]) -> bool:
    """Tell whether a kubeconfig says no more than that it is one."""
    return not any(
        value for key, value in config.items() if key not in ("apiVersion", "kind", "preferences")
    )


def says_current(files: Sequence[Path]) -> bool:
    """Tell whether one of some kubeconfigs names the current context.

    kubectl takes it from the first file that has one: a context that became the current one in a
    file before would take the place of it.
    """
    for path in files:
        try:
            config = _load(path)
        except StepFailed:
            continue  # kubectl will say so itself; it is not ours to change
        if config.get("current-context"):
            return True
    return False


def merge(
    path: Path, entries: Mapping[str, Mapping[str, Any]], *, becomes_current: bool = True
) -> None:
    """Put the context into a kubeconfig; a new file is private to its owner.

    Args:
        path: the kubeconfig.
        entries: what `admin_entries` gives.
        becomes_current: whether it becomes the current context when the file has none.

    Raises:
        StepFailed: the file is no kubeconfig, or cannot be written.
    """
    present, config = _load(path), _load(path)
    put_context(config, entries, becomes_current=becomes_current)
    if config != present:
        _write(path, config)


def refresh(path: Path, entries: Mapping[str, Mapping[str, Any]]) -> None:
    """Bring the context up to date where it is; a file from which it was taken stays without it.

    Raises:
        StepFailed: the file is no kubeconfig, or cannot be written.
    """
    found = _load(path).get("users") or []
    if any(entry.get("name") == layout.CONTEXT for entry in found):
        merge(path, entries, becomes_current=False)


def unmerge(path: Path) -> None:
    """Take the context out of a kubeconfig; a file that then holds nothing goes.

    Raises:
        StepFailed: the file is no kubeconfig, or cannot be written.
    """
    with suppress(OSError):
        _part(Path(os.path.realpath(path))).unlink(missing_ok=True)
    if not path.exists():
        return
    present, config = _load(path), _load(path)
    take_context(config)
    if config == present:
        return
    if holds_nothing(config):
        path.unlink()
        if path.parent.name == _FOLDER:
            with suppress(OSError):
                path.parent.rmdir()
    else:
        _write(path, config)


def _load(path: Path) -> MutableMapping[str, Any]:
    """Read a kubeconfig with its comments."""
    from ruamel.yaml.error import YAMLError  # it takes its time to load

    try:
        text = path.read_text()
    except FileNotFoundError:
        text = ""
    except (OSError, UnicodeDecodeError) as error:
        raise StepFailed(f"cannot read the kubeconfig {path}: {error}") from error
    try:
        value = _yaml().load(text)
    except (YAMLError, ValueError) as error:
        # The error's own text quotes the file, which holds keys.
        raise StepFailed(f"the kubeconfig {path} is no YAML; nothing was changed in it") from error
    if value is None:
        return {}
    lists = isinstance(value, MutableMapping) and all(
        isinstance(value.get(key) or [], list)
        and all(isinstance(entry, MutableMapping) for entry in value.get(key) or [])
        for key in _LISTS
    )
    if not isinstance(value, MutableMapping) or not lists:
        raise StepFailed(f"{path} is no kubeconfig; nothing was changed in it")
    return value


def _yaml(indent: int = 0) -> YAML:
    from ruamel.yaml import YAML

    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = _NO_WRAP
    yaml.indent(mapping=2, sequence=2 + indent, offset=indent)
    return yaml


def _text(config: MutableMapping[str, Any], present: str) -> str:
    """The text of a kubeconfig; its lists are indented as they were in the text before."""
    before = _yaml().load(present) or {}
    columns = [
        before[key].lc.col for key in _LISTS if before.get(key) and not before[key].fa.flow_style()
    ]
    yaml = _yaml(columns[0] if columns else 0)
    yaml.explicit_start = present.startswith("---")
    text = io.StringIO()
    yaml.dump(config, text)
    return text.getvalue()


def _write(path: Path, config: MutableMapping[str, Any]) -> None:
    """Replace a file whole; an existing one keeps its owner and permissions, a link its target."""
    # A link that leads in a circle is named by the first that opens it.
    target = Path(os.path.realpath(path))
    part = _part(target)
    text = _text(config, target.read_text() if target.exists() else "")
    if _yaml().load(text) != config:
        raise StepFailed(
            f"cannot write the kubeconfig {path} without changing what else is in it — set "
            "KUBECONFIG to another file, then try again"
        )
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part.unlink(missing_ok=True)
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


def _part(target: Path) -> Path:
    """What is written before it takes the file's place; one name, so that none is left behind."""
    return target.with_name(f".{target.name}.jr2-part")


def _inline(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
