"""`hg.spark.route` says of each row of a DataFrame what the local index says of it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import headgate as hg
from headgate.errors import EventError, SnapshotError, UsageError
from headgate.queries import QuerySet, compute_query_version
from headgate.schema import Attribute, Interval, Stream, ValueSet
from headgate.snapshot import publish, write_snapshot
from headgate.spark import HeadgateWarning
from headgate.spark import matcher as matcher_module
from headgate.spark.frames import quote_name
from headgate.spark.routing import Route
from headgate.spark.transport import pack_queries
from tests.boundaries import STREAM
from tests.strategies import Clauses, Seeded, row

SETS, QUERIES, EVENTS = 4, 40, 240
NAMES = ("event", "queries", "error")
PAIR = ["query_id", "query_version", "error"]
ZONE = "America/St_Johns"

# the corpus has no domains, and errors must agree too
CHECKED: dict[str, dict[str, Any]] = {
    "lots": {"domain": ValueSet.of(Interval(-1, None))},
    "day": {"nullable": False},
}
TRADES = Stream(
    STREAM.name, tuple(replace(a, **CHECKED.get(a.name, {})) for a in STREAM.attributes)
)

SALES = """
CREATE STREAM sales (
    qty INT, price DECIMAL(10, 2) CHECK (price > 0), note STRING, `at` TIMESTAMP, shop.city STRING
);
CREATE QUERY many AS SELECT * FROM sales WHERE qty > 10;
CREATE QUERY berlin AS SELECT * FROM sales WHERE shop.city = 'Berlin';
CREATE QUERY dear AS SELECT * FROM sales WHERE price >= 99.5 OR qty IS NULL;
"""
ROWS = """
SELECT * FROM VALUES
    (0, 20, 1.00BD, 'x', named_struct('city', 'Berlin', 'zip', 1)),
    (1, 5, 100.00BD, 'y', NULL),
    (2, NULL, 2.00BD, 'z', named_struct('city', NULL, 'zip', 2)),
    (3, 50, -1.00BD, NULL, named_struct('city', 'Berlin', 'zip', 3)),
    (4, 1, NULL, NULL, named_struct('city', 'Bonn', 'zip', 4))
