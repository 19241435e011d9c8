"""The far side of `warm`: the command `jr2` with its modules loaded, forked anew for each run.

An Instance's own interpreter runs this file. It reads a request a line, as JSON, and answers the
exit code of the run. Each run is a process of its own, with the arguments, the environment, the
folder and the streams of its request, and ends as the process `jr2` ends.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from typing import Any, NoReturn

import jr2_cli.application
import jr2_cli.commands.down
import jr2_cli.commands.up
import jr2_cli.dispatch  # noqa: F401 (loaded before the fork)
import jr2_infra.down
import jr2_infra.session  # noqa: F401
from jr2_cli.main import main


def serve() -> None:
    """Answer requests until nobody sends any more."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", buffering=0)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    # What is loaded stays where it is, and no run pays for looking through it.
    gc.collect()
    gc.freeze()
    for line in requests:
        child = os.fork()
        if child == 0:
            _become(json.loads(line))
        _, status = os.waitpid(child, 0)
        answers.write(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def _become(request: dict[str, Any]) -> NoReturn:
    """Be the command of a request, to its end."""
    code = 1
    try:
        for stream, path in ((1, request["stdout"]), (2, request["stderr"])):
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(file, stream)
            os.close(file)
        os.chdir(request["cwd"])
        os.environ.clear()
        os.environ.update(request["environment"])
        sys.argv = request["command"]
        code = main()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    serve()
