"""The Assembly process: it loads one Assembly and makes its steps for the Orchestrator.

It is the only process in the cluster that runs an Instance's code. It has one connection, and lives
exactly as long: when the connection closes, the process ends at once, in the middle of a step or a
task as well, so that nothing of an Instance runs that the Orchestrator does not know of. Steps run
on the main thread one after another, tasks in an event loop beside them (`jr2.host_tasks`).

What user code prints goes to standard error; the connection is on a descriptor of its own.

Source: design §4.4; the frames are `jr2.frames`, the operations `jr2.host_wire`.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import select
import socket
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any, Final, NoReturn

from pydantic import BaseModel, ValidationError

from . import frames, host_wire, names, own_process, walk
from .accepted import problems
from .built import BuiltMachine
from .host_kept import Kept
from .host_tasks import TaskLoop
from .kernel import EventRefused, Step
from .snapshot import Snapshot, SnapshotError
from .tasks import reason
from .wire import AssemblyManifest

_PIECE: Final = 256 * 2**10
"""How many bytes are read at once."""
_LATEST: Final = 0.002
"""Seconds that an answer waits at most for the next step to end, but for the length of that step."""
_LOOK: Final = 0.0005
"""Seconds of steps after which the memory in use is looked at."""
_SHARE: Final = 0.6
"""Of the memory that is left after the load: what may be in use between two steps."""
_STACK: Final = 2 * 2**20
"""Bytes of a thread's stack, which count for the limit of the process."""
_CODE: Final = (
    "import os, sys; from pathlib import Path; kit, assembly, descriptor = sys.argv[1:]; "
    f"sys.path += [*kit.split(os.pathsep), os.path.join(assembly, {names.ASSEMBLY_PACKAGES!r})]; "
    "from jr2.host import main; sys.exit(main(Path(assembly), int(descriptor)))"
)


def launch_argv(python: str, kit_path: str, assembly: str, fd: int) -> list[str]:
    """Return the command of the process of one Assembly.

    Its import path is the standard library, the Kit, and the packages of the Assembly, in this
    order, so that an Assembly replaces nothing; the environment and site-packages are not read.

    Args:
        python: the interpreter, an absolute path.
        kit_path: the folder with the closure of `jr2`; several are joined with `os.pathsep`.
        assembly: the Assembly's folder, absolute.
        fd: the number of the inherited connection.
    """
    return [python, "-I", "-S", "-B", "-X", "utf8", "-c", _CODE, kit_path, assembly, str(fd)]


def main(assembly: Path, fd: int) -> NoReturn:
    """Serve one Assembly on a connected socket; ends the process when the connection closes.

    Args:
        assembly: the Assembly's folder, with `assembly.json` at its root.
        fd: the connected stream socket; no child process inherits it.
    """
    own_process.go_first()
    own_process.hide()
    connection = socket.socket(fileno=fd)
    connection.set_inheritable(False)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    threading.stack_size(_STACK)
    threading.Thread(target=_end_with, args=(connection,), name="watch", daemon=True).start()
    channel = _Channel(connection)
    host = Host(assembly, channel)
    splitter = frames.Splitter()
    # One buffer: a new one of this length for each piece would be three calls of the kernel.
    buffer = memoryview(bytearray(_PIECE))
    looked = time.monotonic()
    while True:
        try:
            read = connection.recv_into(buffer)
            if not read and splitter.within:
                raise frames.FrameError("the peer closed inside a frame")
            received = splitter.feed(buffer[:read])
        except (frames.FrameError, OSError) as bad:
            print(f"the connection is of no more use: {bad}", file=sys.stderr)
            _end(1)
        if not read:
            _end(0)
        began = time.monotonic()
        for header, body in received:
            host.handle(header, body)
            now = time.monotonic()
            # What a step takes in less time is little, and the look at it is a call of the kernel.
            if now - looked >= _LOOK:
                looked = now
                if host.is_worn():
                    # What waits is made in the next process: one run's leak is not another's fault.
                    channel.flush()
                    print("the Assembly process holds too much memory, and ends", file=sys.stderr)
                    _end(1)
            if now - began >= _LATEST:
                began = now
                channel.flush()
        channel.flush()


