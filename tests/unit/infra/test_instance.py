"""The Instance as the Converge reads it: its folder, its config, its Workflows, in a child."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jr2.errors import StepFailed
from jr2_infra import processes
from jr2_infra.facts import instance, kit
from tests.waiting import LIMIT

if TYPE_CHECKING:
    from tests.unit.infra.conftest import MakeInstance

CANARY = "CANARY-5f3a"
WORKFLOW = """\
import os
from jr2 import Context, Machine

class Ctx(Context):
    pass

print("a user's print")
m = Machine("one", context=Ctx, start=lambda i: Ctx())
m.state("waiting", initial=True)
machine = m.build()
"""


def test_the_folder_is_the_first_one_upwards(tmp_path: Path) -> None:
    (tmp_path / "jr2_config.py").touch()
    (tmp_path / "a" / "b").mkdir(parents=True)

    assert instance.find_root(tmp_path / "a" / "b") == tmp_path


def test_outside_an_instance(tmp_path: Path) -> None:
    with pytest.raises(StepFailed) as raised:
        instance.find_root(tmp_path)

    assert raised.value.printed == (
        "error: not inside a jr2 instance — no jr2_config.py found walking up from cwd"
    )


def test_what_users_print_breaks_nothing(make_instance: MakeInstance) -> None:
    root = make_instance(
        {
            "jr2_config.py": "import os, sys\nfrom jr2 import Config\nprint('x' * 200_000)\n"
            "os.write(1, b'raw')\nconfig = Config(name='one')\n",
            "workflows/one.py": WORKFLOW,
        }
    )

    read = instance.read_instance(root)

    assert read.config.name == "one"
    assert read.problems == ()
    (workflow,) = read.workflows
    assert (workflow.name, workflow.file, workflow.machine_id) == (
        "one",
        "workflows/one.py",
        "one",
    )
    assert workflow.parts.sandboxes == []


def test_the_config_sees_its_variables_and_a_workflow_none(
    make_instance: MakeInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values of `.env` and of CI reach the config by name; nothing else of the environment does."""
    root = make_instance(
        {
            ".env": "export FROM_FILE='x'\n# NOT_SET=1\n",
            "jr2_config.py": "import os\nfrom jr2 import Config, Secret\n"
            "config = Config(secrets=[Secret('A', value=os.environ.get('FROM_FILE')),"
            " Secret('B', value=os.environ['FROM_CI']), Secret('C', value=os.getenv('GOTTEN'))],\n"
            " platforms=sorted(os.environ))\n",
            "workflows/one.py": WORKFLOW.replace(
                "machine = ", "assert 'FROM_FILE' not in os.environ\nmachine = "
            ),
        }
    )
    for name in ("FROM_FILE", "FROM_CI", "GOTTEN", "OTHER", "PYTHONPATH"):
        monkeypatch.setenv(name, f"{CANARY}-{name}")

    read = instance.read_instance(root)

    assert [s.value and s.value.get_secret_value() for s in read.config.secrets] == [
        f"{CANARY}-FROM_FILE",
        f"{CANARY}-FROM_CI",
        f"{CANARY}-GOTTEN",
    ]
    seen = set(read.config.platforms or ())
    assert {"FROM_FILE", "FROM_CI", "GOTTEN", "PATH", "HOME"} <= seen
    assert not {"OTHER", "PYTHONPATH"} & seen
    assert read.problems == ()


def test_only_the_config_is_read_for_a_verb_that_needs_no_more(make_instance: MakeInstance) -> None:
    root = make_instance({"workflows/one.py": "raise SystemExit"})

    assert instance.read_config(root).name is None


