"""The most memory that this process has used."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

STATUS = Path("/proc/self/status")


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
