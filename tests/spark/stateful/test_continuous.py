"""Queries that run for ever on Spark: exact, at every batch, and with nothing lost or repeated."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import headgate as hg
from headgate.errors import EventError, StateError, Unbounded, UsageError
from headgate.schema import Schema
from headgate.spark.session.failure import explain_failure
from headgate.spark.session.session import open_session
from headgate.spark.stateful import shard
from headgate.sql import Script
from tests.scale import slow_unless_in

ROOT = Path(__file__).parents[3]
PATIENCE = 60  # seconds
DECLARED = """
CREATE STREAM S (A INT, B INT, C STRING CHECK (C IN ('x', 'y', 'z')));
CREATE STREAM T (E INT, F INT CHECK (F >= 0), box.G BIGINT);
"""
Q3 = "SELECT A FROM S, T WHERE A = E AND A > 10 AND E < 20"
BATCHES, ROWS = 3, 80
MANY = 12  # batches, so that one that is to be stopped has not ended by then

Rows = list[dict[str, Any]]


def schema_of(text: str) -> Schema:
    script = Script(Schema())
    list(script.read(text))
    return script.schema


SCHEMA = schema_of(DECLARED)


class Streams:
    """Files of rows in a folder, each of which is a batch; all of them can be had again."""

    def __init__(self, folder: Path, batches: int = BATCHES, rows: int = ROWS) -> None:
        self.folder = folder
        chance = Random(9)
        self.s: Rows = []
        self.t: Rows = []
        for _ in range(batches):
            self.add(
                [
                    {
                        "A": chance.choice([None, *range(5, 25)]),
                        "B": chance.randrange(50),
                        "C": chance.choice([None, "x", "y", "z"]),
                    }
                    for _ in range(rows)
                ],
                [
                    {
                        "E": chance.choice([None, *range(5, 25)]),
                        "F": chance.randrange(50),
                        "box": {"G": chance.choice([None, 2**53 + 1, chance.randrange(9)])},
                    }
                    for _ in range(rows)
                ],
            )

    def add(self, s: Rows, t: Rows) -> None:
        for name, rows, fields in (("S", s, S_FIELDS), ("T", t, T_FIELDS)):
            directory = self.folder / name
            directory.mkdir(parents=True, exist_ok=True)
            number = len(list(directory.iterdir()))
            path = directory / f"{number}.parquet"
            pq.write_table(pa.Table.from_pylist(rows, pa.schema(fields)), path)
            os.utime(path, (1_700_000_000 + number,) * 2)
        self.s += s
        self.t += t

    def joined(self, on: Callable[[dict[str, Any], dict[str, Any]], bool]) -> list[Any]:
        return [(s, t) for s in self.s for t in self.t if on(s, t)]


Fields = list[tuple[str, pa.DataType]]

S_FIELDS: Fields = [("A", pa.int32()), ("B", pa.int32()), ("C", pa.string())]
T_FIELDS: Fields = [("E", pa.int32()), ("F", pa.int32()), ("box", pa.struct([("G", pa.int64())]))]


def read(spark: SparkSession, folder: Path) -> dict[str, DataFrame]:
    """The streams of a folder, a file of each a batch."""
    actual = {}
    for name, types in (("S", "A int, B int, C string"), ("T", "E int, F int, box struct<G long>")):
        reader = spark.readStream.schema(types).option("maxFilesPerTrigger", 1)
        actual[name] = reader.parquet(str(folder / name))
    return actual


def started(frame: DataFrame, folder: Path) -> StreamingQuery:
    """Each batch goes into a directory of its own, to be seen one by one."""
    writer = frame.writeStream.option("checkpointLocation", str(folder / "checkpoint"))

    def write(batch: DataFrame, number: int) -> None:
        batch.write.mode("overwrite").parquet(str(folder / "batches" / f"{number:03}"))

    return writer.foreachBatch(write).trigger(availableNow=True).start()


def batches_of(frame: DataFrame, folder: Path) -> list[Rows]:
    """The rows of each batch, of a query that runs until there is no more."""
    started(frame, folder).awaitTermination()
    directories = sorted((folder / "batches").iterdir())
    return [pq.read_table(directory).to_pylist() for directory in directories]


def given_by(frame: DataFrame, mode: str = "append") -> Rows:
    """All rows of a query that runs until there is no more."""
    name = f"found_{time.monotonic_ns()}"
    writer = frame.writeStream.format("memory").queryName(name).outputMode(mode)
    writer.trigger(availableNow=True).start().awaitTermination()
    return [row.asDict() for row in frame.sparkSession.table(name).collect()]


def counted(batches: list[Rows]) -> Counter[Any]:
    """How often each row was given, by its multiplicity."""
    actual: Counter[Any] = Counter()
    for row in (row for batch in batches for row in batch):
        times = row.pop("multiplicity", 1)
        actual[tuple(row.values())] += times
    return actual


def in_range(s: dict[str, Any], t: dict[str, Any]) -> bool:
    return s["A"] == t["E"] and s["A"] is not None and 10 < s["A"] < 20


@pytest.fixture
def streams(tmp_path: Path) -> Streams:
    return Streams(tmp_path / "in")


def test_a_join_gives_every_pair_with_its_multiplicity(
    spark: SparkSession, streams: Streams
) -> None:
    """Q3 of Table I; and the same in shards, expanded."""
    given = read(spark, streams.folder)
    frame = hg.spark.continuous(Q3, given, schema=SCHEMA)
    assert [(f.name, f.dataType.simpleString()) for f in frame.schema] == [
        ("A", "int"),
        ("multiplicity", "bigint"),
    ]
    wanted = Counter((s["A"],) for s, _ in streams.joined(in_range))
    assert counted([given_by(frame)]) == wanted
    many = hg.spark.continuous(Q3, given, schema=SCHEMA, shards=3, expand=True)
    assert many.columns == ["A"]
    assert counted([given_by(many, "update")]) == wanted


def test_distinct_gives_each_row_once(spark: SparkSession, streams: Streams) -> None:
    """In shards too, NULL and all."""
    select = "SELECT DISTINCT C, A FROM S WHERE A BETWEEN 20 AND 30 OR A IS NULL"
    frame = hg.spark.continuous(select, read(spark, streams.folder), schema=SCHEMA, shards=2)
    wanted = {(row["C"], row["A"]) for row in streams.s if row["A"] is None or row["A"] >= 20}
    assert counted([given_by(frame)]) == Counter(wanted)


AGGREGATE = """SELECT C, COUNT(*) AS n, SUM(F) AS f, MAX(box.G) AS g FROM S, T
WHERE A = E AND A > 10 AND E < 14 GROUP BY C"""


def groups_of(pairs: list[Any]) -> dict[Any, tuple[int, int, int | None]]:
    actual: dict[Any, list[Any]] = {}
    for s, t in pairs:
        actual.setdefault(s["C"], []).append(t)
    return {
        group: (
            len(rows),
            sum(t["F"] for t in rows),
            max((t["box"]["G"] for t in rows if t["box"]["G"] is not None), default=None),
        )
        for group, rows in actual.items()
    }


def test_an_aggregate_gives_changed_groups_or_all(
    spark: SparkSession, streams: Streams, tmp_path: Path
) -> None:
    """The groups that a batch changes, or all of them in every batch, one that changes none too."""
    streams.add([{"A": 1, "B": 1, "C": "x"}], [{"E": 1, "F": 1, "box": None}])
    given = read(spark, streams.folder)
    wanted = groups_of(streams.joined(lambda s, t: in_range(s, t) and s["A"] < 14))
    assert len(wanted) == 4
    changed = batches_of(hg.spark.continuous(AGGREGATE, given, schema=SCHEMA), tmp_path / "update")
    assert changed[-1] == []
    last = {row["C"]: (row["n"], row["f"], row["g"]) for batch in changed for row in batch}
    assert last == wanted
    complete = hg.spark.continuous(AGGREGATE, given, schema=SCHEMA, mode="complete")
    every = batches_of(complete, tmp_path / "complete")
    assert {row["C"]: (row["n"], row["f"], row["g"]) for row in every[-1]} == wanted


TYPES = """CREATE STREAM V (
    k INT CHECK (k BETWEEN 1 AND 3), big BIGINT, price DECIMAL(38, 2), at TIMESTAMP, day DATE,
    text STRING, x DOUBLE, box.deep.ok BOOLEAN);"""


def test_types_survive(spark: SparkSession, tmp_path: Path) -> None:
    """Values arrive as they were, also in another time zone, and with a single batch."""
    # values at the edge of what JSON, doubles or time zones would change
    row: dict[str, Any] = {
        "k": 1,
        "big": 2**53 + 1,
        "price": Decimal("999999999999999999999999999999999999.99"),
        "at": datetime(2024, 3, 31, 1, 30, 0, 1, tzinfo=UTC),
        "day": date(1, 1, 1),
        "text": "é\0x",
        "x": -1.5e-300,
        "box": {"deep": {"ok": True}},
    }
    nothing = {**dict.fromkeys(row), "k": 2, "box": {"deep": None}}
    fields: Fields = [
        ("k", pa.int32()),
        ("big", pa.int64()),
        ("price", pa.decimal128(38, 2)),
        ("at", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("text", pa.string()),
        ("x", pa.float64()),
        ("box", pa.struct([("deep", pa.struct([("ok", pa.bool_())]))])),
    ]
    path = tmp_path / "v.parquet"
    pq.write_table(pa.Table.from_pylist([row, nothing, row], pa.schema(fields)), path)
    select = """SELECT k, box.deep.ok AS ok, MAX(big) AS big, MIN(price) AS price, MAX(at) AS at,
        MAX(day) AS day, MAX(text) AS text, MIN(x) AS x, COUNT(*) AS n FROM V
        GROUP BY k, box.deep.ok"""
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        frame = hg.spark.continuous(
            select, {"v": spark.read.parquet(str(path))}, schema=schema_of(TYPES)
        )
        actual = frame.selectExpr("* EXCEPT (at)", "unix_micros(at) AS at").collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(zone))
    del row["box"], nothing["box"]
    row["at"] = round(row["at"].timestamp() * 1_000_000)
    assert sorted((one.asDict() for one in actual), key=lambda one: one["k"]) == [
        {**row, "ok": True, "n": 2},
        {**nothing, "ok": None, "n": 1},
    ]


@pytest.mark.slow
def test_goes_on_from_its_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    """What was stored joins what comes later; the query of another checkpoint is refused."""
    streams = Streams(tmp_path / "in", batches=2)
    frame = hg.spark.continuous(Q3, read(spark, streams.folder), schema=SCHEMA)
    batches_of(frame, tmp_path)
    streams.add(streams.s[:20], streams.t[:20])
    streams.add([{"A": 12, "B": 1, "C": None}], [])
    wanted = Counter((s["A"],) for s, _ in streams.joined(in_range))
    assert counted(batches_of(frame, tmp_path)) == wanted
    streams.add([{"A": 12, "B": 1, "C": None}], [])
    other = Q3.replace("> 10", "> 11")
    with pytest.raises(PySparkException) as error:
        batches_of(hg.spark.continuous(other, read(spark, streams.folder), schema=SCHEMA), tmp_path)
    assert explain_failure(error.value) == "this is the state of another query than `query`"


def test_states_of_many_parts(streams: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state that is larger than a part, and one whose parts are read again and again."""
    monkeypatch.setattr(shard, "MAX_CACHED_SHARDS", 0)
    monkeypatch.setattr(shard, "MAX_PART_BYTES", 100)
    kept = FakeState()
    run = shard.QuerySpec(DECLARED, f"CREATE QUERY q AS {Q3}", "update", False, "fail", 1)
    actual: Counter[Any] = Counter()
    for start in range(0, len(streams.s), 50):
        rows = {"S": streams.s, "T": streams.t}
        reduced = {
            name: pa.Table.from_pylist(every[start : start + 50]) for name, every in rows.items()
        }
        actual += kept.after_batch(run, reduced)
    assert len(kept.parts.kept) > 10
    assert actual == Counter((s["A"],) for s, _ in streams.joined(in_range))
    many = replace(run, shards=2)
    with pytest.raises(StateError, match="the query began with 1 shards, and has 2 now"):
        kept.after_batch(many, {"S": pa.Table.from_pylist(streams.s[:1])})
    kept.parts.kept[3,] = (b"nonsense",)
    with pytest.raises(StateError, match="part 3 of a query's state is damaged"):
        kept.after_batch(run, {"S": pa.Table.from_pylist(streams.s[:1])})


