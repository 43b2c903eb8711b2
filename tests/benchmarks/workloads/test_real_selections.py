"""Queries that describe rows of real data, and the network connections as they are read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.workloads import (
    RealSelections,
    SelectionSpec,
    read_nsl_kdd,
    select_connections,
    select_flights,
)
from benchmarks.workloads.conjunctions import bind_queries
from benchmarks.workloads.real_selections import describe_rows
from headgate.errors import UsageError
from headgate.matching import ScanIndex
from headgate.predicate import And, Within
from headgate.queries import Query
from headgate.schema import DOUBLE, INT, STRING, Attribute, Stream

DATA = Path(__file__).parents[4] / "shared" / "data" / "nsl-kdd"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="NSL-KDD is not there")

FIELDS = "duration,continuous\nservice,symbolic\nrate,continuous\n"


def written(directory: Path, connections: str, fields: str = FIELDS) -> Path:
    (directory / "fields.csv").write_text(fields)
    (directory / "train_20_percent.csv").write_text(connections)
    return directory


def columns_of(query: Query) -> list[str]:
    parts = query.where.parts if isinstance(query.where, And) else (query.where,)
    return [part.column.name for part in parts if isinstance(part, Within)]


def check(result: RealSelections, rows: int = 5_000) -> None:
    """The numbers are those of Q2, most rows match nothing, and no query is without a match."""
    columns = [columns_of(query) for query in result.queries]
    assert len(columns) == 50
    assert sum(map(len, columns)) == 173
    assert all(len(names) == len(set(names)) for names in columns)
    assert len({name for names in columns for name in names}) == 15
    total = result.table.num_rows
    sample = result.table.take(np.arange(rows) * total // rows)
    matches = ScanIndex.build(result.stream, result.queries).match(sample)
    assert 0.05 < np.mean(np.diff(matches.offsets) > 0) < 0.4
    assert len(set(matches.positions.tolist())) >= 45


@needs_data
@pytest.mark.slow
def test_connections() -> None:
    """All connections are read with their types, and queries describe some of them."""
    selections = select_connections(DATA, seed=1)
    assert selections.table.num_rows == 25_192
    assert len(selections.stream.attributes) == 43
    types = {a.name: a.type for a in selections.stream}
    assert [types[name] for name in ("src_bytes", "serror_rate", "service")] == [
        INT,
        DOUBLE,
        STRING,
    ]
    assert (types["label"], types["difficulty"]) == (STRING, INT)
    assert selections.table["label"][0].as_py() == "normal"
    check(selections)


@pytest.mark.slow
def test_flights() -> None:
    """So they do with flights."""
    check(select_flights(5_000, seed=1))


def test_seed() -> None:
    """The same seed gives the same queries."""
    table = pa.table({"port": list(range(90)) * 10, "peer": list("abc") * 300})
    spec = SelectionSpec(20, 30, 2)
    first, second, other = (describe_rows(table, spec, seed=seed) for seed in (4, 4, 5))
    assert first == second
    assert first != other


def test_reader(tmp_path: Path) -> None:
    """Symbols are text, whole numbers INT, others DOUBLE; label and difficulty follow."""
    stream, table = read_nsl_kdd(
        written(tmp_path, "0,http,0.50,normal,20\n7,smtp,1.00,neptune,19\n")
    )
    assert stream == Stream(
        "connections",
        (
            Attribute("duration", INT),
            Attribute("service", STRING),
            Attribute("rate", DOUBLE),
            Attribute("label", STRING),
            Attribute("difficulty", INT),
        ),
    )
    assert table.to_pylist()[1] == {
        "duration": 7,
        "service": "smtp",
        "rate": 1.0,
        "label": "neptune",
        "difficulty": 19,
    }


def test_missing(tmp_path: Path) -> None:
    """A directory without the files is refused, with what should be there."""
    with pytest.raises(UsageError, match=r"no fields.csv in .*directory with fields.csv and train"):
        read_nsl_kdd(tmp_path)
    (tmp_path / "fields.csv").write_text(FIELDS)
    with pytest.raises(UsageError, match=r"no train_20_percent.csv in"):
        read_nsl_kdd(tmp_path)


@pytest.mark.parametrize(
    ("connections", "fields", "message"),
    [
        ("0,http,0.50,normal\n", FIELDS, r"train_20_percent.csv does not fit fields.csv"),
        ("0,http,fast,normal,20\n", FIELDS, r"does not fit fields.csv beside it: .*fast"),
        ("", FIELDS, r"does not fit fields.csv"),
        ("0\n", "duration,continuous\nservice\n", r"fields.csv:2: 'service' is not a name and"),
    ],
)
def test_damaged(tmp_path: Path, connections: str, fields: str, message: str) -> None:
    """Files that do not fit each other are refused."""
    with pytest.raises(UsageError, match=message):
        read_nsl_kdd(written(tmp_path, connections, fields))


def test_texts() -> None:
    """Texts keep their quotes and backslashes, and rows with a NULL are passed over."""
    texts = ["it's", 'a "b"', "back\\slash", None]
    table = pa.table({"text": texts * 5, "number": [1, 2, 3, None] * 5})
    stream = Stream("s", (Attribute("text", STRING), Attribute("number", INT)))
    clauses = describe_rows(table, SelectionSpec(20, 30, 2), seed=1)
    matches = ScanIndex.build(stream, bind_queries(stream, clauses, "q")).match(table)
    assert set(matches.positions.tolist()) == set(range(20))


def test_refused() -> None:
    """Every column is used, and there must be a row to describe."""
    with pytest.raises(UsageError, match="3 p-attributes of a table with 1 column"):
        describe_rows(pa.table({"a": [1]}), SelectionSpec(5, 9, 3), seed=1)
    empty = pa.table({"a": pa.array([None], pa.int32())})
    with pytest.raises(UsageError, match="no row to describe"):
        describe_rows(empty, SelectionSpec(1, 1, 1), seed=1)
