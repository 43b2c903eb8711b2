"""The index `keyed`: codes tell apart what conditions tell apart, and its answers are scan's."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.workloads import (
    generate_begen,
    generate_box_events,
    generate_boxes,
    generate_mixed,
    generate_mixed_events,
    generate_pattern_rules,
)
from benchmarks.workloads.begen import BegenSpec
from headgate.events import batch_from_rows
from headgate.matching import ScanIndex, get_index_class
from headgate.matching.encoding.code_book import build_code_book
from headgate.matching.encoding.event_columns import EventColumns
from headgate.predicate import IsNull, Within, evaluate
from headgate.queries import Query
from headgate.schema import INT, Attribute, Schema, Stream
from headgate.snapshot.arrays import encode_queries
from headgate.snapshot.arrays.atoms import decode_atoms
from headgate.testing.contract import query
from headgate.testing.generate import every_type, random_rows, random_where
from tests.matching.ways import forced_way
from tests.scale import at_least, case_count, seed


def test_oracle_codes() -> None:
    """An atom on one column is TRUE for a value just when the value's code is in its intervals."""
    random, stream = Random(seed(3)), every_type()
    schema = Schema((stream,))
    queries = [query(stream, f"q{n}", random_where(random, stream)) for n in range(case_count(300))]
    encoded = encode_queries(queries, schema)
    rows: list[dict[str, Any]] = [dict(row) for row in random_rows(random, stream, 150)]
    book, intervals = build_code_book(encoded.atoms, schema)
    codes = np.zeros((len(rows), len(book.regions)), np.int32)
    start, column_of, code = book.codes(
        EventColumns(batch_from_rows(rows, stream).table, len(rows))
    )
    codes[np.repeat(np.arange(len(rows)), np.diff(start)), column_of] = code
    checked = 0
    for number, atom in enumerate(decode_atoms(encoded.atoms, schema)):
        if not isinstance(atom, Within | IsNull):
            continue
        inside = np.zeros(len(rows), np.bool_)
        column = codes[:, encoded.atoms.column[number]]
        for i in range(intervals.start[number], intervals.start[number + 1]):
            inside |= (intervals.low[i] <= column) & (column <= intervals.high[i])
        assert inside.tolist() == [evaluate(atom, row) is True for row in rows], atom
        checked += len(rows)
    assert checked > at_least(50_000)


def workload(name: str) -> tuple[Stream, list[Query], pa.Table]:
    if name == "boxes":
        boxes = generate_boxes(2_000, attributes=3, constrained=3, matching=0.01, seed=1)
        return boxes.stream, boxes.queries(), generate_box_events(400, attributes=3, seed=2)
    if name == "mixed":
        shapes = generate_mixed(600, seed=1)
        return shapes.stream, shapes.queries(), generate_mixed_events(400, seed=2)
    if name == "patterns":
        rules = generate_pattern_rules(60, seed=1)
        return rules.stream, rules.queries(), rules.events(300, matching=0.5, seed=2)
    settings: dict[str, dict[str, Any]] = {
        "uniform": {"matching": 0.01, "extra": 3},
        "zipf": {"matching": 0.01, "zipf": 1.0, "fewest": 3},
        "high": {"matching": 0.1, "operators": "high"},
        "dense": {"matching": 0.4, "dimensions": 20, "cardinality": 8, "attributes": 10},
    }
    drawn = generate_begen(4_000, BegenSpec(**settings[name]), seed=1)
    return drawn.schema.streams[0], drawn.queries(), drawn.events(250, seed=2).table()


@pytest.mark.parametrize("name", "uniform zipf high dense boxes mixed patterns".split())
def test_agree_with_scan(name: str) -> None:
    """On every workload, also after every seventh query has left."""
    stream, queries, events = workload(name)
    scan = ScanIndex.build(stream, queries).match(events)
    index = get_index_class("keyed").build(stream, queries)
    matches = index.match(events).in_order()
    assert scan.total > 100
    assert np.array_equal(matches.offsets, scan.offsets)
    assert np.array_equal(matches.positions, scan.positions)
    for gone in queries[::7]:
        index.remove(gone.id)
    left = index.match(events).in_order()
    assert np.array_equal(left.positions, scan.positions[scan.positions % 7 != 0])


