"""Keys and columns that a stream does not declare are counted by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.events import batch_from_rows, read_events
from headgate.schema import INT, STRING
from tests.events.helpers import parse, stream

FLAT = stream(id=INT, Name=STRING)
NESTED = stream(id=INT, a__b=INT, a__c__d=INT)


def test_flat_keys() -> None:
    """Each event that has the key counts, be it a row or a dead letter; broken lines do not."""
    batch = parse(
        FLAT, '{"id": 1, "x": 1}', '{"id": "?", "x": 2, "y": null}', "{", "", '{"x": 1, "x": 1}'
    )
    assert batch.unknown == {"x": 3, "y": 1}
    assert parse(FLAT, '{"ID": 1, "nAME": "a"}', "{}").unknown == {}


def test_unused_attributes_are_known() -> None:
    """What is declared is known, used or not, in whatever case."""
    line = '{"id": 1, "NAME": "a", "new": 1}'
    assert parse(FLAT, line, columns=["id"]).unknown == {"new": 1}
    assert parse(FLAT, line, columns=[]).unknown == {"new": 1}
    nested = '{"A": {"B": 1, "e": 2}, "a.c.d": 1}'
    assert parse(NESTED, nested, columns=["id"]).unknown == {"a.e": 1}


def test_nested_keys_by_path() -> None:
    """Inside an object that is declared, by the path to the key; an unknown object is one key."""
    batch = parse(
        NESTED,
        '{"id": 1, "a": {"b": 1, "z": 1, "c": {"d": 1}}}',
        '{"id": 2, "A": {"B": 1, "c": {"D": 2, "e": {"f": 1}}}}',
        '{"a": 7, "new": {"deep": 1}}',
        '{"a": {"z": 1, "z": 2}}',
        '{"a": null, "a.b": 3}',
    )
    assert batch.unknown == {"a.z": 2, "a.c.e": 1, "new": 1}


def test_odd_names() -> None:
    """Names are shown as they are, cut where too long, and fit for UTF-8."""
    names = ["", " ", "a.b", "`x`", "𝄞", "\ud800", "x" * 200]
    batch = parse(FLAT, *(json.dumps({name: 1}) for name in names))
    assert list(batch.unknown.values()) == [1] * 7
    assert {"", " ", "a.b", "`x`", "𝄞", "\\ud800"} < set(batch.unknown)
    assert max(map(len, batch.unknown)) == 100
    assert batch_from_rows([{1: 2}], FLAT).unknown == {"1": 1}  # type: ignore[dict-item]


def test_too_many_names() -> None:
    """A hundred names are counted apart, the most frequent ones, and the others together."""
    rows = [{f"k{n}": 1} for n in range(250)] + [{"k240": 1}, {"k249": 1}]
    unknown = batch_from_rows(rows, FLAT).unknown
    assert len(unknown) == 101
    assert (unknown["k240"], unknown["k249"]) == (2, 2)
    assert sum(unknown.values()) == 252
    assert unknown["…"] == 150


@pytest.mark.parametrize("as_object", [False, True])
def test_tables(as_object: bool) -> None:
    """A column counts once a row."""
    table = pa.table({"ID": [1, 2], "x": [1, None], "a": [{"b": 1, "z": 1}] * 2})
    assert batch_from_rows(table, FLAT).unknown == {"x": 2, "a": 2}
    assert batch_from_rows(table, NESTED).unknown == {"x": 2, "a.z": 2}
    frame = pd.DataFrame({"id": pd.Series([1, 2], dtype=object if as_object else "int64"), 7: "x"})
    assert batch_from_rows(frame, FLAT).unknown == {"7": 2}
    assert batch_from_rows(table.slice(0, 0), FLAT).unknown == {}


def test_files(tmp_path: Path) -> None:
    """In CSV and Parquet, columns that are not read are counted all the same."""
    (tmp_path / "e.csv").write_text("id,new,\n1,2,3\nx,2,3\n1\n\n")
    (batch,) = read_events(tmp_path / "e.csv", FLAT, columns=["id"])
    assert batch.unknown == {"new": 2}
    table = pa.table({"id": [1, 2], "new": [1, 2], "Name": ["a", "b"]})
    pq.write_table(table, tmp_path / "e.parquet")
    for columns in (None, ["id"], []):
        (batch,) = read_events(tmp_path / "e.parquet", FLAT, columns=columns)
        assert batch.unknown == {"new": 2}


NAMES = st.sampled_from(["id", "ID", "name", "a", "A", "b", "a.b", "c", "x", "X", "", "é"])
OBJECTS = st.recursive(
    st.integers(0, 3), lambda inner: st.dictionaries(NAMES, inner, max_size=4), max_leaves=8
).filter(lambda row: isinstance(row, dict))


def naive(row: dict[str, Any], declared: list[str], prefix: str = "") -> list[str]:
    """The names by which a row strays from the declared ones."""
    strays = []
    for key, value in row.items():
        name = prefix + key
        if name.lower() in declared:
            continue
        way = [one for one in declared if one.startswith(name.lower() + ".")]
        if not way:
            strays.append(prefix + key)
        elif isinstance(value, dict):
            strays += naive(value, declared, way[0][: len(name) + 1])
    return strays


@given(st.lists(OBJECTS, max_size=5), st.sampled_from([None, ["id"], []]))
def test_agrees_with_a_naive_count(rows: list[dict[str, Any]], columns: list[str] | None) -> None:
    """Random objects, flat and nested streams, all columns or few."""
    for declared in (FLAT, NESTED):
        names = [name.lower() for name in declared.names]
        expected: dict[str, int] = {}
        for row in rows:
            for stray in naive(row, names):
                expected[stray] = expected.get(stray, 0) + 1
        batch = parse(declared, *map(json.dumps, rows), columns=columns)
        assert batch.unknown == expected
        assert batch_from_rows(rows, declared, columns=columns).unknown == expected
