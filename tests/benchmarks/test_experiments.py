"""The experiments themselves, tiny: they run, agree, and leave their files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import EXPERIMENTS, Result, run_experiment
from benchmarks.matching.scan import checksum
from headgate.errors import UsageError

TINY = 0.0005


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that no experiment has written into yet."""
    return tmp_path_factory.mktemp("bench") / "made"


@pytest.fixture(scope="module")
def load(made: Path) -> Result:
    return run_experiment("load", repeats=1, scale=TINY, seed=3, out=made)


@pytest.fixture(scope="module")
def scan(made: Path) -> Result:
    return run_experiment("scan", repeats=1, scale=TINY, seed=3, out=made)


@pytest.mark.slow
def test_files(made: Path, load: Result, scan: Result) -> None:
    """An experiment leaves JSON and a picture under its name, and compares with its baseline."""
    for result in (load, scan):
        name = result.experiment
        written = json.loads((made / f"{name}.json").read_text(encoding="utf-8"))
        assert written == result.as_json()
        assert (made / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert EXPERIMENTS[name].baseline in result.contestants
        assert all(seconds > 0 for m in result.measurements for seconds in m.seconds)


@pytest.mark.slow
def test_load(load: Result) -> None:
    """`load` times all of Headgate's read, sqlglot on a sample, and tells the memory."""
    assert load.contestants == ("Headgate", "sqlglot", "sqlglot[c]")
    assert {m.work for m in load.measurements} == {500}
    memory, fast_percent = load.facts.values()
    assert isinstance(memory, int)
    assert 20 < memory < 2_000
    assert fast_percent == 100


def test_scan(scan: Result) -> None:
    """`scan` has three sizes, and its work is every event with every query."""
    assert scan.sizes == (100, 1_000, 10_000)
    assert [m.work for m in scan.measurements[::3]] == [5_000, 50_000, 500_000]


def test_checksum() -> None:
    """The checksum does not see the order of the pairs, and sees everything else."""
    events, rules = np.array([0, 1, 2]), np.array([5, 5, 7])
    assert checksum((events, rules)) == checksum((events[::-1], rules[::-1]))
    assert checksum((events, rules)) != checksum((events, rules[::-1]))
    assert checksum((events, rules))[0] == 3


def test_unknown_experiment() -> None:
    """An unknown name gets a hint."""
    with pytest.raises(UsageError, match=r"no experiment `lod`; did you mean `load`\?"):
        run_experiment("lod")


@pytest.mark.slow
def test_import_is_light() -> None:
    """Listing the experiments brings in neither matplotlib, DuckDB nor Numba."""
    program = (
        "import sys, benchmarks; "
        "print({'matplotlib', 'duckdb', 'numba'} & set(sys.modules) or 'none')"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert printed.stdout.strip() == "none"
