"""A snapshot whose checksums are right and whose arrays are wrong crashes nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headgate.errors import UsageError
from headgate.predicate import And, Column, Matches, Pattern
from headgate.schema import INT, Schema
from headgate.snapshot import Base, Segment, open_snapshot, validation_record, write_snapshot
from headgate.snapshot.arrays import encode_queries
from headgate.snapshot.arrays.atoms import MATCHES
from headgate.snapshot.segments import find_segment_flaw
from tests.scale import at_least, case_count, seed
from tests.snapshot.sets import SCHEMA, numbered, query, query_set
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


@pytest.fixture
def validations(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[int]:
    """The segments that are validated from now on, in processes that share a user's cache."""
    counted: list[int] = []

    def count(segment: Segment, schema: Schema) -> str | None:
        counted.append(len(segment))
        return find_segment_flaw(segment, schema)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("headgate.snapshot.snapshot.find_segment_flaw", count)
    monkeypatch.setattr(validation_record, "MIN_MARKED_BYTES", 1)
    return counted


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Know no more than another process does."""
    monkeypatch.setattr(validation_record, "_validated", {})


def test_a_segment_is_validated_once_on_a_machine(
    validations: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = write_snapshot(query_set(*numbered(30)), tmp_path / "a")
    # another version shares the base
    write_snapshot(query_set(*numbered(31)), tmp_path / "b", parent=first)
    shutil.rmtree(tmp_path / "cache")
    forget(monkeypatch)
    open_snapshot(tmp_path / "a")
    assert validations == [30]
    forget(monkeypatch)
    open_snapshot(tmp_path / "b")
    assert validations == [30, 1]
    forget(monkeypatch)
    open_snapshot(tmp_path / "b")
    assert validations == [30, 1]


def test_marks_where_others_can_write_are_not_believed(
    validations: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write_snapshot(query_set(*numbered(30)), tmp_path / "a")
    (mark,) = (tmp_path / "cache" / "headgate" / validation_record.DIRECTORY).iterdir()
    mark.parent.chmod(0o777)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    forget(monkeypatch)
    open_snapshot(tmp_path / "a")
    assert validations == [30]


def test_marks_that_nobody_uses_are_deleted(validations: list[int], tmp_path: Path) -> None:
    write_snapshot(query_set(*numbered(3)), tmp_path / "a")
    (mark,) = (tmp_path / "cache" / "headgate" / validation_record.DIRECTORY).iterdir()
    os.utime(mark, (0, 0))
    validation_record._delete_unused.cache_clear()
    write_snapshot(query_set(*numbered(4)), tmp_path / "b")
    assert not mark.exists()
    assert validations == []
