"""The running example of sections 3.1 to 3.5, step by step; and every method against the cells."""

from __future__ import annotations

import numpy as np
import pytest

import headgate as hg
from headgate.implication.index import BOX_INDEX_KINDS
from headgate.implication.pair import Constraints, PredicatePair
from headgate.implication.paper import METHODS, StreamPredicate, match_predicates
from headgate.implication.paper.stream_predicate import Overlap, run_quick_check, subtract_box
from headgate.implication.parts import ComparisonCounter, Part, to_parts
from headgate.implication.relaxation import RELAX_METHODS
from headgate.implication.space import Boxes, Space
from headgate.predicate import Predicate
from headgate.schema import DOUBLE, Attribute, Stream
from headgate.sql import parse_where
from tests.implication.boxes import as_set, grid, random_box
from tests.scale import case_count, seed
from tests.strategies import Seeded

PLANE = Stream("plane", (Attribute("a", DOUBLE), Attribute("b", DOUBLE)))
FIRST = "(a >= 3 AND a <= 12 AND b >= 0 AND b <= 5)"
SECOND = "(a >= 9 AND a <= 14 AND b >= 2 AND b <= 8)"
THIRD = "(a >= 0 AND a <= 5 AND b >= 1 AND b <= 6)"
P1 = f"{FIRST} OR {SECOND} OR {THIRD}"
P1_PRIME = f"{FIRST} OR {SECOND} OR (a >= 0 AND a <= 5 AND b >= 3 AND b <= 6)"
P2 = "a >= 1 AND a <= 8 AND b >= 2 AND b <= 4"
P3 = "a >= 4 AND a <= 13 AND b >= 7 AND b <= 10"


def predicate(text: str) -> Predicate:
    return parse_where(text, PLANE)


def pair(query: str, stream: str) -> PredicatePair:
    return PredicatePair.of(predicate(query), predicate(stream), Constraints.of(PLANE, ()))


def is_same(actual: Predicate | None, expected: str) -> bool:
    """Do both hold for the same rows?"""
    assert actual is not None
    wanted = predicate(expected)
    return bool(hg.implies(actual, wanted)) and bool(hg.implies(wanted, actual))


def test_quick_check_finds_no_single_box() -> None:
    """Section 3.2: the box of p2 overlaps those of p1, but is inside none of them."""
    example = pair(P2, P1)
    stream = StreamPredicate(example.space, example.stream_boxes, None)
    (part,) = to_parts(example.query_boxes)
    assert run_quick_check(stream, part, ComparisonCounter()) is Overlap.OVERLAPPING


@pytest.mark.parametrize(
    "query,expected",
    [
        ("a >= 4 AND a <= 5 AND b = 2", Overlap.INSIDE),
        ("a >= 20 AND a <= 30 AND b = 2", Overlap.APART),
        ("a >= 0 AND a <= 30 AND b = 2", Overlap.OVERLAPPING),
    ],
)
def test_quick_check_has_three_values(query: str, expected: Overlap) -> None:
    """Algorithm 6: inside one box, overlapping some, or apart from all."""
    example = pair(query, P1)
    for index in (None, *BOX_INDEX_KINDS):
        stream = StreamPredicate(example.space, example.stream_boxes, index)
        (part,) = to_parts(example.query_boxes)
        assert run_quick_check(stream, part, ComparisonCounter()) is expected


def test_hsr_misses_that_p2_lies_in_p1() -> None:
    """Section 3.3: HSR finds no match and adds p2, though that adds no row."""
    relaxation = hg.relax(P2, P1, PLANE, method="hsr")
    assert relaxation.covered == "no"
    assert relaxation.exact
    assert relaxation.witness is None
    assert is_same(relaxation.predicate, f"{P1} OR ({P2})")
    assert is_same(relaxation.predicate, P1)


def test_hcr_widens_the_first_box() -> None:
    """Section 3.4, Figure 3: the first box grows to a >= 1; only a < 3, b < 1 is too much."""
    relaxation = hg.relax(P2, P1, PLANE, method="hcr")
    grown = FIRST.replace("a >= 3", "a >= 1")
    assert relaxation.covered == "no"
    assert not relaxation.exact
    assert is_same(relaxation.predicate, f"{grown} OR {SECOND} OR {THIRD}")
    assert is_same(relaxation.predicate, f"{P1} OR (a >= 1 AND a < 3 AND b >= 0 AND b < 1)")


def test_hcr_where_relaxation_is_necessary() -> None:
    """Section 3.4, Figure 4: with p1' one hatched area is needed, and another one is too much."""
    relaxation = hg.relax(P2, P1_PRIME, PLANE, method="hcr")
    needed = "(a >= 1 AND a < 3 AND b >= 2 AND b < 3)"
    too_much = "(a >= 1 AND a < 3 AND b >= 0 AND b < 2)"
    assert not relaxation.exact
    assert is_same(relaxation.predicate, f"{P1_PRIME} OR {needed} OR {too_much}")
    assert is_same(relaxation.rest_predicate(), needed)


