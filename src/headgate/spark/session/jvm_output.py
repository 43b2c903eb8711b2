"""What Spark's JVM writes to stderr passes through here: held back while it starts, then relayed.

Held back, it gives the reason when the start fails. Relayed line by line through `sys.stderr`, it
does not tear a live table on the terminal apart. Three things are never shown: the JVM's remarks on
its own modules; the end of a streaming query that was stopped inside `foreachBatch`, for which
Spark looks through the error with a regular expression that overflows the stack, by a thousand
lines; and a Python worker with nothing to do that finds the JVM gone when it says so. The query has
ended by then, and well.
"""

from __future__ import annotations

import atexit
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock, Thread

CLOSE_TIMEOUT = 5  # seconds, should something else hold the pipe open

_REMARK = re.compile(r"WARNING: (Using incubator modules|package [\w.]+ not in [\w.]+)")
_OVERFLOW = re.compile(r'Exception in thread "stream execution thread .*StackOverflowError')
_FRAME = re.compile(r"\tat |\t\.\.\. ")
_TRACEBACK = "Traceback (most recent call last):"
_IDLE = re.compile(r"Traceback.*\n(  File .*pyspark/daemon\.py.*\n(    .*\n)?)+BrokenPipeError")


class JvmOutput:
    """The reading end of a pipe. Give `writer` to the JVM as its stderr, then close it."""

    def __init__(self) -> None:
        self._reader, self.writer = os.pipe()
        self._lock = Lock()
        self._held: list[str] | None = None
        self._overflowing = False
        self._traceback = ""  # as far as it has come
        self._exiting = False
        atexit.register(self._on_exit)
        self._thread = Thread(target=self._relay, name="headgate-jvm-output", daemon=True)
        self._thread.start()

    def close(self, *, wait: bool = True) -> None:
        """Leave the pipe to the JVM; or, where that has ended, wait for its last words."""
        os.close(self.writer)
        if wait:
            self._thread.join(CLOSE_TIMEOUT)

    @contextmanager
    def hold(self) -> Iterator[list[str]]:
        """Hold lines back in the list that is given; show them at the end, unless it fails."""
        held: list[str] = []
        with self._lock:
            self._held = held
        try:
            yield held
        except BaseException:
            held.clear()
            raise
        finally:
            with self._lock:
                self._held = None
                for line in held:
                    self._show(line)

    def _relay(self) -> None:
        with os.fdopen(self._reader, encoding="utf-8", errors="replace") as lines:
            for line in lines:
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
        """The line; of a traceback of Python all its lines, when the last one has come."""
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

    def _show(self, line: str) -> None:
        if not self._exiting:
            with suppress(OSError, ValueError):  # sys.stderr was closed or replaced
                sys.stderr.write(line)
                sys.stderr.flush()
                return
        with suppress(OSError):
            os.write(2, line.encode(errors="replace"))

    def _on_exit(self) -> None:
        """Python ends badly when a thread is caught inside `sys.stderr`: from now on, past it."""
        with self._lock:
            self._exiting = True