AS t(event, qty, price, note, shop)
"""
ANSWERS: list[tuple[int, list[str], str | None]] = [
    (0, ["many", "berlin"], None),
    (1, ["dear"], None),
    (2, ["dear"], None),
    (3, [], "`price` is -1.00, outside its CHECK"),
    (4, [], None),
]


@pytest.fixture(scope="module")
def sales(tmp_path_factory: pytest.TempPathFactory) -> QuerySet:
    file = tmp_path_factory.mktemp("sales") / "sales.sql"
    file.write_text(SALES)
    return hg.read_queries(file)


@pytest.fixture
def frame(spark: SparkSession) -> DataFrame:
    return spark.sql(ROWS)


@pytest.fixture
def zone(spark: SparkSession) -> Iterator[None]:
    before = str(spark.conf.get("spark.sql.session.timeZone"))
    spark.conf.set("spark.sql.session.timeZone", ZONE)
    yield
    spark.conf.set("spark.sql.session.timeZone", before)


class Corpus:
    """Random query sets and events; the events lie in two Parquet files."""

    def __init__(self, folder: Path) -> None:
        dice = Seeded(2024)
        self.sets = [
            hg.queries_from_dataframe(
                pa.table(
                    {
                        "id": [f"q{number}" for number in range(QUERIES)],
                        "where": [Clauses(dice).where() for _ in range(QUERIES)],
                    }
                ),
                TRADES,
                strict=True,
            )
            for _ in range(SETS)
        ]
        self.events = _table([row(dice) for _ in range(EVENTS)])
        self.folder = folder
        for part in range(2):
            half = self.events.slice(part * EVENTS // 2, EVENTS // 2)
            pq.write_table(half, folder / f"{part}.parquet")

    def expected(self, number: int) -> list[tuple[int, list[str], str | None]]:
        """What the local index says of each event about one of the sets."""
        matches = hg.build_index(self.sets[number]).match(self.events)
        errors = matches.errors
        return [(n, matches[n], errors.get(n)) for n in range(len(matches))]


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    """The rows as they would lie in a table of a lake: nested, with a column of no concern."""
    columns: dict[str, Any] = {"event": pa.array(range(len(rows)), pa.int64())}
    for attribute in TRADES:
        outer, _, inner = attribute.name.partition(".")
        values = pa.array([actual[attribute.name] for actual in rows], attribute.type.arrow)
        columns[outer] = pa.StructArray.from_arrays([values], names=[inner]) if inner else values
    return pa.table(columns)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return Corpus(tmp_path_factory.mktemp("events"))


@pytest.fixture(scope="module")
def expected(corpus: Corpus) -> list[tuple[int, int, list[str], str | None]]:
    return [(s, *answer) for s in range(SETS) for answer in corpus.expected(s)]


def every_set(corpus: Corpus, frame: DataFrame, output: Any, *columns: str) -> list[Any]:
    """The rows of all sets in one action, in the order of set and event."""
    frames = [
        frame.transform(hg.spark.route(queries, output=output)).select(
            F.lit(number).alias("set"), "event", *columns
        )
        for number, queries in enumerate(corpus.sets)
    ]
    union = frames[0]
    for other in frames[1:]:
        union = union.union(other)
    return sorted((tuple(actual) for actual in union.collect()), key=lambda actual: actual[:2])


def test_the_corpus_is_not_trivial(expected: list[tuple[int, int, list[str], str | None]]) -> None:
    """The agreement below is about thousands of matches, and about errors of both kinds."""
    assert len(expected) * QUERIES > 30_000
    assert sum(len(ids) for _, _, ids, _ in expected) > 3_000
    errors = {error.partition(",")[2] for *_, error in expected if error}
    assert {" outside its CHECK", " against its NOT NULL"} <= errors


@pytest.mark.usefixtures("zone")
def test_agree_with_the_local_index(
    spark: SparkSession,
    corpus: Corpus,
    expected: list[tuple[int, int, list[str], str | None]],
) -> None:
    """All three outputs say of random queries and rows what the local index says."""
    frame = spark.read.parquet(str(corpus.folder))
    assert every_set(corpus, frame, "array", "queries", "error") == expected
    counts = [(number, event, len(ids), error) for number, event, ids, error in expected]
    assert every_set(corpus, frame, "count", "matches", "error") == counts
    pairs = [
        (number, event, *pair)
        for number, event, ids, error in expected
        for pair in (
            [(None, None, error)]
            if error
            else [(id_, compute_query_version(corpus.sets[number][id_]), None) for id_ in ids]
        )
    ]
    actual = every_set(corpus, frame, "pairs", "query_id", "query_version", "error")
    assert actual == pairs


@pytest.mark.usefixtures("zone")
@pytest.mark.parametrize("output", ["array", "pairs"])
def test_agree_on_a_stream(
    spark: SparkSession, corpus: Corpus, tmp_path: Path, output: Any
) -> None:
    """A streaming DataFrame, in batches, gives the rows that a batch DataFrame gives."""
    batch = spark.read.parquet(str(corpus.folder))
    stream = spark.readStream.schema(batch.schema).option("maxFilesPerTrigger", 1)
    route = hg.spark.route(corpus.sets[0], output=output, keep=["event"])
    query = (
        stream.parquet(str(corpus.folder))
        .transform(route)
        .writeStream.option("checkpointLocation", str(tmp_path / "state"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "out"), format="parquet")
    )
    assert query.awaitTermination(60)
    assert len([batch for batch in query.recentProgress if batch["numInputRows"]]) == 2
    streamed = pq.read_table(tmp_path / "out").to_pylist()
    rows = [tuple(actual.values()) for actual in streamed]
    if output == "array":
        assert sorted(rows) == corpus.expected(0)
    else:
        pairs = [
            (event, pair)
            for event, ids, error in corpus.expected(0)
            for pair in ([error] if error else ids)
        ]
        assert sorted((event, id_ or error) for event, id_, _, error in rows) == sorted(pairs)


def test_other_types_that_fit(spark: SparkSession) -> None:
    """Columns of narrower or wider types, and texts of times, are taken as an Arrow table's are."""
    table = pa.table(
        {
            "event": pa.array(range(4)),
            "qty": pa.array([3, None, 2**40, -(2**31)], pa.int64()),
            "lots": pa.array([1, 2, None, 127], pa.int8()),
            "ratio": pa.array([0.1, float("nan"), -0.0, None], pa.float32()),
            "price": pa.array([1, 2, 3, 4], pa.int16()),
            "wide": pa.array([2**53 + 1, 0, -1, None], pa.int64()),
            "day": pa.array(["2024-02-29", "2024-2-29", None, "x"]),
            "seen": pa.array([0, 1, None, -1], pa.timestamp("us")),
        }
    )
    wheres = {
        "a": "qty = 3 AND lots < 2",
        "b": "ratio >= 0 AND price > 1",
        "c": "ratio = 0.1 OR wide = 9007199254740993",
        "d": "day = '2024-02-29'",
        "e": "seen >= TIMESTAMP '1970-01-01 00:00:00' OR qty < 0",
    }
    rows = pa.table({"id": list(wheres), "where": list(wheres.values())})
    queries = hg.queries_from_dataframe(rows, STREAM, strict=True)
    matches = hg.build_index(queries).match(table)
    local = [(n, matches[n], matches.errors.get(n)) for n in range(len(matches))]
    assert local[0] == (0, ["a", "c", "d", "e"], None)
    assert [number for number, _, error in local if error] == [1, 2, 3]
    frame = spark.createDataFrame(table).transform(hg.spark.route(queries))
    actual = frame.select(*NAMES).orderBy("event").collect()
    assert [tuple(answer) for answer in actual] == local


