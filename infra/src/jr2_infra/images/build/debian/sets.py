"""Which Debian packages are asked for, and what of them no image holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

SUITE: Final = "bookworm"


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageSet:
    """Packages that are resolved together, above those of the set below.

    Args:
        name: the middle of `requirements/debian-<name>.<architecture>.txt`.
        asks: what is asked for; Debian's own dependencies come with it, recommended ones do not.
        drops: dependencies that only a package's scripts, or a program that no image starts, need;
            a set above drops them too, unless it asks for them.
        links: path → target of links that scripts and packages that are dropped would have made.
        below: the set on which it lies; it holds nothing that this one or those below it hold.
    """

    name: str
    asks: tuple[str, ...]
    drops: frozenset[str] = frozenset()
    links: Mapping[str, str] = field(default_factory=dict)
    below: PackageSet | None = None

    def from_the_lowest(self) -> Iterator[PackageSet]:
        """Yield the sets on which this one lies, the lowest first, and then itself."""
        if self.below is not None:
            yield from self.below.from_the_lowest()
        yield self


BASE: Final = PackageSet(
    name="base",
    asks=("base-files", "ca-certificates", "libc-bin", "python3", "tzdata"),
    drops=frozenset({"debconf", "dpkg", "mawk", "openssl", "tar"}),
    links={"usr/lib/ssl/cert.pem": "/etc/ssl/certs/ca-certificates.crt"},
)
"""Debian's Python and what it needs: the lowest layer of every image."""

HARNESS: Final = PackageSet(
    name="harness",
    asks=(
        *("bash", "coreutils", "dash", "diffutils", "findutils", "git", "grep", "gzip", "less"),
        *("libstdc++6", "mawk", "patch", "procps", "ripgrep", "sed", "tar", "tini"),
    ),
    drops=frozenset(
        {
            *("debianutils", "git-man", "init-system-helpers", "usrmerge"),
            # Perl beyond perl-base: git needs it for mail, Subversion and CVS alone.
            *("perl", "perl-modules-5.36", "libperl5.36", "liberror-perl", "libgdbm6"),
            *("libfile-find-rule-perl", "libnumber-compare-perl", "libtext-glob-perl"),
            "libgdbm-compat4",
        }
    ),
    links={"usr/bin/awk": "mawk", "usr/bin/pager": "less"},
    below=BASE,
)
"""What an Agent finds in the stock Sandbox Image, and what the tree in `/opt/jr2` is made of."""

TOOLS: Final = PackageSet(name="tools", asks=("patchelf",), below=HARNESS)
"""Programs that make the tree of the Harness, and that no image holds."""

COMPILER: Final = PackageSet(
    name="compiler",
    asks=("gcc", "libc6-dev", "libpython3.11-dev"),
    drops=frozenset(
        {
            # Sanitizers and runtimes of other languages, and headers that Python's do not include.
            *("libasan8", "libatomic1", "libgomp1", "libitm1", "liblsan0", "libquadmath0"),
            *("libtsan2", "libubsan1", "libgprofng0", "libpython3.11", "libexpat1-dev"),
            *("libhwasan0", "libc-dev-bin", "libcrypt-dev", "libnsl-dev", "libtirpc-dev"),
            *("rpcsvc-proto", "zlib1g-dev"),
        }
    ),
    below=BASE,
)
"""What makes machine code of the Kit's kernel, and no image holds (ADR-0114)."""

SETS: Final = (BASE, HARNESS, TOOLS, COMPILER)
"""Each after the one below it."""

LEFT_OUT: Final = (
    "/usr/share/applications",
    "/usr/share/bash-completion",
    "/usr/share/bug",
    "/usr/share/debconf",
    "/usr/share/doc",
    "/usr/share/doc-base",
    "/usr/share/git-core/contrib",
    "/usr/share/gitweb",
    "/usr/share/info",
    "/usr/share/lintian",
    "/usr/share/locale",
    "/usr/share/man",
    "/usr/share/menu",
    "/usr/share/perl5",
    "/usr/share/pixmaps",
    "/usr/share/zoneinfo/right",
    "/usr/share/zsh",
    "/usr/lib/git-core/git-cvs*",
    "/usr/lib/git-core/git-imap-send",
    "/usr/lib/git-core/git-send-email",
    "/usr/lib/mime",
    "/usr/lib/*/gconv",
    "/usr/lib/python3.*/test",
    "/usr/lib/python3.*/ensurepip",
    "/usr/lib/python3.*/idlelib",
    "/usr/lib/systemd",
    "/etc/apt",
    "/etc/cron.*",
    "/etc/dpkg",
    "/etc/init.d",
    "/etc/kernel",
    "/etc/logrotate.d",
    "/etc/update-motd.d",
)
"""Paths of Debian packages, with all below them, that no image holds."""
