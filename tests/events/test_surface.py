"""What the package shows."""

from __future__ import annotations

import subprocess
import sys

from headgate import events


def test_public_names() -> None:
    """Everything listed exists, in order."""
    assert sorted(events.__all__) == events.__all__
    assert all(hasattr(events, name) for name in events.__all__)


def test_heavy_libraries_stay_unimported() -> None:
    """Importing the package imports neither pandas nor PySpark."""
    code = "import sys, headgate.events; print({'pandas', 'pyspark'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
