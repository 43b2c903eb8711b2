"""Why work on Spark failed, in one line, without the traces of three programs."""

from __future__ import annotations

import re

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

_RAISED = re.compile(r"^headgate\.errors\.\w+: (.*)$", re.MULTILINE)
_PYTHON = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception): .*$", re.MULTILINE)


def raised_in_worker(error: BaseException) -> str | None:
    """What Headgate itself said in a worker, if it was that."""
    found = _RAISED.findall(str(error))
    return found[-1] if found else None


def reason(error: BaseException) -> str:
    """What went wrong.

    >>> reason(OSError(28, "No space left on device"))
    'OSError: [Errno 28] No space left on device'
    """
    if isinstance(error, Py4JError | ConnectionError):
        return "Spark's JVM has ended"
    if isinstance(error, PySparkException):
        told = _PYTHON.findall(str(error))
        return raised_in_worker(error) or (told[-1] if told else str(error).strip().split("\n")[0])
    return f"{type(error).__name__}: {error}"
