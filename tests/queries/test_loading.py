"""Files in: every form, every bad row with its place, and the rest loaded."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headgate as hg
from headgate.errors import QueriesRejected, QuerySetError, SqlError
from headgate.queries import Query, QuerySet, compute_query_version, read_query
from headgate.schema import Schema
from headgate.sql import Rejected, Script, WhereReader

SCHEMA = "CREATE STREAM s (a INT, t STRING);"
ROWS: list[dict[str, str | None]] = [
    {"id": "one", "stream": "s", "where": "a > 1"},
    {
        "id": "two",
        "stream": "S",
        "where": "t LIKE 'x%' AND\n a IS NULL",
        "metadata": '{"owner": 1}',
    },
    {"id": "bad", "stream": "s", "where": "a >"},
    {"id": "one", "stream": "s", "where": "a > 2"},
    {"id": "lost", "stream": "t", "where": "a > 2"},
    {"id": None, "stream": "s", "where": "a > 2"},
    {"id": "none", "stream": "s", "where": None},
]
EXPECTED = {
    3: "a value is expected",
    4: "already a query `one`",
    5: "no stream `t`",
    6: "`id`",
    7: "`where`",
}


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    path = tmp_path / "schema.sql"
    path.write_text(SCHEMA)
    return path


def write(path: Path) -> Path:
    """The rows in the form of the file's ending."""
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    elif path.suffix == ".csv":
        pd.DataFrame(ROWS).to_csv(path, index=False)
    else:
        columns = pa.schema([(name, pa.string()) for name in ("id", "stream", "where", "metadata")])
        pq.write_table(pa.Table.from_pylist(ROWS, schema=columns), path)
    return path


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".parquet"])
def test_rows(schema: Path, ending: str) -> None:
    """Good rows are loaded in order; bad ones are reported with line, id and reason."""
    queries = hg.read_queries(write(schema.with_name(f"rules{ending}")), schema)
    assert queries.ids == ("one", "two")
    assert queries["two"].metadata == '{"owner": 1}'
    assert queries.report.total == len(ROWS)
    errors = {row.error.position.line: str(row.error) for row in queries.report.errors}
    shift = 2 if ending == ".csv" else 0  # a header, and a text of two lines
    for line, said in EXPECTED.items():
        assert said in errors[line + shift]
    assert [row.id for row in queries.report.errors] == ["bad", "one", "lost", None, "none"]


def test_a_frame_equals_its_file(schema: Path) -> None:
    """A DataFrame gives the queries that the same rows in a file give."""
    file = hg.read_queries(schema, write(schema.with_name("rules.jsonl")))
    frame = hg.queries_from_dataframe(pd.DataFrame(ROWS), schema)
    assert list(frame) == list(file)
    assert len(frame.report.errors) == len(file.report.errors)
    with pytest.raises(QuerySetError, match="`where` is missing"):
        hg.queries_from_dataframe(pd.DataFrame({"id": ["x"]}), file)


def test_a_statement_spans_lines_and_errors_know_them(tmp_path: Path) -> None:
    """Line and column of an error in a script are those of the file."""
    path = tmp_path / "q.sql"
    path.write_text(
        f"-- a comment; with a semicolon\n{SCHEMA}\n\n"
        "CREATE QUERY q AS\n  SELECT * FROM s\n  WHERE b = 1;\n"
        "CREATE QUERY fine AS SELECT * FROM s;\n"
    )
    queries = hg.read_queries(path)
    (row,) = queries.report.errors
    assert (row.id, row.error.position.line, row.error.position.column) == ("q", 6, 9)
    assert str(row.error).startswith(f"{path}:6:9: no attribute `b` in stream s")
    assert queries.ids == ("fine",)


def test_strict(schema: Path) -> None:
    """A strict load refuses all, and carries the reasons."""
    with pytest.raises(QueriesRejected) as refused:
        hg.read_queries(schema, write(schema.with_name("rules.jsonl")), strict=True)
    assert len(refused.value.errors) == 5


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("rules.txt", b"", "queries come as"),
        ("none.jsonl", None, "cannot be read"),
        ("rules.csv", b"id,condition\n1,a > 1\n", "`where` is missing"),
        ("rules.csv", b"", "`id` is missing"),
        ("rules.parquet", b"PAR0", "not a Parquet file"),
        ("rules.jsonl", b"\xff\xfe", "not UTF-8"),
    ],
)
def test_files_that_cannot_be_read(
    schema: Path, name: str, content: bytes | None, said: str
) -> None:
    """A file that is no file of queries is named."""
    path = schema.with_name(name)
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(QuerySetError, match=said):
        hg.read_queries(schema, path)


