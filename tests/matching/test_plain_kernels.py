"""The kernels are plain Python as well: they give the same answers with Numba's JIT off."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_kernels_without_the_jit() -> None:
    """The contract holds, and on every sort of workload the answers are those of scan."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.matching.plain_kernels"],
        cwd=ROOT,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
