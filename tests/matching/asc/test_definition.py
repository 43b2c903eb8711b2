"""The examples of the ASC paper by number, and laws that hold for any constructs.

Figures 1, 3, 4 and 5 are images that we do not have, and Figure 2 is a table of which the text kept
four columns of five, without saying which. Given are: all `qub`, the constants (`rif`), what the
examples say of single regions, and the four columns. Each of them is ours with one column left out,
which leaves little choice. Ours by choice:

- A2's region 4 is 1011 (q4 has A2 >= 40); 1010 (A2 > 40) fits as well.
- A3 prints the bitmap 1110, which cannot be, as q4 says nothing of A3: we read 1111 (q3: A3 = 40).
- A4 has q4: A4 <= 60 and q2: A4 = 80; q4: A4 < 60 and q2: 60 < A4 < 80 fits as well.
- Example 2 calls A1's region 5 "(70, ∞)" though it holds t2[A1] = 70; with the constant of the
  table it is (50, ∞).

Of the tuples the text gives t2[A1] = 70, t7[A2] = 20 and the regions 5 that t4, t5 and t6 visit.
All other values are chosen so that they give the numbers in the examples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from operator import and_
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import ExpansionTooLarge, UsageError
from headgate.predicate import Column, IsNull, Predicate
from headgate.predicate import evaluate as truth
from headgate.predicate.normal_form import Conjunction, to_conjunctions
from headgate.schema import BIGINT, DOUBLE, INT, STRING, Attribute, Stream, Type, Value
from headgate.sql import parse_where
from tests.boundaries import STREAM
from tests.oracles.asc_construct import Construct, Region, constructs, shown
from tests.oracles.asc_definition import (
    Evaluation,
    Period,
    conditional_selectivity,
    dropping_ratio,
    evaluate,
    hybrid_arrows,
    macro_sequence,
    minimal_cover_sets,
)
from tests.strategies import Clauses, Drawn, row

A1, A2, A3, A4 = range(4)
PAPER = Stream("d", tuple(Attribute(name, INT) for name in ("A1", "A2", "A3", "A4")))
QUERIES = (
    "A1 = 20 AND A3 >= 10",
    "A2 = 20 AND A4 = 80",
    "A1 <= 50 AND A3 = 40",
    "A2 >= 40 AND A4 <= 60",
)
ALL = 0b1111


def bits(text: str) -> int:
    return int(text[::-1], 2)


def figure(name: str, qub: str, rif: tuple[int, int], qrb: str, cab: str) -> Construct:
    """A construct as printed; NULL, which the paper does not know, satisfies nobody who asks."""
    null = bits(qub) ^ ALL
    constants = (None, rif[0], None, rif[1], None)
    columns = zip(constants, map(bits, qrb.split()), map(bits, cab.split()), strict=True)
    return Construct(name, bits(qub), (Region(None, null, 0), *(Region(*c) for c in columns)), INT)


FIGURE_2 = (
    figure("A1", "1010", (20, 50), "0111 1111 0111 0111 0101", "0111 0111 0111 0111 0101"),
    figure("A2", "0101", (20, 40), "1010 1110 1010 1011 1011", "1010 1011 1010 1011 1011"),
    figure("A3", "1010", (10, 40), "0101 1101 1101 1111 1101", "0101 1101 1101 1101 1101"),
    figure("A4", "0101", (60, 80), "1011 1011 1010 1110 1010", "1110 1110 1010 1110 1010"),
)
PRINTED = (
    ("0111 1111 0111 0111", "0111 0111 0111 0101"),
    ("1010 1110 1010 1011", "1010 1011 1010 1011"),
    ("0101 1101 1101 1111", "0101 1101 1101 1101"),  # 1111 is printed as 1110
    ("1011 1010 1110 1010", "1110 1110 1010 1010"),
)


def tuple_of(*values: int) -> tuple[int, ...]:
    """A tuple of the paper as the numbers of its regions."""
    return tuple(one.region_of(value) for one, value in zip(FIGURE_2, values, strict=True))


T1 = tuple_of(10, 10, 20, 50)
T2 = tuple_of(70, 50, 20, 50)
T3 = tuple_of(10, 10, 20, 50)
T4 = tuple_of(70, 30, 20, 50)
T5 = T6 = tuple_of(70, 50, 20, 90)
T7 = tuple_of(70, 20, 20, 80)


def test_figure_2_is_the_printed_table() -> None:
    """Each printed row is ours with one column left out, and our `cab` follow from the `qrb`."""
    for one, rows in zip(FIGURE_2, PRINTED, strict=True):
        for name, printed in zip(("qrb", "cab"), rows, strict=True):
            ours = [shown(getattr(region, name), 4) for region in one.regions[1:]]
            assert printed.split() in [ours[:n] + ours[n + 1 :] for n in range(5)]


def test_figure_2_comes_from_the_queries() -> None:
    """Every value has the bitmaps of the figure, though our constants are others."""
    built = constructs([to_conjunctions(parse_where(where, PAPER))[0] for where in QUERIES], PAPER)
    for ours, printed in zip(built, FIGURE_2, strict=True):
        assert (ours.attribute, ours.qub) == (printed.attribute, printed.qub)
        for value in range(-1, 101):
            region = ours.regions[ours.region_of(value)]
            expected = printed.regions[printed.region_of(value)]
            assert (region.qrb, region.cab) == (expected.qrb, expected.cab)
        assert ours.regions[0].qrb == printed.regions[0].qrb
    assert [one.constants for one in built] == [
        (20, 21, 51),
        (20, 21, 40),
        (10, 40, 41),
        (61, 80, 81),
    ]


def test_example_1() -> None:
    """A2 = 20 fails q4 only; from A2's region 3 an arrow may lead to A1 and A3, not to A4."""
    assert FIGURE_2[A2].region_of(20) == 2
    assert shown(FIGURE_2[A2].regions[2].qrb, 4) == "1110"
    assert shown(FIGURE_2[A2].regions[3].cab, 4) == "1010"


