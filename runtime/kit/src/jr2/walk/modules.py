"""How the modules of an Instance folder are found.

They are loaded under the synthetic package `jr2_instance`, so that relative imports work
(`from ._helpers import …` in `workflows/`) and a Workflow's name may hold a hyphen. Packages beside
`workflows/` are imported by their own names; a distribution of the environment and the standard
library win over them. Their bytecode is neither written nor read: an edit within one second, with
no change of size, must not run the code of before.

Source: spec/authoring.md §2.1.
"""

from __future__ import annotations

import importlib.util
import sys
import types
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
)
from pathlib import Path
from typing import Any, Final

from .. import names

PACKAGE: Final = "jr2_instance"
"""The synthetic package of the folder's own modules."""
CONFIG_MODULE: Final = "jr2_config"
_KIT: Final = __name__.split(".")[0]


class _Fresh(SourceFileLoader):
    """Loads a module from its source, always."""

    def get_code(self, fullname: str) -> Any:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


_opened: list[Path] = []


def open_folder(folder: Path) -> None:
    """Make the folder the one whose modules are found; another one is forgotten."""
    if _opened == [folder]:
        return
    for name in [n for n in sys.modules if n == CONFIG_MODULE or n.split(".")[0] == PACKAGE]:
        del sys.modules[name]
    for before in _opened:
        sys.path.remove(str(before))
    if not _opened:
        sys.path_hooks.insert(0, _find_fresh)
    _opened[:] = [folder]
    for path in [p for p in sys.path_importer_cache if own_relative(p, folder) is not None]:
        del sys.path_importer_cache[path]
    sys.path.append(str(folder))
    for name, place in (
        (PACKAGE, folder),
        (f"{PACKAGE}.{names.WORKFLOWS_DIR}", folder / names.WORKFLOWS_DIR),
    ):
        package = types.ModuleType(name)
        package.__path__ = [str(place)]
        package.__package__ = name
        sys.modules[name] = package
    setattr(
        sys.modules[PACKAGE],
        names.WORKFLOWS_DIR,
        sys.modules[f"{PACKAGE}.{names.WORKFLOWS_DIR}"],
    )


def forget_own(folder: Path) -> None:
    """Forget the modules of the folder: each is loaded anew by who imports it next."""
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == _KIT:
            # A checkout of the Kit may lie in the folder.
            continue
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and own_relative(file, folder) is not None:
            del sys.modules[name]


def _find_fresh(path: str) -> FileFinder:
    if not _opened or own_relative(path, _opened[0]) is None:
        raise ImportError(f"{path} is not of the Instance")
    return FileFinder(path, (ExtensionFileLoader, EXTENSION_SUFFIXES), (_Fresh, SOURCE_SUFFIXES))


def own_relative(path: str, folder: Path) -> str | None:
    """Return a path from the folder when it is the Instance's own: not in `.venv` or the like."""
    try:
        relative = Path(path).relative_to(folder)
    except ValueError:
        return None
    if any(part.startswith(".") or part == "site-packages" for part in relative.parts):
        return None
    return relative.as_posix()


def import_config(folder: Path) -> types.ModuleType:
    """Import `jr2_config.py` of the folder that is open."""
    # By its place and not by its name: a distribution with a module of that name cannot take it.
    known = sys.modules.get(CONFIG_MODULE)
    if known is not None:
        return known
    spec = FileFinder(str(folder), (_Fresh, SOURCE_SUFFIXES)).find_spec(CONFIG_MODULE)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(f"there is no {names.CONFIG_FILE}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[CONFIG_MODULE] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[CONFIG_MODULE]
        raise
    return module
