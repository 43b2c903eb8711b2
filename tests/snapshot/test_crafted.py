"""A snapshot whose checksums are right and whose arrays are wrong crashes nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headgate.errors import UsageError
from headgate.predicate import And, Column, Matches, Pattern
from headgate.schema import INT
from headgate.snapshot import Base, write_snapshot
from headgate.snapshot.arrays import encode_queries
from headgate.snapshot.arrays.atoms import MATCHES
from tests.scale import at_least, case_count, seed
from tests.snapshot.sets import SCHEMA, query, query_set
from tests.snapshot.test_damage import refused, rewrite


@pytest.mark.slow
def test_agree_on_crafted_snapshots() -> None:
    """Each is refused by name, or gives the same answers in every index."""
    command = [sys.executable, "-m", "tests.snapshot.crafting", str(case_count(500)), str(seed())]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-5000:]
    outcomes = json.loads(done.stdout)
    assert outcomes["refused"] > at_least(250)
    assert outcomes["taken"] > at_least(50)


def test_a_pattern_on_a_number_is_refused(tmp_path: Path) -> None:
    """The kernels would take the number for the rank of a text."""
    listed = [query(f"q{n}", f"qty > {n} AND side LIKE '%a{n}%'") for n in range(5)]
    write_snapshot(query_set(*listed), tmp_path / "s")
    encoded = encode_queries(listed, SCHEMA)
    kind, column = encoded.atoms.kind, encoded.atoms.column
    column[kind == MATCHES] = column[kind != MATCHES][0]
    rewrite(tmp_path / "s", 0, Base(encoded))
    said = refused(tmp_path / "s", "0-base.arrow")
    assert said == "atoms.column[1] is 0, but a pattern needs a STRING"


def test_cuts_that_do_not_ascend_are_refused(tmp_path: Path) -> None:
    """Indexes would give different answers."""
    listed = [query("q", "qty IN (10, 20, 30)")]
    write_snapshot(query_set(*listed), tmp_path / "s")
    encoded = encode_queries(listed, SCHEMA)
    cuts = encoded.atoms.cuts.numbers
    cuts[[0, -1]] = cuts[[-1, 0]]
    rewrite(tmp_path / "s", 0, Base(encoded))
    said = refused(tmp_path / "s", "0-base.arrow")
    assert said == "atoms.cuts.numbers[1] is not above the cut before it"


@pytest.mark.parametrize("where", [And(()), Matches(Column("qty", INT), Pattern("LIKE", "a%"))])
def test_a_query_that_no_reader_would_accept_is_not_written(tmp_path: Path, where: Any) -> None:
    flawed = replace(query("q", "qty > 1"), where=where)
    with pytest.raises(UsageError, match=r"these queries cannot be stored; their (trees|atoms)\."):
        write_snapshot(query_set(flawed), tmp_path / "s")
    assert not list(tmp_path.iterdir())
