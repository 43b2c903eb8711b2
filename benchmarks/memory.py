"""The most memory that this process has used, or that something took."""

from __future__ import annotations

import resource
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

STATUS = Path("/proc/self/status")


def traced_megabytes(action: Callable[[], object]) -> int:
    """The most that Python and NumPy hold at once while something is done, beside what they had.

    Arrays count in full as soon as they are made, though memory is taken only as they are filled.
    """
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1] // 10**6
    finally:
        tracemalloc.stop()


def peak_megabytes() -> int:
    """The highest resident size so far.

    Linux counts the parent's size into a child's `ru_maxrss`, so that where there is a `VmHWM`,
    which it does not, we read that.
    """
    if STATUS.exists():
        lines = STATUS.read_text().splitlines()
        kilobytes = (int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
        return next(kilobytes) * 1024 // 10**6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024) // 10**6