@pytest.mark.parametrize("line", ["{", "[1]", "3", '{"id": 1}', '"' + "[" * 5000, "[" * 100_000])
def test_hostile_json_rows(schema: Path, line: str) -> None:
    """A bad line is one bad row, whatever it is."""
    path = schema.with_name("rules.jsonl")
    path.write_text(f'{line}\n\n{{"id": "ok", "where": "a = 1", "extra": 1}}\n')
    queries = hg.read_queries(schema, path)
    assert queries.ids == ("ok",)
    assert [row.error.position.line for row in queries.report.errors] == [1]


def test_versions_follow_meaning() -> None:
    """Spelling does not change a version; a constant does; and so it is with the set's."""
    one, same, other = (load(f"CREATE QUERY q AS SELECT * FROM s WHERE {w}") for w in WHERES)
    assert (
        compute_query_version(one["q"])
        == compute_query_version(same["q"])
        != compute_query_version(other["q"])
    )
    assert one.version == same.version != other.version


WHERES = ("a > 3", "a>=4", "a > 4")


def load(*statements: str) -> QuerySet:
    """The queries of some statements on s."""
    script = Script(Schema())
    listed = [q for q in script.read(";".join((SCHEMA, *statements))) if isinstance(q, Query)]
    return QuerySet(script.schema, listed)


def test_diff() -> None:
    """Added, removed and updated queries; metadata counts as a change."""
    old = load("CREATE QUERY a AS SELECT * FROM s", "CREATE QUERY b AS SELECT * FROM s WHERE a = 1")
    new = load("CREATE QUERY b AS SELECT * FROM s WHERE a = 2", "CREATE QUERY c AS SELECT * FROM s")
    change = old.diff(new)
    assert [q.id for q in change.added] == ["c"]
    assert change.removed == ("a",)
    assert [q.id for q in change.updated] == ["b"]
    assert not old.diff(old)


def test_ids_are_unique() -> None:
    """A taken id is refused, an unknown one gets a hint."""
    queries = load("CREATE QUERY abc AS SELECT * FROM s")
    with pytest.raises(QuerySetError, match="already a query `abc`"):
        queries.add(queries["abc"])
    with pytest.raises(QuerySetError, match="did you mean `abc`"):
        queries.remove("abd")


def test_a_frame_of_mixed_types_has_errors_by_row(schema: Path) -> None:
    """A column of a DataFrame may hold anything; what is no string is one bad row."""
    frame = pd.DataFrame({"id": ["x", 3], "where": ["a > 3", "a < 2"], "metadata": [{"n": 1}, "s"]})
    queries = hg.queries_from_dataframe(frame, schema)
    assert queries.ids == ("x",)
    assert [row.error.position.line for row in queries.report.errors] == [2]


class ArrowStream:
    """A frame of a library that we do not know, such as Polars: all it offers is the protocol."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        stream: Any = self._table.__arrow_c_stream__
        return stream(requested_schema)


def test_frames_of_other_libraries_and_lists(schema: Path) -> None:
    """Polars and others by Arrow's protocol, lists and tuples of mappings: as from a file."""
    table = pa.Table.from_pylist(
        ROWS, schema=pa.schema([(n, pa.string_view()) for n in ("id", "stream", "where")])
    )
    plain = [{name: row.get(name) for name in ("id", "stream", "where")} for row in ROWS]
    batch = pa.RecordBatch.from_pylist(plain)
    frames = (ArrowStream(table), batch, plain, tuple(plain), list(map(MappingProxyType, plain)))
    for frame in frames:
        queries = hg.queries_from_dataframe(frame, schema)
        assert queries.ids == ("one", "two"), type(frame)
        said = {row.error.position.line: row.error.message for row in queries.report.errors}
        assert said.keys() == EXPECTED.keys()
        assert all(part in said[line] for line, part in EXPECTED.items())


