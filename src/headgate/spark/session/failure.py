"""Why work on Spark failed, in one line, without the traces of three programs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from headgate.errors import HeadgateError, UsageError

_RAISED = re.compile(r"^headgate\.errors\.\w+: (.*)$", re.MULTILINE)
_PYTHON = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception): .*$", re.MULTILINE)


def find_worker_error(error: BaseException) -> str | None:
    """What Headgate itself said in a worker, if it was that."""
    found = _RAISED.findall(str(error))
    return found[-1] if found else None


def explain_failure(error: BaseException) -> str:
    """What went wrong.

    >>> reason(OSError(28, "No space left on device"))
    'OSError: [Errno 28] No space left on device'
    """
    if isinstance(error, Py4JError | ConnectionError):
        return "Spark's JVM has ended"
    if isinstance(error, PySparkException):
        told = _PYTHON.findall(str(error))
        return find_worker_error(error) or (told[-1] if told else str(error).strip().split("\n")[0])
    return f"{type(error).__name__}: {error}"


MAX_REASONS = 2  # lines of the JVM's last words that an error repeats

_THROWN = 'Exception in thread "'
_NAMES = re.compile(r'^(Exception in thread "\S+" )?((Error|Caused by|[\w$]+(\.[\w$]+)+): )*')
_FRAME = re.compile(r"\s*(at |\.\.\. |$)")


@contextmanager
def explain_start(master: str | None, said: list[str] | None = None) -> Iterator[None]:
    """Whatever Spark raises becomes one error with Spark's reason."""
    try:
        yield
    except HeadgateError:
        raise
    except Exception as error:
        on = f" on {master}" if master else ""
        explain_failure = _find_last_words(said or []) or _find_root_cause(error)
        raise UsageError(
            f"Spark did not start{on}: {explain_failure}; check the master and the spark.* settings"
        ) from None


def _find_last_words(said: list[str]) -> str:
    """The lines that say why a JVM ended, without Java's frames and the names of its errors.

    >>> _last_words(["Error occurred during initialization of VM\\n", "Too small maximum heap\\n"])
    'Error occurred during initialization of VM; Too small maximum heap'
    >>> _last_words(["log\\n", 'Exception in thread "main" org.a.Bad: No.\\n', "\\tat a.b(c)\\n"])
    'No'
    """
    thrown = [line for line in said if line.startswith(_THROWN)]
    lines = thrown[-1:] or takewhile(lambda line: not line.startswith("Usage: "), said)
    words = [_strip_names(line) for line in lines if not _FRAME.match(line)]
    return "; ".join(words[:MAX_REASONS])


def _find_root_cause(error: Any) -> str:
    """The first line of the error at the root of it all; Java's own has it where there is one."""
    cause = getattr(error, "java_exception", None)
    if cause is None:
        return _strip_names(str(error))
    while cause.getCause() is not None:
        cause = cause.getCause()
    return _strip_names(cause.getMessage() or cause.toString())


def _strip_names(text: str) -> str:
    """The first line, without the names of errors before it."""
    return _NAMES.sub("", text.strip().partition("\n")[0]).rstrip(".")