def test_example_2() -> None:
    """t2 satisfies q4 after all four constructs; t1 and t3 are dropped by the third."""
    order = (A1, A2, A3, A4)
    assert T2[A1] == 5
    assert evaluate(FIGURE_2, T2, order, {}, ALL, most=1).grb == bits("0101")
    assert evaluate(FIGURE_2, T2, order, {}, ALL) == Evaluation(bits("0001"), order, 0)
    for dropped in (T1, T3):
        assert evaluate(FIGURE_2, dropped, order, {}, ALL) == Evaluation(0, (A1, A2, A3), 0)


def test_example_3() -> None:
    """{A1, A2} and {A3, A4} are minimal cover sets; so are two that the example does not name."""
    assert minimal_cover_sets(FIGURE_2, ALL) == ((A1, A2), (A1, A4), (A2, A3), (A3, A4))
    assert minimal_cover_sets(FIGURE_2, bits("1010")) == ((A1,), (A3,))
    assert minimal_cover_sets(FIGURE_2, 0) == ((),)
    assert minimal_cover_sets(FIGURE_2, 1 << 4) == ()


def test_example_4() -> None:
    """A1, A2, A3 drop two of three tuples."""
    assert dropping_ratio(FIGURE_2, (A1, A2, A3), (T1, T2, T3), ALL) == Fraction(2, 3)


def test_example_5() -> None:
    """The macro-sequence A2, A1, A3, A4, with every number on the way."""

    def selectivity(sequence: Sequence[int], candidate: int, event: tuple[int, ...]) -> Fraction:
        return conditional_selectivity(FIGURE_2, sequence, candidate, [event], ALL)

    selectivities = [selectivity((), n, T1) for n in range(4)]
    assert selectivities == [Fraction(3, 4), Fraction(1, 2), Fraction(3, 4), Fraction(3, 4)]
    assert [selectivity((A2,), n, T2) for n in (A1, A3, A4)] == [0, Fraction(1, 2), 1]
    assert [dropping_ratio(FIGURE_2, (A2, A1, n), [T3], ALL) for n in (A3, A4)] == [1, 0]
    assert macro_sequence(FIGURE_2, [[T1], [T2], [T3]], ALL) == ((A2, A1, A3, A4), 2)