def test_exact_matching_splits_p2() -> None:
    """Section 3.5: the first box leaves a in [1, 3[; the second nothing more; the third all."""
    example = pair(P2, P1)
    stream = StreamPredicate(example.space, example.stream_boxes, None)
    (whole,) = to_parts(example.query_boxes)
    (rest,) = subtract_box(stream, 0, whole, ComparisonCounter())
    assert is_same(example.predicate(rest), "a >= 1 AND a < 3 AND b >= 2 AND b <= 4")
    assert subtract_box(stream, 1, rest, ComparisonCounter()) == [rest]
    assert subtract_box(stream, 2, rest, ComparisonCounter()) == []


def test_exact_matching_splits_p3() -> None:
    """Section 3.5, Figure 5: the second box cuts p3 into three, of which it holds one."""
    example = pair(P3, P1)
    stream = StreamPredicate(example.space, example.stream_boxes, None)
    (whole,) = to_parts(example.query_boxes)
    assert subtract_box(stream, 0, whole, ComparisonCounter()) == [whole]
    rest = subtract_box(stream, 1, whole, ComparisonCounter())
    left = "(a >= 4 AND a < 9 AND b >= 7 AND b <= 10)"
    above = "(a >= 9 AND a <= 13 AND b > 8 AND b <= 10)"
    described = [example.predicate(part) for part in rest]
    assert any(is_same(result, left) for result in described)
    assert any(is_same(result, above) for result in described)
    assert [subtract_box(stream, 2, part, ComparisonCounter()) for part in rest] == [
        [part] for part in rest
    ]


@pytest.mark.parametrize("method", [m for m in RELAX_METHODS if m not in ("hsr", "hcr")])
def test_exact_matching_of_the_running_example(method: str) -> None:
    """Section 3.5: p2 lies in p1; p3 does not, nor p2 in p1', and the query is added whole."""
    assert hg.relax(P2, P1, PLANE, method=method).covered == "yes"  # type: ignore[arg-type]
    for query, stream in ((P3, P1), (P2, P1_PRIME)):
        relaxation = hg.relax(query, stream, PLANE, method=method)  # type: ignore[arg-type]
        assert relaxation.covered == "no"
        assert relaxation.exact
        assert is_same(relaxation.predicate, f"{stream} OR ({query})")
        assert relaxation.witness is not None


def test_a_box_apart_is_a_mismatch() -> None:
    """Algorithms 10 to 12 as printed report a match where the quick check says -1."""
    for method in METHODS:
        relaxation = hg.relax("a > 100 AND b > 100", P1, PLANE, method=method)
        assert relaxation.covered == "no"


def test_an_unmentioned_dimension_is_unbounded_and_null() -> None:
    """Algorithm 9 as printed compares only dimensions that both mention: `a > 3` would match."""
    for method in RELAX_METHODS:
        relaxation = hg.relax("a > 3", "b < 5 OR b >= 5", PLANE, method=method)
        assert relaxation.covered == "no"
        assert relaxation.witness == {"a": 4.0, "b": None}


def test_agree_all_methods_with_the_cells() -> None:
    """Every method with and without quick check and index: exact ones find what the cells show,
    heuristics never more; and options change neither answer nor boxes."""
    dice, result = Seeded(seed(7)), 0
    for _ in range(case_count(120)):
        dimensions, size = 1 + dice.below(4), 2 + dice.below(7)
        wanted = [random_box(dice, dimensions, size) for _ in range(dice.below(4))]
        given = [random_box(dice, dimensions, size) for _ in range(dice.below(9))]
        space = Space.of((*wanted, *given))
        query, stream = space.boxes(wanted), space.boxes(given)
        needed, had = grid(to_parts(query), space), grid(to_parts(stream), space)
        is_inside = not (needed & ~had).any()
        result += is_inside
        for method in METHODS:
            same = set()
            for check_first in (True, False):
                for index in (None, *BOX_INDEX_KINDS):
                    matched = match_predicates(
                        space, query, stream, method, quick_check=check_first, index=index
                    )
                    cells = grid(to_parts(matched.boxes), space)
                    if method == "hcr":
                        assert (cells | needed | had == cells).all()
                    else:
                        assert (cells == needed | had).all()
                    if method.startswith("em"):
                        assert matched.covered == is_inside
                    assert is_inside or not matched.covered
                    if check_first or method != "hsr":
                        same.add((matched.covered, str(as_set(matched.boxes))))
            assert len(same) == 1
    assert result > case_count(20)


def test_breadth_first_declines_too_many_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is exponential ends in an error that says what does better."""
    monkeypatch.setattr("headgate.implication.paper.splitting.MAX_STORED_SIDES", 10)
    dice = Seeded(1)
    boxes = [random_box(dice, 4, 30) for _ in range(60)]
    whole = Space.of(boxes)
    everything: Part = tuple((0, int(count)) for count in whole.counts)
    query = np.array([everything], np.int32)
    with pytest.raises(hg.HeadgateError, match='the method "exact" stores few'):
        match_predicates(
            whole,
            Boxes(query[:, :, 0].copy(), query[:, :, 1].copy()),
            whole.boxes(boxes),
            "em-bfs",
        )