class FakeState:
    """A state store, of one shard."""

    def __init__(self) -> None:
        self.known, self.parts = FakeValues(), FakeValues()

    def getValueState(self, *_: str) -> FakeValues:  # noqa: N802
        return self.known

    def getMapState(self, *_: str) -> FakeValues:  # noqa: N802
        return self.parts

    def after_batch(self, sent: shard.QuerySpec, given: dict[str, pa.Table]) -> Counter[Any]:
        """What a shard gives for some rows."""
        columns = {"S": ("A",), "T": ("E",)}
        rows = []
        for name, table in given.items():
            reducer = shard.Reducer(sent, name, columns[name])
            for batch in reducer.reduce(table.select(columns[name]).to_batches()):
                rows += [FakeRow(*row.values()) for row in batch.to_pylist()]
        processor = shard.Shard(sent)
        processor.init(self)  # type: ignore[arg-type]
        pieces = [row.answer for row in processor.handleInputRows((0,), iter(rows), None)]
        batch = pa.RecordBatch.from_pydict({"answer": pa.array(pieces, pa.binary())})
        return counted([batch.to_pylist() for batch in shard.decode_answers([batch])])


class FakeRow:
    def __init__(self, shard: int, stream: str, reduced: bytes, skipped: int) -> None:
        self.shard, self.stream, self.reduced, self.skipped = shard, stream, reduced, skipped


