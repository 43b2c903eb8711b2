"""Public is what `__init__` lists; heavy libraries stay out until they are needed."""

from __future__ import annotations

import subprocess
import sys

import headgate


def test_all_is_what_is_visible() -> None:
    """Every listed name exists, and every public function or class is listed."""
    visible = {
        name
        for name, value in vars(headgate).items()
        if not name.startswith("_") and not isinstance(value, type(sys))
    }
    assert set(headgate.__all__) == visible


def test_import_is_light() -> None:
    """`import headgate` brings in neither Spark nor Numba, pandas, matplotlib or DuckDB."""
    heavy = ["pyspark", "numba", "pandas", "matplotlib", "duckdb", "hypothesis"]
    program = f"import sys, headgate; print([m for m in {heavy} if m in sys.modules])"
    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert printed.stdout.strip() == "[]"
