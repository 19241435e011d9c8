"""What a state gives to an Effect, and what comes back: typed data that crosses processes as JSON.

Source: spec/authoring.md §2.12, spec/runtime.md §4 (result shapes).
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from pydantic import BaseModel, ConfigDict


class _Wire(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


# --- what a state gives ---------------------------------------------------------------------------
class CommandInput(_Wire):
    """What a run adds to a `Command`.

    Args:
        cwd: where it runs; the Worktree of the Workspace's one Repo Slot when absent.
        args: what is added to the end of `argv`.
        stdin: what it reads; nothing when absent.
    """

    cwd: PurePosixPath | str | None = None
    args: tuple[str, ...] = ()
    stdin: str | None = None


class HttpInput(_Wire):
    """What a run adds to an `Http`.

    Args:
        json_body: a body that is sent as JSON.
        text_body: a body that is sent as it is; at most one of the two.
        headers: more headers; those of the definition win.
    """

    json_body: Any = None
    text_body: str | None = None
    headers: dict[str, str] = {}


class HttpFileInput(_Wire):
    """What a run adds to an `HttpFile`.

    Args:
        file: the file of the Worktree that is sent.
        headers: more headers; those of the definition win.
    """

    file: PurePosixPath | str
    headers: dict[str, str] = {}


class PushInput(_Wire):
    """What a run adds to a `Push`.

    Args:
        branch: the branch at the remote; the Workspace's own when absent.
    """

    branch: str | None = None


class DispatchInput(_Wire):
    """What a run adds to a `Dispatch`.

    Args:
        input: the input of the run that is started, as its door takes it.
    """

    input: Any = None


# --- what comes back ------------------------------------------------------------------------------
class CommandResult(_Wire):
    """What a command left; each text is the last 64 KiB.

    Args:
        exit_code: 0 when it says that it worked.
        signal: the signal that ended it.
        stdout: its output.
        stderr: its other output.
    """

    exit_code: int
    signal: int | None = None
    stdout: str = ""
    stderr: str = ""


class HttpResult(_Wire):
    """What an endpoint answered, whatever its status.

    Args:
        status: the status code.
        headers: the headers, in lower case.
        body: at most 1 MiB.
        truncated: the body was longer.
    """

    status: int
    headers: dict[str, str] = {}
    body: str = ""
    truncated: bool = False


class PushResult(_Wire):
    """What a push moved.

    Args:
        remote: the url.
        ref: the full name of the branch.
        before: the commit that it was at; `None` for a new branch.
        after: the commit that it is at.
    """

    remote: str
    ref: str
    before: str | None = None
    after: str


class DispatchResult(_Wire):
    """The run that was started.

    Args:
        run_id: its id.
    """

    run_id: str
