"""Every method of evaluation finds the rows for which `evaluate` says TRUE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.workloads.boxes import generate_box_events, generate_covering_boxes
from headgate.errors import UsageError
from headgate.events import batch_from_rows
from headgate.implication.evaluation import METHODS, Evaluator, Method
from headgate.predicate import Or, Predicate, evaluate
from headgate.schema import DOUBLE, INT, Attribute, Interval, Stream, ValueSet
from headgate.sql import parse_where
from tests.boundaries import STREAM, Row
from tests.strategies import Clauses, Seeded, row

PREDICATES, EVENTS = 1_200, 60
TREES: list[dict[str, Any]] = [{"short_circuit": False}, {"dimensions": 1}, {"dimensions": 0}]
NUMBERS = Stream("s", (Attribute("a", INT), Attribute("x", DOUBLE)))


def evaluators(predicate: Predicate, stream: Stream) -> list[Evaluator]:
    """One for each method, and for each option of the tree."""
    plain = [Evaluator.of(predicate, stream, method) for method in METHODS]
    return plain + [Evaluator.of(predicate, stream, "tree", **options) for options in TREES]


def truth(predicate: Predicate, rows: Sequence[Row]) -> list[bool]:
    return [evaluate(predicate, row) is True for row in rows]


@cache
def events(seed: int) -> tuple[list[Row], pa.RecordBatch]:
    rows = [row(Seeded(seed * EVENTS + number)) for number in range(EVENTS)]
    return rows, batch_from_rows(rows, STREAM).table


@pytest.mark.parametrize("part", range(8))
def test_agree_definition(part: int) -> None:
    """On any predicate over all types, as a table of Arrow and as rows."""
    rows, table = events(part)
    for number in range(PREDICATES // 8):
        text = Clauses(Seeded(part * PREDICATES + number)).where()
        predicate = parse_where(text, STREAM)
        expected = truth(predicate, rows)
        for evaluator in evaluators(predicate, STREAM):
            assert evaluator.exact
            assert evaluator.mask(table).tolist() == expected, (text, evaluator.method)
        assert Evaluator.of(predicate, STREAM).mask(rows).tolist() == expected, text


@pytest.mark.parametrize("part", range(4))
def test_agree_many_boxes(part: int) -> None:
    """On an OR of many conjunctions over all types, with more boxes than a word has bits."""
    rows, table = events(part)
    for number in range(6):
        clauses = [Clauses(Seeded(9_000 + 100 * number + part * 1_000 + i)) for i in range(60)]
        parts = [parse_where(" AND ".join(c.where(0) for _ in range(3)), STREAM) for c in clauses]
        union = Or(tuple(p for p in parts if Evaluator.of(p, STREAM).method != "index"))
        expected = truth(union, rows)
        for evaluator in evaluators(union, STREAM):
            assert evaluator.mask(table).tolist() == expected, (part, number, evaluator.method)


@pytest.mark.parametrize("attributes", [1, 3, 6])
@pytest.mark.parametrize("count", [1, 40, 700])
def test_agree_boxes(count: int, attributes: int) -> None:
    """On boxes that overlap, for more events than are judged at a time; some of them are NULL."""
    boxes = generate_covering_boxes(count, attributes=attributes, selectivity=0.4, seed=count)
    predicate = Or(tuple(parse_where(clause, boxes.stream) for clause in boxes.where_clauses()))
    table = with_nulls(generate_box_events(9_000, attributes=attributes, seed=7))
    expected = Evaluator.of(predicate, boxes.stream, "standard").mask(table)
    sample = table.slice(8_150, 80)
    assert expected[8_150:8_230].tolist() == truth(predicate, sample.to_pylist())
    for evaluator in evaluators(predicate, boxes.stream):
        assert (evaluator.mask(table) == expected).all(), evaluator.method


def with_nulls(table: pa.Table) -> pa.Table:
    """The same with every eleventh value of the first column NULL, in several chunks."""
    null = np.arange(table.num_rows) % 11 == 0
    first = pa.array(table.column(0).to_numpy(), table.schema.field(0).type, mask=null)
    changed = table.set_column(0, table.schema.field(0), first)
    return pa.concat_tables([changed.slice(0, 5_000), changed.slice(5_000)])


@pytest.mark.parametrize("levels", range(5))
def test_level_limited(levels: int) -> None:
    """A search that stops early loses no row, lets fewer through the deeper it goes, and tells."""
    boxes = generate_covering_boxes(500, selectivity=0.3, seed=levels)
    predicate = Or(tuple(parse_where(clause, boxes.stream) for clause in boxes.where_clauses()))
    table = generate_box_events(3_000, attributes=3, seed=1)
    exact = Evaluator.of(predicate, boxes.stream).mask(table)
    limited = Evaluator.of(predicate, boxes.stream, "tree", levels=levels)
    deeper = Evaluator.of(predicate, boxes.stream, "tree", levels=levels + 1)
    assert (limited.mask(table) >= exact).all()
    assert (deeper.mask(table) <= limited.mask(table)).all()
    assert limited.exact is (levels >= 3)
    assert not limited.exact or (limited.mask(table) == exact).all()


def test_what_is_no_box() -> None:
    """Patterns, comparisons of columns and what grows too large are left to the ordinary index."""
    large = " AND ".join(f"(a = {i} OR x = {i})" for i in range(20))
    for text in ("side LIKE '%a%b'", "qty < lots", "qty > 3 OR price > bid"):
        assert Evaluator.of(parse_where(text, STREAM), STREAM, "bitmap").method == "index"
    assert Evaluator.of(parse_where(large, NUMBERS), NUMBERS).method == "index"


@pytest.mark.parametrize("method", METHODS)
def test_invalid_rows(method: Method) -> None:
    """A row that does not fit the stream is not TRUE, and the others keep their places."""
    limited = replace(NUMBERS.attributes[0], domain=ValueSet.of(Interval(0, None)))
    stream = Stream("s", (limited, NUMBERS.attributes[1]))
    evaluator = Evaluator.of(parse_where("a >= -5 OR x IS NULL", stream), stream, method)
    rows = [{"a": "?"}, {"a": 1}, {"a": -1}, {"x": 1.0}, {}, {"x": "y"}]
    assert evaluator.mask(rows).tolist() == [False, True, False, False, True, False]
    assert evaluator.mask([]).tolist() == []


@pytest.mark.parametrize("text", ["TRUE", "FALSE", "NULL", "a > 1 OR TRUE", "a IS NULL OR a <= 1"])
def test_constants(text: str) -> None:
    """Predicates without a column, or with none that matters."""
    predicate = parse_where(text, NUMBERS)
    rows: list[Row] = [{"a": 1, "x": None}, {"a": None, "x": 0.5}, {"a": 7, "x": None}]
    for evaluator in evaluators(predicate, NUMBERS):
        assert evaluator.mask(rows).tolist() == truth(predicate, rows), evaluator.method


def test_batch_of_a_file() -> None:
    """A batch is judged as it was read, and its events may be numbered from anywhere."""
    batch = batch_from_rows([{"a": 3}, {"a": "?"}, {"a": 4}], NUMBERS)
    later = replace(
        batch,
        events=batch.events + 7,
        dead=tuple(replace(letter, event=letter.event + 7) for letter in batch.dead),
    )
    for evaluator in evaluators(parse_where("a = 4", NUMBERS), NUMBERS):
        assert evaluator.mask(later).tolist() == [False, False, True], evaluator.method


@pytest.mark.parametrize(
    "options",
    [{"method": "bitmaps"}, {"method": "tree", "levels": -1}, {"method": "bitmap", "levels": 1}],
)
def test_refused(options: dict[str, Any]) -> None:
    """What is no method, or no option of it."""
    with pytest.raises(UsageError):
        Evaluator.of(parse_where("a > 1", NUMBERS), NUMBERS, **options)