def test_answers(frame: DataFrame, sales: QuerySet) -> None:
    """Rows keep their columns; NULL is no match; a CHECK gives an error and no matches."""
    actual = frame.transform(hg.spark.route(sales))
    assert actual.columns == [*frame.columns, "queries", "error"]
    assert [tuple(row) for row in actual.select(*NAMES).orderBy("event").collect()] == ANSWERS


def test_only_used_columns_cross_once(frame: DataFrame, sales: QuerySet) -> None:
    """Only the used columns are given to Python, and filters above it do not run it again."""
    routed = frame.transform(hg.spark.route(sales)).filter("error IS NULL")
    plan = _plan(routed.filter(F.size("queries") > 0).select("note", "queries"))
    (call,) = re.findall(r"ArrowEvalPython \[match\((.*?)\)#", plan)
    given = [re.sub(r"#\d+", "", argument) for argument in call.split(", ")]
    assert given == ["qty", "price", "shop.city"]
    assert plan.index("Filter") < plan.index("ArrowEvalPython") < plan.index("Scan")
    pairs = _plan(frame.transform(hg.spark.route(sales, output="pairs")).filter("error IS NULL"))
    assert pairs.count("match(") == pairs.count("ArrowEvalPython") == 1


def _plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


KEPT_TYPES = """
    SELECT id AS event, CAST(id % 20 AS INT) AS qty, CAST(id - 3 AS DECIMAL(10, 2)) AS price,
        IF(id % 4 = 1, NULL, concat('é', id)) AS note,
        IF(id % 3 = 0, NULL, named_struct('city', IF(id % 2 = 0, 'Berlin', 'Bonn'))) AS shop,
        timestamp_micros(id * 1000001) AS seen, date_add(DATE '2024-02-27', CAST(id AS INT)) AS day,
        CAST(concat(id) AS BINARY) AS raw, id = 2 AS flag, id AS `a.b ``c```,
        TIMESTAMP_NTZ '2024-03-31 02:30:00' AS at
    FROM range(0, 40, 1, 2)
"""


