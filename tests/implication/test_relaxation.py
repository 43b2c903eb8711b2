"""Relaxation over the whole language: against every row of a small world, NULL and all ends."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice, product

import pytest

import headgate as hg
from headgate.errors import ExpansionTooLarge
from headgate.implication.relaxation import RELAX_METHODS
from headgate.predicate import evaluate
from headgate.schema import INT, NOTHING, Attribute, Stream
from headgate.sql import parse_where, render_predicate
from tests.boundaries import STREAM, VALUES, Row
from tests.corpus import SHARDS
from tests.scale import case_count, seed
from tests.strategies import Clauses, Dice, Seeded, pick

LINE = Stream("line", (Attribute("a", INT),))


def world(attributes: list[Attribute]) -> list[Row]:
    """All rows of boundary values that the stream allows."""
    choices = [
        [None] * attribute.nullable
        + [v for v in VALUES[attribute.type.sql] if attribute.type.ordinal(v) in attribute.domain]
        for attribute in attributes
    ]
    names = [attribute.name for attribute in attributes]
    return [dict(zip(names, values, strict=True)) for values in product(*choices)]


def conditions(dice: Dice) -> Iterator[tuple[str, str, list[Row]]]:
    """Two conditions on one or two attributes, often related, and all their rows."""
    while True:
        names = {pick(dice, STREAM.names) for _ in range(1 + dice.below(2))}
        attributes = [STREAM[name] for name in sorted(names)]
        clauses = Clauses(dice, attributes)
        clauses.palette = attributes
        p, q = clauses.condition(2), clauses.condition(2)
        yield p, f"({q}) OR ({p})" if dice.below(3) == 0 else q, world(attributes)


@pytest.mark.parametrize("shard", SHARDS)
def test_oracle_every_row(shard: int) -> None:
    """A "yes" has no exception, what is covered neither; what is relaxed holds for all rows of both
    and, where it is exact, for no other; and the rest is exactly what was missing."""
    dice, answers = Seeded(seed(shard) + 70), Counter[str]()
    for p, q, rows in islice(conditions(dice), case_count(250)):
        first, second = parse_where(p, STREAM), parse_where(q, STREAM)
        wanted = [evaluate(first, row) is True for row in rows]
        given = [evaluate(second, row) is True for row in rows]
        missing = [a and not b for a, b in zip(wanted, given, strict=True)]
        answer = hg.implies(first, second, STREAM).answer
        answers[answer] += 1
        assert not (answer == "yes" and any(missing)), (p, q)
        method = pick(dice, RELAX_METHODS)
        try:
            relaxation = hg.relax(first, second, STREAM, method=method)
        except ExpansionTooLarge:
            continue
        assert not (relaxation.covered == "yes" and any(missing)), (p, q, method)
        relaxed = parse_where(render_predicate(relaxation.predicate), STREAM)
        rest = relaxation.rest_predicate()
        for row, was, had, lacked in zip(rows, wanted, given, missing, strict=True):
            holds = evaluate(relaxed, row) is True
            assert holds >= (was or had), (p, q, method, row)
            assert not relaxation.exact or holds == (was or had), (p, q, method, row)
            assert rest is None or (evaluate(rest, row) is True) == lacked, (p, q, row)
    assert answers["unknown"] <= case_count(250) // 25, answers


def test_the_rest_is_searched_lazily_and_capped() -> None:
    """The first box comes at once, whatever there is; a list that would be too long is None."""
    holes = " OR ".join(f"a = {2 * i}" for i in range(300))
    relaxation = hg.relax("a BETWEEN 0 AND 599", holes, LINE)
    assert next(relaxation.rest()) is not None
    assert relaxation.rest_predicate(max_boxes=100) is None
    whole = relaxation.rest_predicate()
    assert whole is not None
    odd = " OR ".join(f"a = {2 * i + 1}" for i in range(300))
    assert hg.implies(whole, odd, LINE)
    assert hg.implies(odd, whole, LINE)


@pytest.mark.parametrize("method", RELAX_METHODS)
def test_nothing_and_everything(method: str) -> None:
    """Contradictions and tautologies on either side."""

    def covered(query: str, stream: str) -> bool:
        return hg.relax(query, stream, LINE, method=method).covered == "yes"  # type: ignore[arg-type]

    assert covered("FALSE", "FALSE")
    assert covered("a > 1 AND a < 2", "a = 7")
    assert covered("a = 7", "a = 7")
    assert covered("TRUE", "TRUE")
    assert covered("a = 7", "TRUE")
    assert not covered("TRUE", "FALSE")
    assert not covered("TRUE", "a = a")
    assert not covered("a = 7", "a > 7 AND a < 8")


def test_a_stream_of_nothing_becomes_the_query() -> None:
    relaxation = hg.relax("a = 7", "a > 7 AND a < 8", LINE)
    assert render_predicate(relaxation.predicate) == "a = 7"


def test_options_that_make_no_sense() -> None:
    with pytest.raises(hg.HeadgateError, match="did you mean `exact`"):
        hg.relax("a = 1", "a = 1", LINE, method="exat")  # type: ignore[arg-type]
    with pytest.raises(hg.HeadgateError, match="options of the paper's methods"):
        hg.relax("a = 1", "a = 1", LINE, quick_check=False)


@pytest.mark.parametrize("method", ["em-dfs", "em-mix"])
def test_the_budget_of_the_paper_s_methods(method: str) -> None:
    """Depth first and mixed, too, end in an error and not in hours."""
    holes = " OR ".join(f"a = {3 * i}" for i in range(300))
    with pytest.raises(ExpansionTooLarge, match="within 100 comparisons"):
        hg.relax("a BETWEEN 0 AND 900", holes, LINE, method=method, budget=100)  # type: ignore[arg-type]


def test_a_check_that_nothing_fulfils() -> None:
    """Then the attribute is always NULL."""
    never = Stream("never", (Attribute("a", INT, NOTHING), Attribute("b", INT)))
    for method in RELAX_METHODS:
        assert hg.relax("b > 1", "a IS NULL", never, method=method).covered == "yes"
        assert hg.relax("a > 1", "b > 1", never, method=method).covered == "yes"


def test_thousands_of_boxes_on_both_sides() -> None:
    """Two long lists on different attributes, and many boxes in a plane: within seconds."""
    plane = Stream("plane", (Attribute("a", INT), Attribute("b", INT)))
    start = time.process_time()
    some = ", ".join(str(3 * i) for i in range(3_000))
    relaxation = hg.relax(f"a IN ({some})", f"b IN ({some})", plane)
    assert relaxation.covered == "no"
    assert relaxation.witness is not None
    boxes = [
        f"a BETWEEN {i} AND {i + 5} AND b BETWEEN {i % 97} AND {i % 97 + 9}" for i in range(2_000)
    ]
    many_boxes = " OR ".join(boxes)
    assert hg.relax(many_boxes, many_boxes, plane).covered == "yes"
    assert hg.relax(many_boxes, " OR ".join(boxes[1:]), plane).covered == "no"
    assert time.process_time() - start < 60
