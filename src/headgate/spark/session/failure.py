"""Why Spark did not start, or work on it failed: one line, without the traces of three programs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from headgate.errors import HeadgateError, UsageError

_RAISED = re.compile(r"^headgate\.errors\.\w+: (.*)$", re.MULTILINE)
# What Spark puts around the reason for which a streaming query ended.
_WRAPPED = re.compile(r"^\[STREAM_FAILED\] Query .*? terminated with exception: | SQLSTATE: \w+$")
_WHY_ENDED = "it was killed, or ran out of memory (spark.driver.memory gives it more)"
_GATEWAY_EXITED = "JAVA_GATEWAY_EXITED"  # PySpark's name for a JVM that ends before it answers
_PYTHON = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception): .*$", re.MULTILINE)


def find_worker_error(error: BaseException) -> str | None:
    """Return what Headgate itself raised in a worker; None if it was something else."""
    messages = _RAISED.findall(str(error))
    return messages[-1] if messages else None


def has_jvm_ended(error: BaseException) -> bool:
    """Return whether an error is only that Spark's JVM, or the way to it, is gone."""
    is_thrown = isinstance(error, Py4JJavaError)  # then Java is there, and has raised it
    return isinstance(error, Py4JError | ConnectionError) and not is_thrown


def explain_failure(error: BaseException) -> str:
    """Return what went wrong in one line.

    >>> explain_failure(OSError(28, "No space left on device"))
    'OSError: [Errno 28] No space left on device'
    """
    if has_jvm_ended(error):
        return f"Spark's JVM has ended; {_WHY_ENDED}"
    if isinstance(error, PySparkException):
        # the last line of a Python traceback, or the first of Spark's own message
        lines = _PYTHON.findall(str(error)) or str(error).strip().split("\n")[:1]
        return find_worker_error(error) or _WRAPPED.sub("", str(lines[-1]))
    # an error of Java's that PySpark has no name for comes with its whole trace
    if isinstance(error, Py4JJavaError):
        return _find_root_cause(error)
    return f"{type(error).__name__}: {error}"


MAX_REASONS = 2  # lines of the JVM's last words that an error repeats

_THROWN = 'Exception in thread "'
_NAMES = re.compile(r'^(Exception in thread "\S+" )?((Error|Caused by|[\w$]+(\.[\w$]+)+): )*')
_FRAME = re.compile(r"\s*(at |\.\.\. |$)")


@contextmanager
def explain_start(master: str | None, output: list[str] | None = None) -> Iterator[None]:
    """Turn whatever Spark raises into one UsageError with Spark's reason."""
    try:
        yield
    except HeadgateError:
        raise
    except Exception as error:
        on = f" on {master}" if master else ""
        reason, advice = _explain_start_error(error, _find_last_words(output or []))
        raise UsageError(f"Spark did not start{on}: {reason}; {advice}") from None


def _explain_start_error(error: Exception, last_words: str) -> tuple[str, str]:
    """Return the reason and what to do; a JVM that was killed leaves no words of its own."""
    is_silent = _GATEWAY_EXITED in str(error) and not last_words
    if has_jvm_ended(error) or is_silent:
        return "its JVM has ended", _WHY_ENDED
    return last_words or _find_root_cause(error), "check the master and the spark.* settings"


def _find_last_words(output: list[str]) -> str:
    r"""Return the lines that say why a JVM ended, without Java's frames and names of errors.

    >>> _find_last_words(["Error occurred during initialization of VM\n", "Too small heap\n"])
    'Error occurred during initialization of VM; Too small heap'
    >>> thrown = 'Exception in thread "main" org.a.Bad: No.\n'
    >>> _find_last_words(["log\n", thrown, "\tat a.b(c)\n"])
    'No'
    """
    # an exception says it in its first line; without one, all that was written counts
    thrown = [line for line in output if line.startswith(_THROWN)]
    lines = thrown[-1:] or takewhile(lambda line: not line.startswith("Usage: "), output)
    words = [_strip_names(line) for line in lines if not _FRAME.match(line)]
    return "; ".join(words[:MAX_REASONS])


def _find_root_cause(error: Any) -> str:
    """Return the first line of the root cause; Java's own error has it where there is one."""
    cause = getattr(error, "java_exception", None)
    if cause is None:
        return _strip_names(str(error))
    while cause.getCause() is not None:
        cause = cause.getCause()
    return _strip_names(cause.getMessage() or cause.toString())


def _strip_names(text: str) -> str:
    """Return the first line, without the names of errors before it."""
    return _NAMES.sub("", text.strip().partition("\n")[0]).rstrip(".")
