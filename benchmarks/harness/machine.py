"""What a result was measured on, and how much memory something takes.

Enough to repeat it, and nothing that names the machine.
"""

from __future__ import annotations

import os
import platform
import resource
import sys
import tracemalloc
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("headgate", "numpy", "pyarrow", "sqlglot", "sqlglotc", "duckdb", "matplotlib")


def describe_machine() -> dict[str, object]:
    """Return processor count and kind, Python, and the versions of what was compared."""
    return {
        "cpus": os.cpu_count(),
        "architecture": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
        "packages": {name: installed for name in PACKAGES if (installed := _version(name))},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


STATUS = Path("/proc/self/status")


def trace_megabytes(action: Callable[[], object]) -> int:
    """Return the most that Python and NumPy hold at once during an action, above what they had.

    Arrays count in full as soon as they are made, though memory is taken only as they are filled.
    """
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1] // 10**6
    finally:
        tracemalloc.stop()


def peak_megabytes() -> int:
    """Return the highest resident size of this process so far.

    Linux counts the parent's size into a child's `ru_maxrss`, so that where there is a `VmHWM`,
    which it does not, we read that.
    """
    if STATUS.exists():
        lines = STATUS.read_text().splitlines()
        kilobytes = (int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
        return next(kilobytes) * 1024 // 10**6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # macOS counts bytes, other systems kilobytes.
    return peak * (1 if sys.platform == "darwin" else 1024) // 10**6
