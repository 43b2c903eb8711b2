"""What a result was measured on: enough to repeat it, and nothing that names the machine."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("headgate", "numpy", "pyarrow", "sqlglot", "sqlglotc", "duckdb", "matplotlib")


def machine() -> dict[str, object]:
    """Processor count and kind, Python, and the versions of what was compared."""
    return {
        "cpus": os.cpu_count(),
        "architecture": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
        "packages": {name: found for name in PACKAGES if (found := _version(name))},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
