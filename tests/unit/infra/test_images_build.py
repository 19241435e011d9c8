"""Parts of the build that need neither root nor a network: sources, wheels, launchers, the cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from jr2 import names
from jr2.errors import StepFailed
from jr2_infra.images import __main__ as command
from jr2_infra.images import store
from jr2_infra.images.build import content, recipe, wheels
from jr2_infra.images.build.image import Builder
from jr2_infra.images.build.layers import Layer
from jr2_infra.images.mirror import sources_list
from jr2_infra.images.mirror.archive import Archive
from tests.waiting import LIMIT

DEB822 = """\
# The distribution
Types: deb deb-src
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates trixie
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example/security
Suites: bookworm-security
Components: main
Enabled: no

Types: deb
URIs: http://vendor.example/apt
Suites: bookworm
Components: main
Signed-By: /usr/share/keyrings/vendor.gpg
"""
ONE_LINE = """\
# deb http://commented.example/debian bookworm main
deb [arch=amd64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://a.example/d bookworm main
deb-src http://a.example/d bookworm main
deb http://vendor.example/apt bookworm stable
deb http://b.example/d bookworm-security main non-free # trailing
"""


def test_apt_sources_in_the_deb822_form(tmp_path: Path) -> None:
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list.d/debian.sources").write_text(DEB822)
    assert sources_list.for_suite(tmp_path, "bookworm") == (
        "Types: deb\n"
        "URIs: http://mirror.example/debian\n"
        "Suites: bookworm bookworm-updates\n"
        "Components: main\n"
        "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
    )


def test_apt_sources_of_one_line(tmp_path: Path) -> None:
    (tmp_path / "sources.list").write_text(ONE_LINE)
    assert sources_list.for_suite(tmp_path, "bookworm") == (
        "Types: deb\nURIs: http://a.example/d\nSuites: bookworm\nComponents: main\n"
        "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
        "\n"
        "Types: deb\nURIs: http://b.example/d\nSuites: bookworm-security\nComponents: main\n"
    )


def test_no_apt_source_serves_the_suite(tmp_path: Path) -> None:
    (tmp_path / "sources.list").write_text("deb http://a.example/ubuntu noble main\n")
    assert sources_list.for_suite(tmp_path, "bookworm") == ""


def test_a_mirror_is_taken_instead_of_the_machine_s_sources(tmp_path: Path) -> None:
    (tmp_path / "sources.list").write_text("deb http://a.example/ubuntu noble main\n")
    assert sources_list.for_suite(tmp_path, "bookworm", mirror="http://m.example/debian/") == (
        "Types: deb\nURIs: http://m.example/debian\nSuites: bookworm bookworm-updates\n"
        "Components: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
        "\n"
        "Types: deb\nURIs: http://m.example/debian-security\nSuites: bookworm-security\n"
        "Components: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
    )


IMAGE_PINS = """\
fastapi==1 \\
    --hash=sha256:aa
pydantic==2 ; sys_platform != 'x' \\
    --hash=sha256:bb \\
    --hash=sha256:cc
uvicorn==3 \\
    --hash=sha256:dd
"""


def test_services_hold_what_the_kit_does_not() -> None:
    kit = "pydantic==2 ; sys_platform != 'x' \\\n    --hash=sha256:bb\n"
    assert wheels.services_requirements(IMAGE_PINS, kit) == (
        "fastapi==1 \\\n    --hash=sha256:aa\nuvicorn==3 \\\n    --hash=sha256:dd\n"
    )


def test_installed_packages_lose_what_tells_of_the_install(tmp_path: Path) -> None:
    info = tmp_path / "fastapi-1.dist-info"
    info.mkdir()
    for name in ("METADATA", "RECORD", "INSTALLER", "REQUESTED", "direct_url.json"):
        (info / name).write_text("")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/fastapi").write_text("")
    (tmp_path / ".lock").write_text("")
    (tmp_path / "fastapi.py").write_text("")
    wheels.tidy_packages(tmp_path)
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")}
    assert left == {"fastapi.py", "fastapi-1.dist-info", "fastapi-1.dist-info/METADATA"}


RESOLVED = """
lock-version = "1.0"

[[packages]]
name = "fastapi"
version = "1"
wheels = [
    {{ url = "{index}/fastapi-1-py3-none-any.whl", hashes = {{ sha256 = "cc" }} }},
    {{ url = "{index}/fastapi-1-cp311-cp311-manylinux_2_17_x86_64.whl", hashes = {{ sha256 = "{native}" }} }},
]
"""


def test_machine_code_is_chosen_before_a_wheel_for_any_platform() -> None:
    resolved = RESOLVED.format(index="https://index.example/a", native="aa")
    assert wheels.choose_wheels(resolved, IMAGE_PINS) == (
        wheels.Wheel("fastapi", "1", "aa", "fastapi-1-cp311-cp311-manylinux_2_17_x86_64.whl"),
    )


def test_a_wheel_that_is_not_among_the_hashes_is_refused() -> None:
    resolved = RESOLVED.format(index="https://index.example/a", native="ff")
    with pytest.raises(StepFailed, match="another digest than requirements/ commit to"):
        wheels.choose_wheels(resolved, IMAGE_PINS)


def test_a_pin_without_a_wheel_is_refused() -> None:
    with pytest.raises(StepFailed, match="fastapi 1 has no wheel for the Kit images"):
        wheels.choose_wheels('[[packages]]\nname = "fastapi"\nversion = "1"\n', IMAGE_PINS)


def make_checkout(root: Path) -> Path:
    kit = root / "runtime/kit/src/jr2"
    services = root / "runtime/services/src/jr2_runtime"
    for folder in (kit, services, services / "operator", services / "orchestrator"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__init__.py").write_text("")
    (services / "operator/__init__.py").write_text(
        "import sys\ndef main():\n    print(*sys.path, sep='\\n')\n    return 3\n"
    )
    return root


def test_sources_and_launchers_stand_in_their_places(tmp_path: Path) -> None:
    stage = tmp_path / "stage"
    stage.mkdir()
    content.place_sources(make_checkout(tmp_path), recipe.OPERATOR, stage)
    files = {path.relative_to(stage).as_posix() for path in stage.rglob("*") if path.is_file()}
    version = names.KIT_VERSION
    assert files == {
        "opt/jr2/bin/jr2-operator",
        "opt/jr2/bin/jr2-repo-cache",
        "opt/jr2/kit/jr2/__init__.py",
        f"opt/jr2/kit/jr2-{version}.dist-info/METADATA",
        "opt/jr2/services/jr2_runtime/__init__.py",
        "opt/jr2/services/jr2_runtime/operator/__init__.py",
        f"opt/jr2/services/jr2_runtime-{version}.dist-info/METADATA",
    }


def test_a_launcher_sees_the_kit_the_services_and_nothing_else(tmp_path: Path) -> None:
    stage = tmp_path / "stage"
    stage.mkdir()
    content.place_sources(make_checkout(tmp_path), recipe.OPERATOR, stage)
    launcher = stage / names.LAUNCHER_OPERATOR[1:]
    assert os.access(launcher, os.X_OK)
    text = launcher.read_text()
    assert text.startswith("#!/usr/bin/python3 -ISB\n")
    moved = text.replace('"/opt', f'"{stage}/opt')
    bare = subprocess.run(
        [sys.executable, "-ISB", "-c", "import sys; print(*sys.path, sep='\\n')"],
        capture_output=True,
        text=True,
        check=True,
    )
    done = subprocess.run(
        [sys.executable, "-ISB", "-c", moved],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
    )
    own = [f"{stage}{names.KIT_PATH}", f"{stage}{names.SERVICES_PATH}"]
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout.splitlines() == [*bare.stdout.splitlines(), *own]


def layer_in(folder: Path) -> Layer:
    path = folder / "layer.tar"
    path.write_bytes(b"x")
    return Layer(path=path, digest="sha256:aa", size=1, unpacked=1)


def test_a_layer_is_made_once(tmp_path: Path) -> None:
    cache = store.LayerCache(tmp_path)
    made: list[Path] = []

    def make(folder: Path) -> Layer:
        made.append(folder)
        return layer_in(folder)

    first = cache.entry("kit", "k1", make)
    again = store.LayerCache(tmp_path).entry("kit", "k1", make)
    assert first == again == tmp_path / "kit-k1"
    assert len(made) == 1
    assert cache.layer(again) == Layer(
        path=tmp_path / "kit-k1/layer.tar", digest="sha256:aa", size=1, unpacked=1
    )


def test_a_killed_build_leaves_no_layer(tmp_path: Path) -> None:
    cache = store.LayerCache(tmp_path)

    def die(folder: Path) -> Layer:
        layer_in(folder)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.entry("kit", "k1", die)
    assert not (tmp_path / "kit-k1").exists()
    assert cache.layer(cache.entry("kit", "k1", layer_in)).size == 1
    cache.prune()
    assert [path.name for path in tmp_path.iterdir()] == ["kit-k1"]


def test_old_layers_and_archives_go(tmp_path: Path) -> None:
    cache = store.LayerCache(tmp_path / "layers")
    for number in range(5):
        folder = cache.entry("kit", f"k{number}", layer_in)
        os.utime(folder, (number, number))
    cache.entry("debian", "d0", layer_in)
    cache.entry("kit", "k0", layer_in)
    cache.prune()
    assert {path.name for path in cache.root.iterdir()} == {
        *("debian-d0", "kit-k0", "kit-k3", "kit-k4")
    }

    for number in range(8):
        archive = tmp_path / f"jr2-operator-{number}.oci.tar"
        archive.write_bytes(b"")
        tmp_path.joinpath(f"jr2-operator-{number}.cdx.json").write_bytes(b"")
        os.utime(archive, (number, number))
    store.prune_archives(tmp_path)
    assert {path.name for path in tmp_path.glob("*.*")} == {
        f"jr2-operator-{number}.{kind}"
        for number in range(2, 8)
        for kind in ("oci.tar", "cdx.json")
    }


def test_a_second_build_waits_for_the_first(tmp_path: Path) -> None:
    waits, first_done = threading.Event(), threading.Event()
    order: list[str] = []

    def second() -> None:
        with store.locked(tmp_path, waits.set):
            order.append("second")

    thread = threading.Thread(target=second)
    with store.locked(tmp_path, first_done.set):
        thread.start()
        assert waits.wait(LIMIT)
        order.append("first")
    thread.join(LIMIT)
    assert order == ["first", "second"]
    assert not first_done.is_set()


def test_without_debian_the_build_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert command.main([]) == 1
    assert capsys.readouterr().err == (
        "refusing: Kit images are built as root on Debian or Ubuntu, from Debian packages, and "
        "this machine has no apt-get — set `kit_registry`, or use a released version of jr2\n"
    )


def test_who_is_not_root_is_refused() -> None:
    # Folders of pytest are closed to other users, and the program runs as one.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        Path(folder, "apt-get").touch(0o755)
        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY],
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": folder, "XDG_CACHE_HOME": f"{folder}/cache"},
        )
        assert os.listdir(folder) == ["apt-get"]
    assert (done.returncode, done.stderr) == (
        1,
        "refusing: Kit images are built as root on Debian or Ubuntu, from Debian packages, and "
        "you are not root — run: sudo scripts/build-kit-images\n",
    )


AS_NOBODY = """
import os, sys
from jr2_infra.images import __main__ as command
if os.geteuid() == 0:
    os.seteuid(65534)
sys.exit(command.main([]))
"""


def test_the_list_names_what_is_not_built(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert command.main(["--list"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [item["image"] for item in listed] == ["jr2-orchestrator", "jr2-operator", "jr2-harness"]
    assert {(item["digest"], item["archive"], item["sbom"]) for item in listed} == {
        (None, None, None)
    }
    assert list(tmp_path.iterdir()) == []


def test_an_architecture_without_lists_names_refresh(tmp_path: Path) -> None:
    said: list[str] = []
    builder = Builder(
        checkout=tmp_path,
        architecture="riscv64",
        uv=tmp_path / "uv",
        cache=store.LayerCache(tmp_path / "layers"),
        archive=Archive(tmp_path, "riscv64", "", said.append),
        say=said.append,
    )
    with pytest.raises(StepFailed, match=r"for riscv64: .*debian-base\.riscv64\.txt — resolve it:"):
        builder.packages("base")
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements/debian-base.riscv64.txt").write_text("libc6=2.36\n")
    with pytest.raises(StepFailed, match=r"riscv64\.txt: line 1 is not name=version=sha256"):
        builder.packages("base")