def test_example_6() -> None:
    """Two micro-arrows; but the selectivity of A4 is 1/2 by section 4.3, not 1/4 as printed.

    t4 has two queries left after A1, one of them after A4: the printed 1/4 divides by all queries.
    The macro-sequence is not given: were A2 next in it, there would be no need for an arrow there.
    """
    before, after = (evaluate(FIGURE_2, T4, (A1, A4), {}, ALL, most).grb for most in (1, 2))
    assert Fraction(after.bit_count(), before.bit_count()) == Fraction(1, 2)
    assert conditional_selectivity(FIGURE_2, (A1,), A4, [T4], ALL) == Fraction(1, 2)
    assert conditional_selectivity(FIGURE_2, (A1,), A2, [T4], ALL) == 0
    assert [dropping_ratio(FIGURE_2, (A1, A2, n), [T5], ALL) for n in (A3, A4)] == [0, 1]
    arrows = hybrid_arrows(FIGURE_2, (A1, A3, A2, A4), 3, [[T4], [T5], []], ALL, fewest=1)
    assert arrows == {(A1, 5): A2, (A2, 5): A4}


def test_example_7() -> None:
    """t6 follows two micro-arrows and is dropped; t7 finds none in A2's region 2 and goes to A3."""
    order, arrows = (A1, A2, A3, A4), {(A1, 5): A2, (A2, 5): A4, (A4, 5): A3}
    assert evaluate(FIGURE_2, T6, order, arrows, ALL) == Evaluation(0, (A1, A2, A4), 2)
    assert evaluate(FIGURE_2, T7, order, arrows, ALL).path[:3] == (A1, A2, A3)


@dataclass(frozen=True)
class Abstract:
    """Constructs of any kind, without attributes behind them."""

    qub: int
    regions: tuple[Region, ...]


def abstract(qubs: Sequence[int], results: Sequence[Sequence[int]], size: int) -> list[Abstract]:
    """Constructs with these results for the queries that they know, all others being satisfied."""
    everyone = (1 << size) - 1
    constructs = []
    for at, (qub, row_) in enumerate(zip(qubs, results, strict=True)):
        regions = []
        for result in row_:
            qrb = result | (everyone & ~qub)
            others = (j for j, other in enumerate(qubs) if j != at and qrb & other)
            regions.append(Region(None, qrb, sum(1 << j for j in others)))
        constructs.append(Abstract(qub, tuple(regions)))
    return constructs


@dataclass(frozen=True)
class Case:
    constructs: list[Abstract]
    periods: list[list[tuple[int, ...]]]
    alive: int

    def left(self, sequence: Sequence[int], event: Sequence[int]) -> int:
        """All bitmaps of a sequence at once."""
        return reduce(
            and_, (self.constructs[n].regions[event[n]].qrb for n in sequence), self.alive
        )

    def count(self, done: Sequence[int], n: int, period: Period, *, covering: bool) -> int:
        """The queries left that only `n` may have decided, or the events left."""
        grbs = [self.left((*done, n), event) for event in period]
        if covering:
            return sum(grb >> j & 1 for grb in grbs for j in self.find_uncovered(done))
        return sum(grb != 0 for grb in grbs)

    def find_uncovered(self, sequence: Sequence[int]) -> set[int]:
        used = [self.constructs[n].qub for n in sequence]
        numbers = range(self.alive.bit_length())
        return {j for j in numbers if self.alive >> j & 1 and not any(q >> j & 1 for q in used)}


@st.composite
def cases(draw: Any) -> Case:
    count, size, regions = (draw(st.integers(1, most)) for most in (5, 6, 4))
    bitmaps = st.integers(0, (1 << size) - 1)
    qubs = draw(st.lists(bitmaps, min_size=count, max_size=count))
    rows_ = st.lists(bitmaps, min_size=regions, max_size=regions)
    results = draw(st.lists(rows_, min_size=count, max_size=count))
    event = st.tuples(*[st.integers(0, regions - 1)] * count)
    periods = draw(st.lists(st.lists(event, max_size=6), min_size=count - 1, max_size=count - 1))
    return Case(abstract(qubs, results, size), periods, draw(bitmaps))


@st.composite
def orders(draw: Any, count: int) -> tuple[tuple[int, ...], dict[tuple[int, int], int]]:
    """A macro-sequence and micro-arrows, however senseless."""
    if not count:
        return (), {}
    numbers = st.integers(0, count - 1)
    arrows = draw(st.dictionaries(st.tuples(numbers, st.integers(0, 8)), numbers))
    return tuple(draw(st.permutations(range(count)))), arrows