class FakeValues:
    """A value state, under the key (), or a map state."""

    def __init__(self) -> None:
        self.kept: dict[tuple[int, ...], tuple[Any, ...]] = {}

    def get(self) -> tuple[Any, ...] | None:
        return self.kept.get(())

    def update(self, value: tuple[Any, ...]) -> None:
        self.kept[()] = value

    def getValue(self, key: tuple[int, ...]) -> tuple[Any, ...] | None:  # noqa: N802
        return self.kept.get(key)

    def updateValue(self, key: tuple[int, ...], value: tuple[Any, ...]) -> None:  # noqa: N802
        self.kept[key] = value

    def removeKey(self, key: tuple[int, ...]) -> None:  # noqa: N802
        del self.kept[key]


def test_rows_that_are_not_valid(spark: SparkSession) -> None:
    """They stop the query with the explain_failure, or are left out."""
    rows = pa.RecordBatch.from_pydict({"c0": [12, 12], "c1": ["w", "x"]})
    select = "SELECT C, F FROM S, T WHERE A = E AND A = 12 AND F < 9"
    sent = shard.QuerySpec(DECLARED, f"CREATE QUERY q AS {select}", "update", False, "fail", 1)
    with pytest.raises(EventError) as error:
        list(shard.Reducer(sent, "S", ("A", "C")).reduce([rows]))
    assert str(error.value) == (
        "a row of stream S is not valid: `C` is 'w', outside its CHECK, in "
        '{"A":12,"C":"w"}; invalid=\'skip\' leaves such rows out'
    )
    frames = {
        "S": spark.sql("SELECT * FROM VALUES (12, 1, 'w'), (12, 2, 'x') AS v(A, B, C)"),
        "T": spark.sql("SELECT 12 AS E, 3 AS F"),
    }
    actual = hg.spark.continuous(select, frames, schema=SCHEMA, invalid="skip").collect()
    assert [tuple(row) for row in actual] == [("x", 3, 1)]


