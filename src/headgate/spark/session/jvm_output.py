"""Relays what Spark's JVM writes to stderr: held back while it starts, then line by line.

Held back, it gives the reason when the start fails. Relayed through `sys.stderr`, it does not tear
a live table on the terminal apart. Three things are never shown, as they mean nothing to a user:

- the JVM's remarks on its own modules;
- a StackOverflowError of a thousand lines when a streaming query is stopped inside `foreachBatch`,
  as Spark searches the error with a regular expression;
- an idle Python worker that finds the JVM gone.
"""

from __future__ import annotations

import atexit
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock, Thread

from headgate.errors import make_printable

CLOSE_TIMEOUT = 5  # seconds, in case something else holds the pipe open

_REMARK = re.compile(r"WARNING: (Using incubator modules|package [\w.]+ not in [\w.]+)")
_OVERFLOW = re.compile(r'Exception in thread "stream execution thread .*StackOverflowError')
_FRAME = re.compile(r"\tat |\t\.\.\. ")
_TRACEBACK = "Traceback (most recent call last):"
# workers that end together write over one another: the first line may come more than once
_IDLE = re.compile(r"(Traceback.*\n|  File .*pyspark/daemon\.py.*\n(    .*\n)?)+BrokenPipeError")


class JvmOutput:
    """The reading end of a pipe; give `writer` to the JVM as its stderr, then close it."""

    def __init__(self) -> None:
        self._reader, self.writer = os.pipe()
        self._lock = Lock()
        self._held: list[str] | None = None
        self._overflowing = False
        self._traceback = ""  # the lines so far
        self._exiting = False
        atexit.register(self._on_exit)
        self._thread = Thread(target=self._relay, name="headgate-jvm-output", daemon=True)
        self._thread.start()

    def close(self, *, wait: bool = True) -> None:
        """Leave the pipe to the JVM; or, where that has ended, wait for its last lines."""
        os.close(self.writer)
        if wait:
            self._thread.join(CLOSE_TIMEOUT)

    @contextmanager
    def hold(self) -> Iterator[list[str]]:
        """Hold lines back in the yielded list; show them at the end, unless the block fails."""
        lines: list[str] = []
        with self._lock:
            self._held = lines
        try:
            yield lines
        except BaseException:
            lines.clear()
            raise
        finally:
            with self._lock:
                self._held = None
                for line in lines:
                    self._show(line)

    def _relay(self) -> None:
        with os.fdopen(self._reader, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                # a traceback is judged as a whole, by its last line
                whole = self._complete(line)
                if whole and not self._is_noise(whole):
                    self._pass_on(whole)
            if self._traceback:
                self._pass_on(self._traceback)

    def _pass_on(self, line: str) -> None:
        with self._lock:
            if self._held is None:
                self._show(line)
            else:
                self._held.append(line)

    def _complete(self, line: str) -> str:
        """Return the line; all lines of a Python traceback at once, when its last one comes."""
        inside = line.startswith(_TRACEBACK) or (self._traceback and line.startswith("  "))
        self._traceback += line
        if inside:
            return ""
        whole, self._traceback = self._traceback, ""
        return whole

    def _is_noise(self, line: str) -> bool:
        self._overflowing = bool(
            _OVERFLOW.match(line) or (self._overflowing and _FRAME.match(line))
        )
        return self._overflowing or bool(_REMARK.match(line) or _IDLE.match(line))

    def _show(self, text: str) -> None:
        line = make_printable(text)
        if not self._exiting:
            with suppress(OSError, ValueError):  # sys.stderr was closed or replaced
                sys.stderr.write(line)
                sys.stderr.flush()
                return
        # straight to the descriptor, past a `sys.stderr` that cannot be used
        with suppress(OSError):
            os.write(2, line.encode(errors="replace"))

    def _on_exit(self) -> None:
        """Write past `sys.stderr` from now on: Python crashes if a thread is inside it at exit."""
        with self._lock:
            self._exiting = True