class _Channel:
    """The way back: frames from two threads, one at a time.

    Answers to requests that came together go back together, for each send wakes the other side.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._kept: list[bytes] = []

    def keep(self, reply: BaseModel, body: bytes = b"") -> None:
        """Have one reply go with the next flush.

        Raises:
            frames.FrameError: it is longer than a frame may be; nothing is sent of it.
        """
        self.keep_text(_text(reply), body)

    def keep_text(self, reply: bytes, body: bytes = b"") -> None:
        """Have one reply, as JSON text, go with the next flush.

        Raises:
            frames.FrameError: it is longer than a frame may be; nothing is sent of it.
        """
        frame = frames.frame(reply, body)
        with self._lock:
            self._kept.append(frame)

    def flush(self) -> None:
        """Send what is kept."""
        if self._kept:
            with self._lock:
                self._send()

    def send(self, reply: BaseModel, body: bytes = b"") -> None:
        """Send one reply, behind what is kept.

        Raises:
            frames.FrameError: it is longer than a frame may be; nothing was sent.
        """
        self.keep(reply, body)
        self.flush()

    def _send(self) -> None:
        kept, self._kept = self._kept, []
        try:
            self._connection.sendall(b"".join(kept))
        except OSError:
            _end(0)


class Host:
    """Answers requests; holds the loaded Machines and nothing of any run.

    Args:
        assembly: the Assembly's folder.
        channel: where answers go.
    """

    def __init__(self, assembly: Path, channel: _Channel) -> None:
        self._assembly = assembly
        self._channel = channel
        self._machines: dict[str, BuiltMachine[Any, Any, Any]] = {}
        self._kept = Kept()
        self._tasks = TaskLoop(channel.send)
        self._steps = False
        self._memory = _Memory()

    def is_worn(self) -> bool:
        """Whether user code has left so much behind that the next step might lack memory.

        Only a process that makes steps ends for that; a task that runs out of memory ends its own.
        """
        return self._steps and self._memory.is_short()

    def handle(self, header: bytes, body: bytes) -> None:
        """Answer one request; whatever goes wrong is an answer too."""
        number = 0
        try:
            request = host_wire.Request.__pydantic_validator__.validate_json(header)
            number = request.id
            self._serve(request, body)
        except _NoAnswer as broken:
            self._channel.keep(host_wire.Broken(id=number, error=str(broken)))
        except ValidationError as bad:
            text = f"no request: {problems(bad)}"
            self._channel.keep(host_wire.Broken(id=number or _number(header), error=text))
        except EventRefused as refused:
            self._channel.keep(
                host_wire.Refused(id=number, code=refused.code, error=refused.message)
            )
        except Exception as error:
            traceback.print_exc()
            self._channel.keep(host_wire.Broken(id=number, error=reason(error)))

    def _serve(self, request: host_wire.Request, body: bytes) -> None:
        if request.op == "load":
            loaded = self._load(request.id)
            # What was loaded stays, so the steps do not wait while it is searched for garbage.
            gc.freeze()
            self._memory.start()
            self._channel.send(loaded)
        elif request.op == "start":
            self._steps = True
            self._start(request, body)
        elif request.op == "step":
            self._steps = True
            self._step(request, body)
        elif request.op == "task":
            self._task(request)
        elif request.op == "ping":
            self._tasks.ping(request.id)
        else:
            self._tasks.stop(request.run_id or "", _needed(request.key, "key"))

    # --- load -------------------------------------------------------------------------------------
    def _load(self, number: int) -> host_wire.Loaded:
        found: list[str] = []
        workflows: list[host_wire.LoadedWorkflow] = []
        manifest = self._manifest(found)
        if manifest is not None and not found:
            folder = self._assembly / names.ASSEMBLY_INSTANCE
            config = walk.load_config(folder)
            if config.problem is not None:
                found.append(config.problem.message)
            held = {file.stem for file in walk.workflow_files(folder)}
            found += (
                f'workflow "{name}": the Assembly does not hold {names.WORKFLOWS_DIR}/{name}.py'
                for name in manifest.workflows
                if name not in held
            )
            loaded = walk.load_workflows(folder)
            found += (problem.message for problem in loaded.problems)
            if config.config is not None:
                declared = walk.rules.Declared.of(config.config)
                found += (one.message for one in walk.rules.problems(loaded.workflows, declared))
            self._machines = {one.name: one.machine for one in loaded.workflows}
            for one in loaded.workflows:
                try:
                    workflows.append(_described(one.name, one.machine))
                except Exception as error:
                    found.append(
                        f'workflow "{one.name}": its Machine cannot be described: {reason(error)}'
                    )
        return host_wire.Loaded(
            id=number,
            kit_version="" if manifest is None else manifest.kit_version,
            instance="" if manifest is None else manifest.instance,
            workflows=workflows,
            problems=found,
        )

    def _manifest(self, found: list[str]) -> AssemblyManifest | None:
        file = self._assembly / names.ASSEMBLY_MANIFEST
        try:
            manifest = AssemblyManifest.model_validate_json(file.read_bytes())
        except OSError as missing:
            found.append(f"{names.ASSEMBLY_MANIFEST} cannot be read: {missing.strerror}")
            return None
        except ValidationError as bad:
            found.append(f"{names.ASSEMBLY_MANIFEST} is no manifest: {problems(bad)}")
            return None
        if manifest.kit_version != names.KIT_VERSION:
            found.append(
                f"the Assembly cannot be loaded: it is for Kit version {manifest.kit_version}; "
                f"this Orchestrator is {names.KIT_VERSION}"
            )
        return manifest

    # --- runs -------------------------------------------------------------------------------------
    def _start(self, request: host_wire.Request, body: bytes) -> None:
        machine = self._machine(request)
        try:
            input = json.loads(body) if body else None
        except ValueError:
            raise EventRefused(400, "the input is not JSON") from None
        step = machine.start(input, _needed(request.run_id, "run_id"))
        if self._stepped(request, machine, None, step) is not None:
            raise EventRefused(
                400, f"the run would be over the limit of {names.MAX_SNAPSHOT} bytes at its start"
            )

    def _step(self, request: host_wire.Request, body: bytes) -> None:
        machine = self._machine(request)
        if body:
            try:
                snapshot = machine.load(body)
            except SnapshotError as bad:
                raise _NoAnswer(str(bad)) from bad
        else:
            kept = self._kept.take(
                machine.chart, _needed(request.run_id, "run_id"), _needed(request.seq, "seq")
            )
            if kept is None:
                self._channel.keep(host_wire.Missing(id=request.id))
                return
            snapshot = kept
        step = machine.step(snapshot, _needed(request.event, "event"))
        too_long = self._stepped(request, machine, snapshot, step)
        if too_long is not None:
            self._stepped(request, machine, snapshot, machine.fault(snapshot, too_long))

    def _stepped(
        self,
        request: host_wire.Request,
        machine: BuiltMachine[Any, Any, Any],
        before: Snapshot | None,
        step: Step,
    ) -> str | None:
        """Answer with a step, or return why it is too long to be stored."""
        after = step.snapshot
        body = machine.dump(after)
        if len(body) > names.MAX_SNAPSHOT:
            return (
                f"the run's snapshot would have {len(body)} bytes, over the limit of "
                f"{names.MAX_SNAPSHOT}"
            )
        view = machine.view_json(after)
        try:
            self._channel.keep_text(stepped_json(request.id, len(view), step), view + body)
        except frames.FrameError as over:
            return f"the step says too much: {over}"
        if request.run_id is not None and request.seq is not None:
            # A context that this step wrote was read again at its end, and nobody saw it since.
            wrote = not after.children and (before is None or after.context is not before.context)
            self._kept.put(request.run_id, request.seq + 1, after, len(body), is_new=wrote)
        return None

    def _task(self, request: host_wire.Request) -> None:
        machine = self._machine(request).at(request.machine or ())
        if machine is None:
            raise _NoAnswer(f"no child Machine at {'/'.join(request.machine or ())!r}")
        slot = _needed(request.slot, "slot")
        if slot not in machine.tasks:
            raise _NoAnswer(f'machine "{machine.id}" has no task "{slot}"')
        key = _needed(request.key, "key")
        self._tasks.start(
            request.id, request.run_id or "", key, lambda: machine.run_task(slot, request.input)
        )

    def _machine(self, request: host_wire.Request) -> BuiltMachine[Any, Any, Any]:
        name = _needed(request.workflow, "workflow")
        try:
            return self._machines[name]
        except KeyError:
            listed = ", ".join(sorted(self._machines)) or "none"
            raise _NoAnswer(f'no Workflow "{name}" is loaded (loaded: {listed})') from None


class _Memory:
    """How much of its memory the process uses, by the measure that its limit is in."""

    def __init__(self) -> None:
        self._most: float | None = None
        """In pages, as the kernel counts them."""
        self._facts = -1

    def start(self) -> None:
        """Take what is in use now as what the Assembly needs."""
        limit, _ = resource.getrlimit(resource.RLIMIT_DATA)
        if limit == resource.RLIM_INFINITY:
            return
        if self._facts < 0:
            self._facts = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        now = self._used()
        self._most = now + max(0, limit // resource.getpagesize() - now) * _SHARE

    def is_short(self) -> bool:
        """Whether more is in use than should be."""
        return self._most is not None and self._used() > self._most

    def _used(self) -> int:
        return int(os.pread(self._facts, 256, 0).split(b" ", 6)[5])


class _NoAnswer(Exception):
    """The request cannot be served; the text is the answer."""


def stepped_json(number: int, view: int, step: Step) -> bytes:
    """Return the `host_wire.Stepped` of a step as JSON text."""
    if not step.commands and step.receipt is None:
        return b'{"kind":"stepped","id":%d,"view":%d,"commands":[],"receipt":null}' % (number, view)
    return _text(
        host_wire.Stepped(id=number, view=view, commands=list(step.commands), receipt=step.receipt)
    )


def _text(reply: BaseModel) -> bytes:
    return reply.__pydantic_serializer__.to_json(reply)


def _described(name: str, machine: BuiltMachine[Any, Any, Any]) -> host_wire.LoadedWorkflow:
    return host_wire.LoadedWorkflow(
        name=name,
        machine_id=machine.id,
        input=machine.input_schema(),
        shape=machine.shape(),
        document=machine.document(),
    )


def _number(header: bytes) -> int:
    """Return the number of something that is no request, as far as it has one."""
    with contextlib.suppress(ValueError, RecursionError):
        found = json.loads(header)
        if isinstance(found, dict) and isinstance(found.get("id"), int):
            return int(found["id"])
    return 0


def _needed(value: Any, field: str) -> Any:
    if value is None:
        raise _NoAnswer(f"no request: {field} is missing")
    return value


def _end_with(connection: socket.socket) -> NoReturn:
    """End the process when the peer closes, whatever the other threads are doing."""
    poll = select.poll()
    poll.register(connection, select.POLLRDHUP)
    while True:
        if any(flags for _, flags in poll.poll()):
            _end(0)


def _end(code: int) -> NoReturn:
    with contextlib.suppress(Exception):
        sys.stderr.flush()
    os._exit(code)
