"""Why Spark did not start, in one line: from what it raised, or from the last words of its JVM."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from typing import Any

from headgate.errors import HeadgateError, UsageError

REASONS = 2  # lines of the JVM's last words that an error repeats

_THROWN = 'Exception in thread "'
_NAMES = re.compile(r'^(Exception in thread "\S+" )?((Error|Caused by|[\w$]+(\.[\w$]+)+): )*')
_FRAME = re.compile(r"\s*(at |\.\.\. |$)")


@contextmanager
def explained(master: str | None, said: list[str] | None = None) -> Iterator[None]:
    """Whatever Spark raises becomes one error with Spark's reason."""
    try:
        yield
    except HeadgateError:
        raise
    except Exception as error:
        on = f" on {master}" if master else ""
        reason = _last_words(said or []) or _reason(error)
        raise UsageError(
            f"Spark did not start{on}: {reason}; check the master and the spark.* settings"
        ) from None


def _last_words(said: list[str]) -> str:
    """The lines that say why a JVM ended, without Java's frames and the names of its errors.

    >>> _last_words(["Error occurred during initialization of VM\\n", "Too small maximum heap\\n"])
    'Error occurred during initialization of VM; Too small maximum heap'
    >>> _last_words(["log\\n", 'Exception in thread "main" org.a.Bad: No.\\n', "\\tat a.b(c)\\n"])
    'No'
    """
    thrown = [line for line in said if line.startswith(_THROWN)]
    lines = thrown[-1:] or takewhile(lambda line: not line.startswith("Usage: "), said)
    words = [_plain(line) for line in lines if not _FRAME.match(line)]
    return "; ".join(words[:REASONS])


def _reason(error: Any) -> str:
    """The first line of the error at the root of it all; Java's own has it where there is one."""
    cause = getattr(error, "java_exception", None)
    if cause is None:
        return _plain(str(error))
    while cause.getCause() is not None:
        cause = cause.getCause()
    return _plain(cause.getMessage() or cause.toString())


def _plain(text: str) -> str:
    """The first line, without the names of errors before it."""
    return _NAMES.sub("", text.strip().partition("\n")[0]).rstrip(".")
