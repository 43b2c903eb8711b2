"""Small jobs for the tests: events, queries, what must come out, and what came out."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import headgate as hg
from headgate.events import read_events
from headgate.queries import QuerySet, compute_query_version
from headgate.snapshot import open_snapshot
from headgate.spark.job.commit.output import list_spans

SCHEMA = """
CREATE STREAM orders (
    id BIGINT NOT NULL,
    side STRING CHECK (side IN ('buy', 'sell')),
    price DECIMAL(10, 2),
    qty INT CHECK (qty > 0),
    ratio DOUBLE,
    buyer.name STRING
);
"""
PAYMENTS = """
CREATE STREAM payments (
    side STRING CHECK (side IN ('buy', 'sell')),
    amount INT,
    method STRING
);
"""
CONTINUOUS = {
    "paid": "SELECT o.side, p.method FROM orders AS o, payments AS p "
    "WHERE o.side = p.side AND p.method IN ('card', 'cash') AND o.qty > 49",
    "sums": "SELECT side, COUNT(*) AS n, SUM(qty) AS total FROM orders GROUP BY side",
    "seen/once": "SELECT DISTINCT o.side FROM orders AS o, payments AS p WHERE o.qty > p.amount",
}
WHERES = {
    "all": "TRUE",
    "buys": "side = 'buy'",
    "large": "qty > 50 AND price > 500.00",
    "cheap": "price < 100.10 OR ratio >= 0.9",
    "anonymous": "buyer.name IS NULL",
    "zoë": "buyer.name LIKE 'Zo%' AND NOT side = 'sell'",
    "never": "qty > 3 AND qty < 3",
}

Match = tuple[str, int, str, str]
"""Source, line, id of the query, version of the query."""


def queries(wheres: dict[str, str] = WHERES) -> str:
    """The schema and the queries, as a file of SQL."""
    written = (
        f"CREATE QUERY `{name}` AS SELECT * FROM orders WHERE {where};\n"
        for name, where in wheres.items()
    )
    return SCHEMA + "".join(written)


def continuous(selects: dict[str, str] = CONTINUOUS) -> str:
    """The second stream and the queries that remember, as a file of SQL."""
    return PAYMENTS + "".join(
        f"CREATE QUERY `{name}` AS {select};\n" for name, select in selects.items()
    )


def payments(count: int, seed: int) -> str:
    """Lines of JSON, some of them dead letters."""
    random = Random(seed)
    lines = []
    for _ in range(count):
        event = {
            "side": random.choice(["buy", "sell", None, "buy", "sell", "hold"]),
            "amount": random.choice([0, 48, 50, 99, None]),
            "method": random.choice(["card", "cash", "cheque", None]),
        }
        lines.append(json.dumps(event))
    return "\n".join(lines) + "\n"


def answered(files: dict[str, list[Path]], actual: QuerySet, select: str) -> list[tuple[Any, ...]]:
    """What DuckDB answers over all events of whole files, by stream."""
    with duckdb.connect() as database:
        for name, paths in files.items():
            stream = actual.schema.stream(name)
            batches = [b.table for path in paths for b in read_events(path, stream)]
            database.register(name, pa.Table.from_batches(batches))
        rows: list[tuple[Any, ...]] = database.execute(select).fetchall()
        return rows


def events(count: int, seed: int) -> str:
    """Lines of JSON, some of them blank, and some that are dead letters for various reasons."""
    random = Random(seed)
    lines = []
    for number in range(count):
        event = {
            "id": 2**53 + number,
            "side": random.choice(["buy", "sell", None]),
            "price": round(random.uniform(0, 1_000), 2),
            "qty": random.choice([1, 49, 51, 100, None]),
            "ratio": random.choice([-0.0, 0.5, 0.9, "NaN", None]),
            "buyer": {"name": random.choice(["Zoë", "Ann", None])},
        }
        line = json.dumps(event, ensure_ascii=False)
        spoiled = {
            0: "",
            1: line[:-5],
            2: line.replace('"buy"', '"hold"').replace('"sell"', '"hold"'),
            3: '{"id": 1, "qty": 1e400}',
            4: line + line,
            5: "   ",
        }
        lines.append(spoiled.get(random.randrange(60), line))
    return "\n".join(lines) + "\n"


def expected(files: list[Path], actual: QuerySet, stream: str = "orders") -> Counter[Match]:
    """The matches of whole files, by the local index."""
    index = hg.build_index(actual, stream=stream)
    versions = {query.id: compute_query_version(query) for query in actual}
    matches: Counter[Match] = Counter()
    for path in files:
        for batch in read_events(path, index.stream):
            lines = dict(zip(batch.events.tolist(), batch.lines.tolist(), strict=True))
            hits = index.match(batch)
            first = min([*lines, *(letter.event for letter in batch.dead)], default=0)
            for place in range(len(hits)):
                for query_id in hits[place]:
                    key = (str(path), lines[first + place], query_id, versions[query_id])
                    matches[key] += 1
    return matches


def matches_in(root: Path) -> Counter[Match]:
    """The matches in the output of a job."""
    actual: Counter[Match] = Counter()
    for row in rows_in(root, "matches"):
        actual[row["source"], row["line"], row["query_id"], row["query_version"]] += 1
    return actual


def rows_in(root: Path, kind: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for span in list_spans(root / kind):
        for path in sorted(span.path.iterdir()):
            if path.suffix == ".parquet":
                rows += pq.read_table(path, partitioning=None).to_pylist()
            else:
                rows += [json.loads(line) for line in path.read_text().splitlines()]
    return rows


def lines_of(files: list[Path]) -> int:
    return sum(path.read_bytes().count(b"\n") for path in files)


def version_in(root: Path, number: int) -> QuerySet:
    return open_snapshot(root / str(number)).query_set()
