"""A contestant in a process of its own: with its own memory, and its own choice of modules."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from headgate.errors import HeadgateError

WORKER = Path(__file__).with_name("worker.py")
ROOT = Path(__file__).parents[2]  # of the repository, from which `benchmarks` is imported


def child_environment() -> dict[str, str]:
    """Return the variables with which a child process imports `benchmarks`, wherever it runs."""
    inherited = os.environ.get("PYTHONPATH", "")
    # The repository first; a path that is listed twice stays in its first place.
    paths = [str(ROOT), *filter(None, inherited.split(os.pathsep))]
    return {"PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}


def processor_seconds() -> float:
    """Return the processor's time of this process and all that descend from it, which still run.

    A clock for work that other processes do, such as Java's and the workers that it starts. Whoever
    else uses the machine does not count.
    """
    children: dict[int, list[tuple[int, int]]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            # what follows the name, which may have any signs: state, parent, …
            fields = stat.read_text().rpartition(")")[2].split()
            children.setdefault(int(fields[1]), []).append(
                (int(stat.parent.name), int(fields[11]) + int(fields[12]))
            )
    ticks, pending = 0, [os.getpid()]
    while pending:
        for child, used in children.get(pending.pop(), ()):
            ticks += used
            pending.append(child)
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


class Process:
    """Calls commands that `module.function(*arguments)` offers in another Python process.

    With `pure` that process imports the named package from its Python sources, though compiled
    modules of it are installed.
    """

    def __init__(self, module: str, function: str, *arguments: str | Path, pure: str = "") -> None:
        self._child = subprocess.Popen(
            # -P: the worker's directory must not shadow modules of other packages
            [sys.executable, "-P", str(WORKER), pure, module, function, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env=os.environ | child_environment(),
        )

    def __call__(self, command: str) -> Any:
        """Return the value that the command gives, when it is done."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        with suppress(BrokenPipeError):  # then there is no answer either
            self._child.stdin.write(json.dumps(command) + "\n")
            self._child.stdin.flush()
        # An empty line is the end of the pipe: the process is gone.
        line = self._child.stdout.readline()
        if not line:
            raise HeadgateError(f"a process of the benchmark ended before it answered `{command}`")
        reply = json.loads(line)
        if "error" in reply:
            raise HeadgateError(f"`{command}` failed in a process: {reply['error']}")
        return reply["value"]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # After an error nobody waits for a process that may still be computing.
        if kind is not None:
            self._child.kill()
        with suppress(BrokenPipeError), self._child:
            pass  # closes its input, upon which it ends