UNBOUNDED = "SELECT B, C FROM S, T WHERE B = E"


@pytest.mark.parametrize(
    "select",
    slow_unless_in([f"{Q3} AND C = 'x'"], [f"{Q3} AND C = 'x'", UNBOUNDED]),
    ids=["bounded", "unbounded"],
)
def test_rows_that_are_left_out_are_counted(
    spark: SparkSession, tmp_path: Path, select: str
) -> None:
    """In every batch, also rows that the query would not need, and also of a table."""
    limit = 1_000_000 if select == UNBOUNDED else None
    good, bad = {"A": 12, "B": 1, "C": "x"}, {"A": 3, "B": 1, "C": "w"}
    sent = [[good, bad], [bad, bad, good], [good]]
    for number, rows in enumerate(sent):
        for name, fields, table in (("S", S_FIELDS, rows), ("T", T_FIELDS, [{"E": 12, "F": 1}])):
            (tmp_path / name).mkdir(exist_ok=True)
            path = tmp_path / name / f"{number}.parquet"
            pq.write_table(pa.Table.from_pylist(table, schema=pa.schema(fields)), path)

    def leave_out(frames: dict[str, DataFrame]) -> DataFrame:
        return hg.spark.continuous(
            select, frames, schema=SCHEMA, invalid="skip", max_state_rows=limit
        )

    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always", hg.spark.HeadgateWarning)
        query = started(leave_out(read(spark, tmp_path)), tmp_path)
        query.awaitTermination()
        assert hg.spark.count_skipped(query) == hg.spark.count_skipped(query) == 3
    assert any("invalid rows are left out" in str(each.message) for each in shown)
    tables = {name: spark.read.parquet(str(tmp_path / name)) for name in ("S", "T")}
    frame = leave_out(tables)
    with pytest.raises(UsageError, match="has not run yet"):
        hg.spark.count_skipped(frame)
    frame.collect()
    assert hg.spark.count_skipped(frame) == 3
    with pytest.raises(UsageError, match="invalid='skip'"):
        hg.spark.count_skipped(spark.range(1))