def test_a_value_never_enters_an_error(
    make_instance: MakeInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", CANARY)
    root = make_instance({"jr2_config.py": "import os\nint(os.environ['TOKEN'])\n"})

    with pytest.raises(StepFailed) as raised:
        instance.read_config(root)

    assert raised.value.printed == (
        f"error: {root}/jr2_config.py did not load — ValueError (line 2: int(os.environ['TOKEN']))"
    )


@pytest.mark.parametrize("value", ["CANARY\nsecond", "CANARY\udcff\\t'\""])
@pytest.mark.parametrize(
    "code",
    [
        "int(os.environ['TOKEN'])",
        "print(repr(os.environ['TOKEN']), flush=True); os._exit(7)",
        "print(os.environ['TOKEN'][1:5], flush=True); os._exit(7)",
    ],
)
def test_no_form_of_a_value_enters_an_error(
    make_instance: MakeInstance, monkeypatch: pytest.MonkeyPatch, value: str, code: str
) -> None:
    monkeypatch.setenv("TOKEN", value)
    root = make_instance({"jr2_config.py": f"import os\n{code}\n"})

    with pytest.raises(StepFailed) as raised:
        instance.read_config(root)

    assert "ANAR" not in raised.value.printed


def test_a_workflow_does_not_see_what_the_config_kept(
    make_instance: MakeInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the cluster there are no values, so the answer of the laptop must not rest on them."""
    monkeypatch.setenv("TOKEN", "CANARY-long")
    root = make_instance(
        {
            "jr2_config.py": "from jr2 import Config\nfrom kept import TOKEN\nconfig = Config()\n",
            "kept.py": "import os\nTOKEN = os.environ.get('TOKEN', 'none')\n",
            ".env": "TOKEN=x\n",
            "workflows/one.py": "from jr2_config import TOKEN\n{}[TOKEN.split('-')[0]]\n",
        }
    )

    (problem,) = instance.read_instance(root).problems

    assert "KeyError: 'none'" in problem.message


def test_a_config_that_ends_its_process(
    make_instance: MakeInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", CANARY)
    root = make_instance(
        {
            "jr2_config.py": "import os, sys\nprint('saw', os.environ['TOKEN'], flush=True)\n"
            "os._exit(7)\n"
        }
    )

    with pytest.raises(StepFailed) as raised:
        instance.read_config(root)

    assert raised.value.printed == (
        f"error: {root}/.venv/bin/python ended with the code 7 while it loaded "
        f"{root}/jr2_config.py:\n  saw <TOKEN>"
    )


def test_a_workflow_that_ends_its_process_leaves_the_config(make_instance: MakeInstance) -> None:
    root = make_instance({"workflows/one.py": "import os\nos._exit(9)\n"})

    read = instance.read_instance(root)

    assert read.config.name is None
    assert [p.prefix + p.message for p in read.problems] == [
        f"error: {root}/.venv/bin/python ended with the code 9 while it loaded "
        f"{root}/workflows/one.py"
    ]


def test_a_config_that_is_killed_is_said_by_its_signal(make_instance: MakeInstance) -> None:
    """As by a kernel that has no memory left for it."""
    root = make_instance({"jr2_config.py": "import os\nos.kill(os.getpid(), 9)\n"})

    with pytest.raises(StepFailed) as raised:
        instance.read_config(root)

    assert raised.value.printed == (
        f"error: {root}/.venv/bin/python ended with the signal 9 while it loaded "
        f"{root}/jr2_config.py"
    )


@dataclass
class Shown:
    """A reporter that keeps what it was to show, and shows nothing before `after` is there."""

    after: Path
    texts: list[str | None] = field(default_factory=list)

    def line(self, text: str, *, code: str = "line") -> None:
        raise AssertionError(text)

    warning = line

    def progress(self, text: str | None) -> None:
        while not self.after.exists():
            time.sleep(0.01)
        self.texts.append(text)

    def confirm(self, question: str) -> bool:
        raise AssertionError(question)


class Stopped:
    """A clock on which no time passes while a process begins its work."""

    @staticmethod
    def monotonic() -> float:
        return 0.0


@pytest.mark.parametrize("code", ["while True:\n    pass\n", "import time\ntime.sleep(900)\n"])
def test_code_that_never_ends_is_stopped_and_named(
    make_instance: MakeInstance, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str
) -> None:
    """The limit is waited for when the code runs, however long the machine took to come there."""
    assert instance._LIMIT == 30
    assert instance._SLOW == 2
    monkeypatch.setattr(instance, "_LIMIT", 1.0)
    monkeypatch.setattr(instance, "_SLOW", 0.1)
    monkeypatch.setattr(processes, "time", Stopped)
    runs = tmp_path / "runs"
    endless = f"open({str(runs)!r}, 'w').close()\n{code}"
    root = make_instance({"workflows/a.py": WORKFLOW, "workflows/inf.py": endless})
    shown = Shown(after=runs)

    read = instance.read_instance(root, reporter=shown)

    assert [p.message for p in read.problems] == [
        f"{root}/.venv/bin/python took more than 1s while it loaded {root}/workflows/inf.py"
    ]
    assert shown.texts == ["load: jr2_config.py and the Workflows", None]


def test_a_config_that_never_ends_is_named(
    make_instance: MakeInstance, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(instance, "_LIMIT", 1.0)
    monkeypatch.setattr(instance, "_SLOW", 0.1)
    monkeypatch.setattr(processes, "time", Stopped)
    runs = tmp_path / "runs"
    endless = f"open({str(runs)!r}, 'w').close()\nwhile True:\n    pass\n"
    root = make_instance({"jr2_config.py": endless})

    with pytest.raises(StepFailed, match=r"took more than 1s while it loaded \S+/jr2_config.py$"):
        instance.read_instance(root, reporter=Shown(after=runs))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux bounds the data of a process")
@pytest.mark.parametrize("file", ["jr2_config.py", "workflows/greedy.py"])
def test_code_that_takes_too_much_memory_is_stopped_and_named(
    make_instance: MakeInstance, file: str
) -> None:
    """Memory that is not written to takes none of the machine, and counts all the same."""
    piece = "import time\nx = bytes({size})\ntime.sleep(900)\n"
    root = make_instance({"workflows/a.py": WORKFLOW, file: piece.format(size=17 * 2**28)})

    assert said_of(root) == (
        f"{root}/.venv/bin/python ended with the code 5 while it loaded {root}/{file}:\n"
        "  it takes more than 4096 MiB of memory"
    )

    (root / file).write_text(piece.format(size=5 * 2**30))
    assert re.search(r"did not load — MemoryError \(.*line 2", said_of(root))


def said_of(root: Path) -> str:
    """Return the one problem of a folder."""
    try:
        [problem] = instance.read_instance(root).problems
    except StepFailed as failed:
        return str(failed)
    return problem.message


def test_modules_that_take_much_memory_load(make_instance: MakeInstance) -> None:
    """A gigabyte that is used, and more addresses than the machine has memory."""
    much = (
        "import mmap\nx = bytes(2**30)\n"
        "y = mmap.mmap(-1, 2**40, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | "
        "getattr(mmap, 'MAP_NORESERVE', 0), prot=mmap.PROT_READ)\n"
    )
    root = make_instance({"workflows/much.py": much + WORKFLOW})

    assert [found.name for found in instance.read_instance(root).workflows] == ["much"]


@pytest.mark.parametrize("kernel", [True, False])
def test_the_child_ends_with_its_parent(make_instance: MakeInstance, kernel: bool) -> None:
    """kill -9 of the command: nothing of it can run any more, and the child must not spin on."""
    said = "import os, sys\nos.write(2, f'{os.getpid()}\\n'.encode())\nwhile True:\n    pass\n"
    root = make_instance({"workflows/inf.py": said})
    child = [str(instance._CHILD), str(kit.running_copy().path), str(root), "all"]
    # The parent passes its own standard error on, so the pipe of that ends when the child has.
    start = (
        "import subprocess, sys\n"
        "child = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)\nchild.wait()\n"
    )
    python = [str(root / kit.INTERPRETER), "-I"]
    if not kernel:
        # Without the module there is only the watch on the pipe.
        (instance_path,) = (root / ".venv" / "lib").glob("python3*/site-packages")
        (instance_path / "none.pth").write_text("import sys; sys.modules['ctypes'] = None\n")
    with subprocess.Popen(
        [sys.executable, "-c", start, *python, *child], stderr=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stderr is not None
        pid = int(parent.stderr.readline())
        os.kill(pid, 0)
        parent.kill()
        try:
            ended, _, _ = select.select([parent.stderr], [], [], LIMIT)
            assert ended
            assert parent.stderr.read() == ""
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_a_thread_that_was_left_behind_does_not_keep_the_child(make_instance: MakeInstance) -> None:
    root = make_instance(
        {
            "workflows/one.py": "import threading\n"
            "threading.Thread(target=threading.Event().wait).start()\n" + WORKFLOW
        }
    )

    assert len(instance.read_instance(root).workflows) == 1


@pytest.mark.parametrize(
    ("folder", "rule"),
    [
        ("My_App", 'it holds "M", and only a-z, 0-9 and "-" are legal'),
        ("a" * 64, "it has 64 characters, and a label has at most 63"),
    ],
)
def test_a_folder_that_cannot_name_an_instance(
    make_instance: MakeInstance, folder: str, rule: str
) -> None:
    root = make_instance(name=folder)

    with pytest.raises(StepFailed) as raised:
        instance.instance_name(root, instance.read_config(root))

    assert raised.value.printed == (
        f'error: the folder\'s name "{folder}" cannot name an Instance: {rule} — give the Instance '
        f"another one: name in {root}/jr2_config.py"
    )