def test_rows_that_are_no_mappings_are_refused_one_by_one(schema: Path) -> None:
    queries = hg.queries_from_dataframe([{"id": "one", "where": "a > 1"}, 3, ["id"]], schema)
    assert queries.ids == ("one",)
    assert [row.error.position.line for row in queries.report.errors] == [2, 3]
    assert "a row is a mapping" in queries.report.errors[0].error.message


@pytest.mark.parametrize("frame", [3, None, "rules.csv", {"id": ["a"], "where": ["a > 1"]}])
def test_what_is_no_table_is_refused_by_its_type(schema: Path, frame: object) -> None:
    with pytest.raises(QuerySetError, match=rf"cannot be read from {type(frame).__name__}; give a"):
        hg.queries_from_dataframe(frame, schema)


BAD_IDS = {"": "is empty", "a\0b": "NUL", "x" * 1_001: "1,001 characters; the most is 1,000"}


@pytest.mark.parametrize(("query_id", "said"), BAD_IDS.items(), ids=["empty", "nul", "long"])
def test_ids_have_limits_wherever_they_enter(schema: Path, query_id: str, said: str) -> None:
    rows = [{"id": query_id, "where": "a > 1"}, {"id": "x" * 1_000, "where": "a > 1"}]
    loaded = hg.queries_from_dataframe(rows, schema)
    assert loaded.ids == ("x" * 1_000,)
    assert said in str(loaded.report.errors[0].error)
    if "\0" not in query_id:  # no text of SQL may hold one
        for where in ("a > 1", "(a > 1 OR a < 0)"):  # by the fast path, and by the other
            text = f"{SCHEMA} CREATE QUERY `{query_id}` AS SELECT * FROM s WHERE {where}"
            _, refused = Script(Schema()).read(text)
            assert isinstance(refused, Rejected)
            assert said in str(refused.error) or not query_id
    query = replace(loaded["x" * 1_000], id=query_id)
    with pytest.raises(QuerySetError, match=said):
        QuerySet(loaded.schema, [query])
    with pytest.raises(QuerySetError, match=said):
        hg.build_index(loaded, "scan").insert(query)
    assert len(str(loaded.report.errors[0].error)) < 300


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".parquet"])
def test_one_query_is_read_without_the_others(
    tmp_path: Path, schema: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is what the whole set has under its id, and no other condition is parsed."""
    path = write(tmp_path / f"rules{ending}")
    everything = hg.read_queries(schema, path)
    parsed: list[str] = []
    read = WhereReader.read

    def note(reader: WhereReader, text: str) -> object:
        parsed.append(text)
        return read(reader, text)

    monkeypatch.setattr(WhereReader, "read", note)
    for id_ in everything.ids:
        parsed.clear()
        assert read_query(id_, schema, path) == everything[id_]
        assert set(parsed) <= {row["where"] for row in ROWS if row["id"] == id_}
        assert parsed
    with pytest.raises(SqlError, match=f"rules{ending}:[35]:.*a value is expected"):
        read_query("bad", schema, path)


def test_one_query_of_a_script(tmp_path: Path) -> None:
    """Streams are declared, comments skipped, and mistakes in other queries are not looked at."""
    file = tmp_path / "rules.sql"
    file.write_text(
        SCHEMA
        + """
        SET TIME ZONE 'Europe/Berlin';
        -- the first
        CREATE QUERY first AS SELECT * FROM s WHERE nonsense > 1;
        /* and */ CREATE /* another */ QUERY `the second` AS SELECT a, COUNT(*) FROM s GROUP BY a;
        CREATE QUERY third AS SELECT * FROM s WHERE a = 3;
        CREATE QUERY third AS SELECT * FROM s WHERE a = 4;"""
    )
    everything = hg.read_queries(file)
    for id_ in ("the second", "third"):
        assert read_query(id_, file) == everything[id_]
    with pytest.raises(SqlError, match="no attribute `nonsense`"):
        read_query("first", file)
    with pytest.raises(QuerySetError, match="no query `thrid`; did you mean `third`"):
        read_query("thrid", file)


def test_a_query_that_may_be_on_a_broken_line(tmp_path: Path, schema: Path) -> None:
    """A line without an id that could be read may be the one that is looked for."""
    file = tmp_path / "rules.jsonl"
    file.write_text('{"id": "near", "where": "a > 1"}\n{"id": "q", "where: \n')
    with pytest.raises(QuerySetError, match=r"no query `q`; there are `near`; not read.*:2:1: not"):
        read_query("q", schema, file)
