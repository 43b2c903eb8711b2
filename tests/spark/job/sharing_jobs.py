"""Small networks for the tests: peers, streams and queries at random, and what each must get."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

import headgate as hg
from headgate.events import read_events
from headgate.predicate import Column
from headgate.queries import Query, QuerySet
from headgate.spark.job.commit.output import encode_folder
from tests.spark.job.jobs import rows_in

SCHEMA = """
CREATE STREAM orders (
    id BIGINT NOT NULL,
    side STRING CHECK (side IN ('buy', 'sell')),
    price DECIMAL(10, 2),
    qty INT CHECK (qty > 0),
    ratio DOUBLE,
    `at` TIMESTAMP,
    buyer.name STRING,
    late BOOLEAN
);
CREATE STREAM quotes (ask INT, bid INT, symbol STRING);
"""
HOSTILE = {
    "all": "SELECT * FROM orders",
    "nan": "SELECT id AS number, buyer.name AS who FROM orders WHERE ratio = CAST('NaN' AS DOUBLE)",
    "big": "SELECT id FROM orders WHERE id > 9007199254740992",
    "zero": "SELECT ratio, id FROM orders WHERE ratio = 0.0",
    "cheap": "SELECT price, qty FROM orders WHERE price < 100.10 OR ratio >= 0.9",
    "no/body": "SELECT qty, buyer.name FROM orders WHERE buyer.name IS NULL",
    "june": "SELECT `at`, id FROM orders WHERE `at` >= TIMESTAMP '2024-06-01 00:00:00'",
    "never": "SELECT * FROM orders WHERE qty > 3 AND qty < 3",
    "twice": "SELECT id AS a, id AS b, side FROM orders WHERE NOT side = 'sell'",
    "beside": "SELECT id FROM orders WHERE qty < ratio OR late",
    "zoë": "SELECT buyer.name AS `the name` FROM orders WHERE buyer.name LIKE 'Zo%'",
    "spread": "SELECT ask, bid FROM quotes WHERE ask > bid",
    "quoted": "SELECT * FROM quotes WHERE symbol IN ('A', 'B') OR ask IS NULL",
}
STRATEGIES = [
    ("ship", "exact"),
    ("filter", "exact"),
    *[(strategy, method) for strategy in ("share", "widen") for method in ("exact", "hsr", "hcr")],
]

Rows = Counter[str]


def orders(count: int, random: Random) -> str:
    """Lines of JSON; a few are dead letters or blank."""
    lines = []
    for number in range(count):
        event = {
            "id": random.choice([2**53, 2**53 + 1, -1, number]),
            "side": random.choice(["buy", "sell", None]),
            "price": round(random.uniform(0, 1_000), 2),
            "qty": random.choice([1, 3, 49, 51, 100, None]),
            "ratio": random.choice([-0.0, 0.0, 0.5, 0.9, 77.0, "NaN", None]),
            "at": f"2024-{random.randint(1, 12):02}-03T04:05:06.789012Z",
            "buyer": {"name": random.choice(["Zoë", "Ann", None])},
            "late": random.choice([True, False, None]),
        }
        spoiled = {0: "", 1: json.dumps(event)[:-5], 2: '{"id": 1, "qty": 0}', 3: '{"id": null}'}
        lines.append(spoiled.get(random.randrange(80), json.dumps(event)))
    return "\n".join(lines) + "\n"


def quotes(count: int, random: Random) -> str:
    lines = [
        json.dumps(
            {
                "ask": random.choice([random.randrange(100), None]),
                "bid": random.randrange(100),
                "symbol": random.choice("ABCDE"),
            }
        )
        for _ in range(count)
    ]
    return "\n".join(lines) + "\n"


@dataclass
class Workshop:
    """A folder with a network, its streams, and pipelines over it."""

    folder: Path
    random: Random
    selects: dict[str, str] = field(default_factory=dict)
    targets: dict[str, str] = field(default_factory=dict)

    def write_events(self, count: int, *names: str) -> None:
        """A file for each stream; the first of them is the sample too."""
        for stream, written in (("orders", orders), ("quotes", quotes)):
            for name in names:
                place = self.folder / stream / name
                place.parent.mkdir(exist_ok=True)
                place.write_text(written(count, self.random))

    def write_network(
        self,
        selects: dict[str, str],
        *,
        gone: Iterable[str] = (),
        strategy: str = "widen",
        method: str = "exact",
        applications: Sequence[str] = (),
    ) -> None:
        """Super-peers in a random connected graph, each with a thin peer; queries at random."""
        supers, thins = [f"S{i}" for i in range(5)], [f"P{i}" for i in range(5)]
        ends = [*zip(supers, thins, strict=True)]
        # a random tree makes the graph connected; three more links make it cyclic
        ends += [(supers[self.random.randrange(i)], supers[i]) for i in range(1, 5)]
        others = [(a, b) for a in supers for b in supers if a < b]
        more = {frozenset(pair) for pair in self.random.sample(others, 3)}
        ends += [tuple(sorted(pair)) for pair in more - {frozenset(pair) for pair in ends}]  # type: ignore[misc]
        lines = [
            f'strategy = "{strategy}"',
            f'method = "{method}"',
            f"sql = '''{SCHEMA}'''",
            f"[nodes]\nsuper = {supers}\nthin = {thins}",
        ]
        if applications:
            lines.append("[applications]")
            lines += [
                f"{name} = {supers[n :: len(applications)]}" for n, name in enumerate(applications)
            ]
        lines += [f"[[links]]\nends = {list(pair)}" for pair in ends]
        lines += [
            f'[streams.{name}]\npeer = "{peer}"\nrate = 100.0\nsample = "{name}/a.jsonl"'
            for name, peer in (("orders", "P0"), ("quotes", "P1"))
        ]
        self.selects = dict(selects)
        self.targets = {name: self.random.choice([*supers, *thins]) for name in selects}
        for name in self.random.sample(list(selects), len(selects)):
            lines.append(f'[[queries]]\nid = {json.dumps(name)}\ntarget = "{self.targets[name]}"')
            lines.append(f"sql = {json.dumps(selects[name])}")
        for name in gone:
            lines.append(f"[[queries]]\nleave = {json.dumps(name)}")
            del self.selects[name]
        (self.folder / "network.toml").write_text("\n".join(lines) + "\n")

    def pipeline(
        self,
        application: str = "",
        streams: Iterable[str] = ("orders", "quotes"),
        per_batch: int = 9,
    ) -> Path:
        name = application or "job"
        lines = ['[sharing]\nnetwork = "network.toml"\nexchange = "exchange"']
        lines += [f'application = "{application}"'] if application else []
        for stream in streams:
            lines.append(
                f'[streams.{stream}]\nkind = "files"\npath = "{stream}"\n'
                f"files_per_trigger = {per_batch}"
            )
        lines.append(f'[sink]\nkind = "parquet"\npath = "out-{name}"')
        lines.append('[run]\ntrigger = "available"')
        path = self.folder / f"{name}.toml"
        path.write_text("\n".join(lines) + "\n")
        return path

    @property
    def queries(self) -> QuerySet:
        path = self.folder / "alone.sql"
        created = [f"CREATE QUERY `{name}` AS {select};\n" for name, select in self.selects.items()]
        path.write_text(SCHEMA + "".join(created))
        return hg.read_queries(path, strict=True)

    def match_unshared(self, *names: str) -> dict[str, Rows]:
        """What each query gets of files if it is the only one, by the local index."""
        actual = self.queries
        return {
            query.id: match_query(
                query, actual, [self.folder / query.stream_name / n for n in names]
            )
            for query in actual
        }

    def given(self, *outputs: str) -> dict[str, Rows]:
        """What the jobs wrote for each query."""
        return {name: self.rows_of(name, *outputs) for name in self.selects}

    def rows_of(self, name: str, *outputs: str) -> Rows:
        return as_rows(row for out in outputs for row in self._written(out, name))

    def _written(self, out: str, name: str) -> Iterable[dict[str, Any]]:
        for row in rows_in(self.folder / out, encode_folder(name)):
            assert row["query_id"] == name
            labels = ("batch_id", "query_id", "query_version")
            yield {key: value for key, value in row.items() if key not in labels}


def match_query(query: Query, actual: QuerySet, files: Sequence[Path]) -> Rows:
    index = hg.build_index(actual, stream=query.stream_name)
    stream = actual.schema.stream(query.stream_name)
    rows: Rows = Counter()
    for path in files:
        for batch in read_events(path, stream):
            hits = index.match(batch)
            first = hits.first
            wanted = [query.id in hits[int(number) - first] for number in batch.events]
            table = pa.Table.from_batches([batch.table]).filter(pa.array(wanted))
            outputs = [
                (output.name, output.expression.name)
                for output in query.outputs
                if isinstance(output.expression, Column)
            ]
            for row in table.to_pylist():
                report = {name: row[column] for name, column in outputs} if outputs else row
                rows += as_rows([report])
    return rows


def as_rows(rows: Iterable[dict[str, Any]]) -> Rows:
    """Rows as texts, for NaN is not itself and -0.0 is 0.0 in Python."""
    return Counter(repr(sorted(row.items())) for row in rows)