@pytest.mark.usefixtures("zone")
@pytest.mark.parametrize(
    "keep",
    [["event"], [], ["a.b `c`", "QTY", "price"], ["seen", "day", "raw", "flag"]],
)
def test_pairs_come_as_rows(spark: SparkSession, sales: QuerySet, keep: list[str]) -> None:
    """Few kept columns of plain types cross with the used ones; the rows are those of the UDF."""
    frame = spark.sql(KEPT_TYPES).withColumnRenamed("at", "then")
    pairs = frame.transform(hg.spark.route(sales, output="pairs", keep=keep))
    assert "MapInArrow" in _plan(pairs)
    whole = frame.transform(hg.spark.route(sales, output="pairs"))
    assert "ArrowEvalPython" in _plan(whole)
    expected = whole.select(*[F.col(quote_name(name.lower())) for name in keep], *PAIR)
    assert pairs.schema.simpleString() == expected.schema.simpleString()
    rows = [sorted(map(repr, rows.collect())) for rows in (pairs, expected)]
    assert rows[0] == rows[1]
    assert len(rows[0]) == 34
    assert sum("outside its CHECK" in row for row in rows[0]) == 4


def test_when_pairs_are_made_in_the_jvm(frame: DataFrame, sales: QuerySet) -> None:
    """Many columns, a struct, two of a name, or one with metadata, such as a watermark."""
    marked = frame.withColumn("seen", F.timestamp_seconds("event")).withMetadata("seen", {"a": 1})
    wide = frame.select("*", *[F.lit(number).alias(f"c{number}") for number in range(5)])
    some = [f"c{number}" for number in range(4)]
    used = ["event", "qty", "price"]
    for columns, keep, expected in (
        (frame, ["shop"], False),
        (frame, ["note", "note"], False),
        (marked, ["seen"], False),
        (wide, [*some, "c4"], False),
        (wide, [*some, "qty", "price"], True),  # what queries use crosses anyway
        (wide, [*some, *used], False),
    ):
        pairs = columns.transform(hg.spark.route(sales, output="pairs", keep=keep))
        assert ("MapInArrow" in _plan(pairs)) is expected
        assert pairs.columns == [*keep, *PAIR]
        assert pairs.count() == 5