@given(cases(), st.data())
def test_the_way_does_not_matter(case: Case, data: st.DataObject) -> None:
    """Any order with any arrows leaves the same queries, and evaluates no construct twice."""
    everything = range(len(case.constructs))
    order, arrows = data.draw(orders(len(everything)))
    for event in (event for period in case.periods for event in period):
        evaluation = evaluate(case.constructs, event, order, arrows, case.alive)
        assert evaluation.grb == case.left(everything, event) == case.left(evaluation.path, event)
        assert len(set(evaluation.path)) == len(evaluation.path)
        assert evaluation.grb == 0 or len(evaluation.path) == len(everything)
        assert not evaluation.path or case.left(evaluation.path[:-1], event)
        steps = zip(evaluation.path, evaluation.path[1:], strict=False)
        along = sum(arrows.get((here, event[here])) == there for here, there in steps)
        assert evaluation.micro == along


@given(cases())
def test_macro_sequence_by_hand(case: Case) -> None:
    """It covers as soon as it says so, and at every step no other construct measures better."""
    order, cover = macro_sequence(case.constructs, case.periods, case.alive)
    assert sorted(order) == list(range(len(case.constructs)))
    assert all(case.find_uncovered(order[:n]) for n in range(cover))
    assert not case.find_uncovered(order[:cover]) or cover == len(order)
    smallest = minimal_cover_sets(case.constructs, case.alive)
    assert bool(smallest) == (not case.find_uncovered(order))
    assert not smallest or len(smallest[0]) <= cover
    for length, period in enumerate(case.periods):
        done, covering = order[:length], length < cover
        left = {n: case.count(done, n, period, covering=covering) for n in order[length:]}
        assert left[order[length]] == min(left.values())


@given(cases(), st.integers(1, 3))
def test_micro_arrows_of_the_first_step(case: Case, fewest: int) -> None:
    """A region of the first construct has an arrow just where one leaves less than the sequence."""
    order, cover = macro_sequence(case.constructs, case.periods, case.alive)
    arrows = hybrid_arrows(case.constructs, order, cover, case.periods, case.alive, fewest)
    for (at, region), target in arrows.items():
        assert case.constructs[at].regions[region].cab >> target & 1
        assert sum(e[at] == region for period in case.periods for e in period) >= fewest
    if not case.periods:
        return
    first = order[0]
    for region in range(len(case.constructs[first].regions)):
        group = [e for e in case.periods[0] if e[first] == region and case.left(order[:1], e)]
        if len(group) < fewest:
            continue
        cab = case.constructs[first].regions[region].cab
        left = {}
        for n in order[1:]:
            grbs = [case.left((first, n), event) for event in group]
            left[n] = sum(grb.bit_count() if cover > 1 else grb != 0 for grb in grbs)
        best = min([left[n] for n in order[1:] if cab >> n & 1], default=left[order[1]])
        if best < left[order[1]]:
            assert left[arrows[first, region]] == best
        else:
            assert (first, region) not in arrows


def test_before_the_cover_queries_count_and_then_events() -> None:
    """Construct 1 drops one event, construct 2 fails a query of each: which is better depends."""
    made = abstract([0b111] * 4, [[0b111], [0b111, 0b000], [0b111, 0b110], [0b111]], 3)
    periods = [[(0, 1, 1, 0), *[(0, 0, 1, 0)] * 4], [], []]
    assert hybrid_arrows(made, (0, 3, 1, 2), 2, periods, 7, fewest=1) == {(0, 0): 2}
    assert hybrid_arrows(made, (0, 3, 1, 2), 1, periods, 7, fewest=1) == {(0, 0): 1}


def test_a_region_is_decided_once_by_enough_events() -> None:
    """Construct 1 is reached at depth 2, or through 2 at depth 3; the first to suffice decides."""
    made = abstract([3] * 5, [[3, 3], [3], [3, 1], [3], [3, 0]], 2)
    detour, late, on, off = (1, 0, 1, 0, 0), (1, 0, 0, 0, 1), (0, 0, 1, 0, 0), (0, 0, 0, 0, 1)

    def arrows(*periods: Sequence[tuple[int, ...]]) -> dict[tuple[int, int], int]:
        return hybrid_arrows(made, range(5), 5, [[detour] * 2, *periods, []], 3, fewest=2)

    assert arrows([], []) == {(0, 1): 2}
    assert arrows([off], [late]) == {(0, 1): 2}
    assert arrows([off], [late] * 2) == {(0, 1): 2, (1, 0): 4}
    assert arrows([off] * 2, []) == {(0, 1): 2, (1, 0): 4}
    assert arrows([on] * 2, [late] * 2) == {(0, 1): 2}


