"""Which of the machine's apt sources serve the Debian suite that Kit images are made of.

A machine may name many repositories. Only the main component of the suite itself and of its
updates is taken, and only where Debian's own key, or no key, is named; so a vendor's repository
never reaches an image. A machine without one, such as Ubuntu, is told a mirror.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

_UPDATES = ("", "-updates", "-security")
MIRROR_VARIABLE = "JR2_DEBIAN_MIRROR"
"""The address of Debian's archive, for a machine whose own apt sources do not serve the suite."""
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def for_suite(apt: Path, suite: str, *, mirror: str | None = None) -> str:
    """Return the sources for `suite` in the deb822 form, or an empty text.

    Args:
        apt: the folder `/etc/apt`.
        suite: the suite's code name.
        mirror: the address of Debian's archive, taken instead of what `apt` names; its security
            updates are at the same address with `-security`.
    """
    if mirror:
        address = mirror.rstrip("/")
        return "\n".join(
            f"Types: deb\nURIs: {uri}\nSuites: {suites}\nComponents: main\nSigned-By: {_KEYRING}\n"
            for uri, suites in (
                (address, f"{suite} {suite}-updates"),
                (f"{address}-security", f"{suite}-security"),
            )
        )
    suites = {f"{suite}{update}" for update in _UPDATES}
    kept = []
    for stanza in _stanzas(apt):
        wanted = [name for name in stanza.get("suites", "").split() if name in suites]
        if (
            wanted
            and "deb" in stanza.get("types", "").split()
            and "main" in stanza.get("components", "").split()
            and stanza.get("enabled", "yes").lower() != "no"
            and ("signed-by" not in stanza or "debian-archive" in stanza["signed-by"])
        ):
            lines = ["Types: deb", f"URIs: {stanza['uris']}", f"Suites: {' '.join(wanted)}"]
            lines.append("Components: main")
            if "signed-by" in stanza:
                lines.append(f"Signed-By: {stanza['signed-by']}")
            kept.append("\n".join(lines) + "\n")
    return "\n".join(kept)


def _stanzas(apt: Path) -> Iterator[Mapping[str, str]]:
    parts = apt / "sources.list.d"
    for path in [apt / "sources.list", *sorted(parts.glob("*.list"))]:
        if path.is_file():
            yield from _one_line_entries(path.read_text())
    for path in sorted(parts.glob("*.sources")):
        yield from _deb822_stanzas(path.read_text())


def _deb822_stanzas(text: str) -> Iterator[Mapping[str, str]]:
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    stanza: dict[str, str] = {}
    field = ""
    for line in [*lines, ""]:
        if not line.strip():
            if "uris" in stanza:
                yield stanza
            stanza = {}
        elif line[0] in " \t":
            stanza[field] += f" {line.strip()}"
        elif ":" in line:
            name, value = line.split(":", 1)
            field = name.strip().lower()
            stanza[field] = value.strip()


def _one_line_entries(text: str) -> Iterator[Mapping[str, str]]:
    for line in text.splitlines():
        words = line.split("#", 1)[0].split()
        if not words or words[0] != "deb":
            continue
        stanza = {"types": "deb"}
        rest = words[1:]
        if rest and rest[0].startswith("["):
            closing = next(place for place, word in enumerate(rest) if word.endswith("]"))
            options = " ".join(rest[: closing + 1]).strip("[]").split()
            rest = rest[closing + 1 :]
            for option in options:
                name, _, value = option.partition("=")
                stanza[name.lower()] = value
        if len(rest) >= 3:
            yield {**stanza, "uris": rest[0], "suites": rest[1], "components": " ".join(rest[2:])}