def test_what_is_refused(spark: SparkSession) -> None:
    """Each with a explain_failure, before anything runs."""
    s = spark.sql("SELECT 12 AS A, 1 AS B, 'x' AS C")
    both = {"S": s, "T": spark.sql("SELECT 12 AS E, 3 AS F")}

    def refused(query: Any, streams: dict[str, DataFrame] = both, **options: Any) -> str:
        schema = options.pop("schema", SCHEMA)
        with pytest.raises(hg.HeadgateError) as error:
            hg.spark.continuous(query, streams, schema=schema, **options)
        return str(error.value)

    assert refused(Q3, {"S": s}).endswith("reads stream `T`, which is not given; there are `S`")
    assert "one kind" in refused(Q3, {**both, "S": spark.readStream.format("rate").load()})
    assert "is a filter" in refused("SELECT A FROM S WHERE A > 10")
    assert refused("SELECT Z FROM S").startswith("<text>:1:8: no attribute `Z`")
    assert refused(Q3, mode="complet") == "no mode `complet`; did you mean `complete`?"
    assert refused(Q3, invalid="x").startswith("no invalid `x`")
    assert refused(Q3, shards=0) == "a query has at least 1 shard, not 0"
    assert refused(DECLARED, schema=None) == "the text has 0 queries; give one"
    assert "equality" in refused("SELECT A FROM S, T WHERE A < 9 AND E < 9 AND A = 1", shards=2)
    unbounded = refused("SELECT A FROM S, T WHERE A < E")
    assert unbounded.startswith("`query`: its memory keeps growing because each value of `S.A`")
    assert "<text>:1:8)" in unbounded
    assert "every row like these of S" in unbounded
    assert "suggestion: " in unbounded
    spark.conf.set("spark.sql.shuffle.partitions", "100")
    try:
        with pytest.warns(hg.spark.HeadgateWarning, match="each of 100 partitions for 1 shard"):
            hg.spark.continuous(Q3, both, schema=SCHEMA)
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", "2")


@pytest.mark.slow
def test_unbounded_queries_stop_at_their_cap(
    spark: SparkSession, streams: Streams, tmp_path: Path
) -> None:
    """Spark's own join gives the same rows, until its state is too large."""
    given = read(spark, streams.folder)
    select = "SELECT A, box.G FROM S, T WHERE A = E AND B <= F"
    with pytest.raises(Unbounded):
        hg.spark.continuous(select, given, schema=SCHEMA)
    frame = hg.spark.continuous(select, given, schema=SCHEMA, max_state_rows=1_000_000)
    pairs = streams.joined(
        lambda s, t: s["A"] is not None and s["A"] == t["E"] and s["B"] <= t["F"]
    )
    actual = batches_of(frame, tmp_path / "free")
    assert counted(actual) == Counter((s["A"], t["box"]["G"]) for s, t in pairs)
    long = read(spark, Streams(tmp_path / "long", batches=MANY).folder)
    capped = hg.spark.continuous(select, long, schema=SCHEMA, max_state_rows=250)
    with warnings.catch_warnings(record=True) as report:
        warnings.simplefilter("always")
        query = started(capped, tmp_path / "capped")
        with suppress(StreamingQueryException):  # a batch in Python may be interrupted
            query.awaitTermination()
        wait_until(lambda: any("was stopped" in str(one.message) for one in report))
    assert not query.isActive
    assert query.lastProgress is not None
    assert query.lastProgress.batchId < MANY - 1
    why = hg.spark.why_stopped(query)
    assert why is not None
    assert why.startswith("`query` was stopped: it needs unbounded memory, and its state has")
    with pytest.raises(Unbounded, match="nor does Spark run it: it joins streams only by an equal"):
        hg.spark.continuous(
            "SELECT A FROM S, T WHERE A < E", given, schema=SCHEMA, max_state_rows=1_000_000
        )