def test_a_group_is_a_region_whatever_the_way_there() -> None:
    """Events come to construct 1 through 2 or 3; towards 2, those that know it go on to 4."""
    made = abstract([3] * 5, [[3, 3, 3], [3], [3, 1, 0], [3, 1], [3, 1]], 2)
    order, first = (0, 1, 4, 2, 3), [(1, 0, 1, 0, 0), (2, 0, 0, 1, 0)]
    through_2, through_3 = (1, 0, 0, 0, 1), (2, 0, 2, 0, 0)
    third = [through_2, through_2, through_3]
    arrows = hybrid_arrows(made, order, 5, [first, [], third, []], 3, fewest=1)
    assert arrows == {(0, 1): 2, (0, 2): 3, (1, 0): 2}
    assert evaluate(made, through_2, order, arrows, 3) == Evaluation(1, (0, 2, 1, 4, 3), 1)


def test_dropped_events_are_in_no_group() -> None:
    """What construct 1 drops does not count towards `fewest` in its region."""
    made = abstract([3] * 4, [[3, 1], [2], [3], [3, 0]], 2)
    left, dropped = (0, 0, 0, 1), (1, 0, 0, 1)
    for group, expected in (([left, left], {(1, 0): 3}), ([left, dropped], {})):
        assert hybrid_arrows(made, range(4), 4, [[], group, []], 3, fewest=2) == expected


def test_ties_go_to_the_more_selective_and_then_to_the_first() -> None:
    """Measured alone in the first period; an empty period measures nothing."""
    same = abstract([0b11] * 3, [[0b11, 0b01]] * 3, 2)
    assert macro_sequence(same, [[], []], 3) == ((0, 1, 2), 1)
    assert macro_sequence(same, [[(0, 1, 0)], []], 3) == ((1, 0, 2), 1)
    assert macro_sequence(same, [[(1, 0, 0), (1, 1, 0), (1, 1, 0)], []], 3)[0] == (0, 1, 2)
    assert macro_sequence(same, [[(1, 0, 0), (1, 0, 1), (1, 0, 1)], []], 3)[0] == (0, 2, 1)
    both, other = (0, 0, 1, 1), (1, 0, 0, 1)
    made = abstract([3] * 4, [[3, 3], [3], [3, 0], [3, 0]], 2)
    assert hybrid_arrows(made, (0, 1, 2, 3), 1, [[both], [], []], 3, fewest=1) == {(0, 0): 2}
    assert hybrid_arrows(made, (0, 1, 3, 2), 1, [[both], [], []], 3, fewest=1) == {(0, 0): 3}
    arrows = hybrid_arrows(made, (0, 1, 2, 3), 1, [[both, other], [], []], 3, fewest=1)
    assert arrows == {(0, 0): 3, (0, 1): 3}
    assert conditional_selectivity(same, (), 0, [], 3) == 1
    assert dropping_ratio(same, (0,), [], 3) == 0


def test_nobody_and_those_who_ask_nothing() -> None:
    """Without queries nothing is evaluated; a query without conditions is never covered."""
    same = abstract([0b01] * 2, [[0b11, 0b00]] * 2, 2)
    assert evaluate(same, (0, 0), (0, 1), {}, 0) == Evaluation(0, (), 0)
    assert macro_sequence(same, [[(0, 1)]], 0) == ((0, 1), 0)
    assert macro_sequence(same, [[(0, 1)]], 0b11) == ((1, 0), 2)
    assert hybrid_arrows(same, (0, 1), 0, [[(0, 1)]], 0, fewest=1) == {}
    assert macro_sequence([], [], 1) == ((), 0)


class Sets(Clauses):
    """Conditions that are sets of values, IS NULL, and what AND, OR and NOT make of them."""

    between_attributes = Clauses.comparison
    pattern = Clauses.comparison


@st.composite
def query_sets(draw: Any) -> list[Predicate]:
    dice = Drawn(draw)
    texts = [Sets(dice).where(2) for _ in range(1 + dice.below(5))]
    return [parse_where(text, STREAM) for text in texts]