@pytest.mark.usefixtures("unfrozen")
def test_rows_of_many_pieces(
    sales: QuerySet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pairs that are too large for a piece leave in several, also those of one event."""
    many = 50
    rows = pa.table({"id": [str(n) for n in range(many)], "where": ["qty > 0 AND qty < 9"] * many})
    queries = hg.queries_from_dataframe(rows, sales)
    write_snapshot(queries, tmp_path / "queries")
    route = hg.spark.route(tmp_path / "queries", output="pairs")
    assert isinstance(route, Route)
    monkeypatch.setattr(matcher_module, "MAX_PIECE_BYTES", 1000)
    matcher = matcher_module.Matcher(route.place, "sales", route.index, ("qty",), "pairs")
    texts = ["x", None, "y" * 300, "z"]
    batch = pa.RecordBatch.from_pydict({"c0": pa.array([1, 2, 9, 3], pa.int32()), "c1": texts})
    pieces = list(matcher.map_pairs([(1, "note"), (0, "qty")], [batch]))
    assert max(len(piece) for piece in pieces) < many
    table = pa.Table.from_batches(pieces)
    assert table.column_names == ["note", "qty", *PAIR]
    ids = [str(n) for n in range(many)]
    assert sorted(table.select(["note", "qty", "query_id"]).to_pylist(), key=str) == sorted(
        (
            {"note": text, "qty": qty, "query_id": id_}
            for text, qty in (("x", 1), (None, 2), ("z", 3))
            for id_ in ids
        ),
        key=str,
    )


def test_keep(frame: DataFrame, sales: QuerySet) -> None:
    """`keep` lists columns in any case, in the order wanted; none is fine too."""
    some = hg.spark.route(sales, keep=["NOTE", "event"])
    assert frame.transform(some).columns == ["note", "event", "queries", "error"]
    none = frame.transform(hg.spark.route(sales, output="count", keep=[]))
    assert none.columns == ["matches", "error"]
    assert none.agg(F.sum("matches")).first() == (4,)
    with pytest.raises(UsageError, match=r"no column `nota` to keep; did you mean `note`\?"):
        frame.transform(hg.spark.route(sales, keep=["nota"]))
    with pytest.raises(UsageError, match=r"did you mean \['note'\]"):
        hg.spark.route(sales, keep="note")


def test_names_that_are_taken(frame: DataFrame, sales: QuerySet) -> None:
    """A column of an added name is an error unless it is left out; no other name is special."""
    taken = frame.withColumnRenamed("note", "Error").withColumn("__headgate", F.lit("mine"))
    with pytest.raises(UsageError, match="has a column `Error` already"):
        taken.transform(hg.spark.route(sales))
    with pytest.raises(UsageError, match="has a column `Error` already"):
        taken.transform(hg.spark.route(sales, keep=["error"]))
    odd = taken.withColumnRenamed("event", "a.b `c`")
    actual = odd.transform(hg.spark.route(sales, keep=["a.b `c`", "__headgate"]))
    assert actual.columns == ["a.b `c`", "__headgate", "queries", "error"]
    assert sorted(tuple(row) for row in actual.drop("error").collect()) == [
        (event, "mine", ids) for event, ids, _ in ANSWERS
    ]


def test_two_routes_on_one_frame(frame: DataFrame, sales: QuerySet) -> None:
    """A DataFrame that was routed can be routed again."""
    first = frame.transform(hg.spark.route(sales)).withColumnsRenamed(
        {"queries": "first", "error": "why"}
    )
    both = first.transform(hg.spark.route(sales)).select("event", "first", "queries", "why")
    assert sorted(tuple(row) for row in both.collect()) == [
        (event, ids, ids, why) for event, ids, why in ANSWERS
    ]


def test_empty_frames_and_sets(frame: DataFrame, sales: QuerySet) -> None:
    """No rows give no rows; no queries, or none that reads a column, give rows all the same."""
    nothing = frame.limit(0)
    for output in ("array", "pairs", "count"):
        assert nothing.transform(hg.spark.route(sales, output=output)).collect() == []
    none = QuerySet(sales.schema)
    assert frame.transform(hg.spark.route(none, output="pairs")).collect() == []
    answers = frame.transform(hg.spark.route(none)).select(*NAMES).orderBy("event").collect()
    assert [tuple(row) for row in answers] == [(n, [], None) for n in range(5)]
    rows = pa.table({"id": ["all", "nobody"], "where": ["TRUE", "1 > 2"]})
    constant = hg.queries_from_dataframe(rows, sales)
    counts = frame.transform(hg.spark.route(constant, output="count")).select("matches")
    assert [row.matches for row in counts.collect()] == [1] * 5


def test_results_of_many_pieces(spark: SparkSession) -> None:
    """Answers too large to leave a worker at once leave in pieces, and none is lost."""
    many, events = 120, 600
    ids = [f"{number:03}" + "x" * 990 for number in range(many)]
    rows = pa.table({"id": ids, "where": [f"volume >= {number}" for number in range(many)]})
    queries = hg.queries_from_dataframe(rows, STREAM)
    frame = spark.range(events, numPartitions=1).selectExpr(f"id % {many} AS volume")
    routed = frame.transform(hg.spark.route(queries))
    wrong = routed.filter(
        (F.size("queries") != F.col("volume") + 1)
        | (F.element_at("queries", -1).substr(1, 3).cast("int") != F.col("volume"))
    )
    assert (routed.count(), wrong.count()) == (events, 0)


def test_a_missing_column_is_reported(frame: DataFrame, sales: QuerySet) -> None:
    """An attribute without a column is NULL, and a warning at the caller's line names it."""
    route = hg.spark.route(sales)
    renamed = frame.withColumnRenamed("qty", "quantity")
    with pytest.warns(HeadgateWarning, match="NULL for lack of a column.*`qty`") as report:
        actual = renamed.transform(route)
    assert report[0].filename == __file__
    answers = actual.filter("error IS NULL").select("event", "queries").orderBy("event").collect()
    assert [tuple(row) for row in answers] == [
        (0, ["berlin", "dear"]),
        (1, ["dear"]),
        (2, ["dear"]),
        (4, ["dear"]),
    ]


@pytest.mark.parametrize(
    ("column", "change", "said"),
    [
        ("qty", "CAST(qty AS STRING)", "column `qty` is string, and the stream declares INT"),
        ("qty", "ARRAY(qty)", "column `qty` is array<int>, and the stream declares INT"),
        ("shop", "shop.city", "column `shop` is string, and the stream declares `shop.city` in it"),
        ("shop", "STRUCT(1 AS city)", "column `shop.city` is int.*the stream declares STRING"),
        ("shop", "STRUCT(note COLLATE UTF8_LCASE AS city)", "is string collate UTF8_LCASE, and"),
        ("`shop.city`", "note", "attribute `shop.city` has two columns"),
    ],
)
def test_drift_of_types_is_an_error(
    frame: DataFrame, sales: QuerySet, column: str, change: str, said: str
) -> None:
    """A column whose type can never fit is refused before anything runs, by name."""
    others = [name for name in frame.columns if name != column]
    changed = frame.selectExpr(*others, f"{change} AS {column}")
    with pytest.raises(EventError, match=said):
        changed.transform(hg.spark.route(sales))


def test_drift_that_does_no_harm(frame: DataFrame, sales: QuerySet) -> None:
    """New columns, and any change to a column that no query reads, leave the answers alone."""
    drifted = frame.withColumn("note", F.array("note")).withColumn("NEW", F.lit(b"\0"))
    actual = drifted.transform(hg.spark.route(sales)).select(*NAMES).orderBy("event").collect()
    assert [tuple(row) for row in actual] == ANSWERS


def test_what_is_not_routed_is_reported(tmp_path: Path) -> None:
    """Joins and aggregates on the stream are left out, and a warning lists them."""
    file = tmp_path / "q.sql"
    file.write_text(
        f"{SALES} CREATE STREAM other (qty INT);"
        "CREATE QUERY joined AS SELECT * FROM sales AS s, other AS o WHERE s.qty = o.qty;"
        "CREATE QUERY summed AS SELECT COUNT(*) FROM sales GROUP BY qty;"
        "CREATE QUERY elsewhere AS SELECT COUNT(*) FROM other GROUP BY qty;"
    )
    queries = hg.read_queries(file, strict=True)
    with pytest.warns(HeadgateWarning, match=r"left out: .*: joined, summed$"):
        hg.spark.route(queries, stream="SALES")
    with pytest.raises(UsageError, match="which stream"):
        hg.spark.route(queries)


def test_a_published_set_is_pinned(frame: DataFrame, sales: QuerySet, tmp_path: Path) -> None:
    """A route keeps the version that was current when it was made, wherever the pointer goes."""
    publish(sales, tmp_path)
    before = hg.spark.route(tmp_path)
    newer = QuerySet(sales.schema, [sales["many"]])
    publish(newer, tmp_path)
    after = hg.spark.route(str(tmp_path), output="count")
    actual = frame.transform(before).select(*NAMES).orderBy("event").collect()
    assert [tuple(row) for row in actual] == ANSWERS
    assert frame.transform(after).agg(F.sum("matches")).first() == (2,)  # without a price to check


def test_what_queries_may_be_given_as(sales: QuerySet, tmp_path: Path) -> None:
    """A snapshot's path is one way; a file, a list and an empty directory are told apart."""
    snapshot = write_snapshot(sales, tmp_path / "snapshot").directory
    assert hg.spark.route(snapshot).used == hg.spark.route(sales).used
    with pytest.raises(UsageError, match=r"read it with headgate\.read_queries"):
        hg.spark.route(snapshot / "manifest.json")
    with pytest.raises(UsageError, match="cannot be taken from list"):
        hg.spark.route([])  # type: ignore[arg-type]
    with pytest.raises(SnapshotError, match="nothing has been published"):
        hg.spark.route(tmp_path)
    with pytest.raises(UsageError, match=r"no output `pair`; did you mean `pairs`\?"):
        hg.spark.route(sales, output="pair")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no index `best`"):
        hg.spark.route(sales, index="best")


def test_equal_sets_travel_once(sales: QuerySet) -> None:
    """The file in which queries travel depends on them alone."""
    assert pack_queries(sales) == pack_queries(QuerySet(sales.schema, sales))


def test_used_attributes(sales: QuerySet) -> None:
    """A route knows which attributes the queries use, in declared order, and warns of nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        used: tuple[Attribute, ...] = hg.spark.route(sales).used
    assert [attribute.name for attribute in used] == ["qty", "price", "shop.city"]