def test_an_unbounded_aggregate_is_sparks(spark: SparkSession, streams: Streams) -> None:
    """With the names and the types that ours would have; a batch has no cap."""
    table = spark.read.parquet(str(streams.folder / "T"))
    select = "SELECT box.G AS E, COUNT(*) AS `box.G`, AVG(F) AS f FROM T GROUP BY E, box.G"
    frame = hg.spark.continuous(select, {"t": table}, schema=SCHEMA, max_state_rows=1_000_000)
    assert [f.dataType.simpleString() for f in frame.schema] == ["bigint", "bigint", "double"]
    wanted = Counter((row["E"], row["box"]["G"]) for row in streams.t)
    actual = Counter((row[0], row[1]) for row in frame.collect())
    assert actual == Counter((group, times) for (_, group), times in wanted.items())


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)


@pytest.mark.slow
def test_killed_python_workers_do_no_harm(spark: SparkSession, tmp_path: Path) -> None:
    """Each task whose worker dies is tried again, with the state of the batch before."""
    streams = Streams(tmp_path / "in", batches=6, rows=30)
    frame = hg.spark.continuous(Q3, read(spark, streams.folder), schema=SCHEMA)
    query = started(frame, tmp_path)
    killed = []
    for batch in (2, 4):
        wait_until((tmp_path / "checkpoint/offsets" / str(batch)).exists)
        for pid in python_workers():
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)
    query.awaitTermination()
    assert killed
    assert query.exception() is None
    actual = [pq.read_table(path).to_pylist() for path in (tmp_path / "batches").iterdir()]
    assert counted(actual) == Counter((s["A"],) for s, _ in streams.joined(in_range))


def processes() -> dict[int, tuple[int, str]]:
    """Parent and command of each process."""
    listed = subprocess.run(
        ["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    ).stdout
    rows = (line.split(None, 2) for line in listed.splitlines())
    return {int(row[0]): (int(row[1]), row[2]) for row in rows}


def below(pid: int) -> Iterator[int]:
    """The children of a process, and theirs."""
    children = [child for child, (parent, _) in processes().items() if parent == pid]
    for child in children:
        yield child
        yield from below(child)


def python_workers() -> list[int]:
    """The workers of this process's Spark, which daemons have forked."""
    listed = processes()
    ours = list(below(os.getpid()))
    daemons = [pid for pid in ours if "pyspark.daemon" in listed.get(pid, (0, ""))[1]]
    return [pid for pid in ours if listed.get(pid, (0, ""))[0] in daemons]


@pytest.mark.slow
def test_a_killed_driver_loses_and_repeats_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """Killed for good in the middle of a batch, it goes on, with files as Spark writes them."""
    streams = Streams(tmp_path / "in", batches=6, rows=30)
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.stateful.test_continuous", str(tmp_path)],
            cwd=ROOT,
            stdout=log,
            stderr=log,
        )
        try:
            wait_until((tmp_path / "checkpoint/offsets/3").exists)
        finally:
            for pid in (process.pid, *below(process.pid)):
                os.kill(pid, signal.SIGKILL)
            process.wait(PATIENCE)
    assert len(list((tmp_path / "checkpoint/commits").glob("[0-9]*"))) <= 4
    to_files(spark, tmp_path).awaitTermination()
    rows = [row.asDict() for row in spark.read.parquet(str(tmp_path / "out")).collect()]
    assert counted([rows]) == Counter((s["A"],) for s, _ in streams.joined(in_range))


def to_files(spark: SparkSession, folder: Path) -> StreamingQuery:
    frame = hg.spark.continuous(Q3, read(spark, folder / "in"), schema=SCHEMA)
    writer = frame.writeStream.option("checkpointLocation", str(folder / "checkpoint"))
    return writer.trigger(availableNow=True).start(str(folder / "out"), format="parquet")


if __name__ == "__main__":
    session = open_session("local[2,4]", {"spark.sql.shuffle.partitions": "2"})
    to_files(session, Path(sys.argv[1])).awaitTermination()