def number_conjunctions(queries: Sequence[Predicate]) -> Iterator[tuple[int, Conjunction]]:
    """Each conjunction with the number of its query; too large an OR is left out."""
    for number, query in enumerate(queries):
        try:
            yield from ((number, one) for one in to_conjunctions(query))
        except ExpansionTooLarge:
            continue


@given(query_sets(), st.data())
def test_as_each_query_by_itself(queries: list[Predicate], data: st.DataObject) -> None:
    """A query matches where one of its conjunctions is left: of every type, NULL, in any order."""
    parts = list(number_conjunctions(queries))
    built = constructs([one for _, one in parts], STREAM)
    names = [one.attribute for one in built]
    assert names == [name for name in STREAM.names if name in names]
    for one in built:
        assert len(one.regions) == 1 + 2 * len(one.constants) + 1
        assert sorted(set(one.constants)) == list(one.constants)
        assert all(region.constant is None for region in (one.regions[0], *one.regions[1::2]))
    order, arrows = data.draw(orders(len(built)))
    for _ in range(4):
        event = row(Drawn(data.draw))
        at = tuple(one.region_of(event[one.attribute]) for one in built)
        left = evaluate(built, at, order, arrows, (1 << len(parts)) - 1).grb
        matched = {number for j, (number, _) in enumerate(parts) if left >> j & 1}
        assert matched == {n for n, _ in parts if truth(queries[n], event) is True}


@pytest.mark.parametrize(
    ("type_", "wheres", "answers"),
    [
        (
            BIGINT,
            ("a > 9007199254740992.0", "a = 9007199254740993", "a <> 9007199254740993"),
            [(2**53, "001"), (2**53 + 1, "110"), (2**53 + 2, "101"), (2**63 - 1, "101")],
        ),
        (
            DOUBLE,
            ("a = 0.0", "a < 0.0", "a > 1e308", "a = CAST('NaN' AS DOUBLE)", "a <= 1e308"),
            [
                (-0.0, "10001"),
                (0.0, "10001"),
                (-5e-324, "01001"),
                (float("inf"), "00100"),
                (float("nan"), "00110"),
            ],
        ),
        (
            STRING,
            ("a = ''", "a > 'a'", "a BETWEEN 'a' AND 'b'", "a NOT IN ('a', 'ä')", "a < 'a'"),
            [
                ("", "10011"),
                ("a", "00100"),
                ("a\0", "01110"),
                ("b", "01110"),
                ("b\0", "01010"),
                ("ä", "01000"),
                ("𝄞", "01010"),
            ],
        ),
        (
            INT,
            ("a IS NULL", "a IS NOT NULL", "a >= -2147483648", "a < 3 OR a IS NULL", "a <> 3"),
            [(None, "100010"), (-(2**31), "011101"), (3, "011000"), (2**31 - 1, "011001")],
        ),
    ],
)
def test_where_numbers_and_texts_end(
    type_: Type, wheres: tuple[str, ...], answers: list[tuple[Value | None, str]]
) -> None:
    """2^53 + 1, −0.0, NaN, texts that differ in a zero, the ends of a type, and NULL."""
    stream = Stream("s", (Attribute("a", type_),))
    parts = [one for where in wheres for one in to_conjunctions(parse_where(where, stream))]
    (only,) = constructs(parts, stream)
    got = [
        (value, shown(only.regions[only.region_of(value)].qrb, len(parts))) for value, _ in answers
    ]
    assert repr(got) == repr(answers)


def test_null_or_not_is_a_construct_of_one_region() -> None:
    """IS NULL and IS NOT NULL have no constants: there is NULL, and all the rest."""
    parts = [(IsNull(Column("A1", INT)),), (IsNull(Column("A1", INT), negated=True),)]
    (only,) = constructs(parts, PAPER)
    assert (shown(only.qub, 2), only.constants) == ("11", ())
    assert [shown(region.qrb, 2) for region in only.regions] == ["10", "01"]


def test_what_has_no_regions_is_refused_by_name() -> None:
    """A pattern, a comparison of two attributes, an attribute of another stream."""
    for where in ("side LIKE 'a%'", "lots > qty"):
        with pytest.raises(UsageError, match=f"`{where}` has no regions"):
            constructs(to_conjunctions(parse_where(where, STREAM)), STREAM)
    with pytest.raises(UsageError, match="no attribute `qty`"):
        constructs(to_conjunctions(parse_where("qty < 3", STREAM)), PAPER)
    assert constructs([()], STREAM) == ()