@pytest.mark.parametrize("levels", [1, 7])
def test_a_literal_is_looked_up_once(levels: int) -> None:
    """Each IS NOT FALSE asks its part for two truths, but each of them once."""
    stream = Stream("s", (Attribute("a", INT), Attribute("b", INT)))
    where = "(a = 5) IS TRUE"
    for level in range(levels):
        where = f"({where} AND b < {level}) IS NOT FALSE"
    excluded = ", ".join(map(str, range(10, 5_000)))
    odd = query(stream, "odd", f"{where} AND a NOT IN ({excluded})")
    rows = [{"a": a, "b": b} for a in (None, 4, 5, 11) for b in (None, -1, 0, 70)]
    index = get_index_class("keyed").build(stream, [odd])
    assert index.match(rows).ids() == ScanIndex.build(stream, [odd]).match(rows).ids()
    assert index.describe()["entries"] < 20


@pytest.mark.parametrize("constants", [100, 251, 252, 253, 254, 255, 400])
def test_borders_of_layouts(constants: int) -> None:
    """Around 254 codes, over more columns than bits in a mask, lists around 64 codes, and NULL.

    Clusters have bitmaps of one word and of several, with programs and without; the same after
    queries have left and others have come.
    """
    random, columns = Random(seed(constants)), 70
    stream = Stream("s", tuple(Attribute(f"a{n}", INT) for n in range(columns)))

    def condition(name: str) -> str:
        low = random.randrange(constants)
        span = random.choice((1, 5, 63, 64, 65, constants))
        inside = [low + n for n in range(0, span, random.choice((1, 2, 3)))]
        kept = random.sample(inside, min(len(inside), random.choice((1, 3, 9, 40))))
        listed = ", ".join(map(str, kept))
        return random.choice(
            (
                f"{name} BETWEEN {low} AND {low + span}",
                f"{name} IN ({listed})",
                f"{name} NOT IN ({listed})",
                f"{name} <> {low}",
                f"{name} >= {low}",
                f"{name} IS NULL",
                f"({name} > {low} OR a68 < {low} OR a67 IS NULL)",
                f"(a69 = {low} AND {name} < {low}) IS NOT TRUE",
                f"({name} < a68) IS NULL",
            )
        )

    # all constants of two columns, so that these have just so many codes
    clauses = [f"a1 = {n} AND a66 = {n}" for n in range(constants)]
    for _ in range(700):
        names = random.sample(["a1", "a2", "a62", "a63", "a64", "a66"], random.randint(1, 3))
        key = f"a0 = {random.choice((0, 0, 0, 1, random.randrange(9)))}"
        clauses.append(" AND ".join([key, *map(condition, names)]))
    queries = [query(stream, f"q{n}", clause) for n, clause in enumerate(clauses)]
    rows: list[dict[str, int | None]] = [
        {
            **{
                f"a{n}": random.randrange(-1, constants + 1)
                for n in range(columns)
                if random.random() < 0.8
            },
            "a0": random.choice((0, 0, 1, None)),
        }
        for _ in range(case_count(150))
    ]
    with forced_way("clusters"):
        index = get_index_class("keyed").build(stream, queries[:-50])
        assert index.describe()["in_bitmaps"] > 200
        for late in queries[-50:]:
            index.insert(late)
        for gone in queries[::5]:
            index.remove(gone.id)
        scan = ScanIndex.build(stream, queries)
        for gone in queries[::5]:
            scan.remove(gone.id)
        actual, expected = index.match(rows).in_order(), scan.match(rows)
    assert expected.total > at_least(1_000)
    assert np.array_equal(actual.offsets, expected.offsets)
    assert np.array_equal(actual.positions, expected.positions)
