"""The definition of bounded memory: the paper's examples, and its slips."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headgate.errors import ExpansionTooLarge
from headgate.stateful.analysis.theory import checker, definition
from headgate.stateful.analysis.theory.conjunctive import Bound, Comparison, Conjunctive, Variable
from headgate.stateful.analysis.theory.definition import (
    estimate_orders,
    find_references,
    is_extremum_bounded,
    iter_total_orders,
)
from headgate.stateful.analysis.theory.relations import compute_order, keep_all
from tests.stateful.written import names, written

ST = {"S": "A B C", "T": "D E"}
TABLE_1 = [
    ({"S": "A B C"}, "A > 10", True, False),
    (ST, "A = D", False, False),
    (ST, "A = D, A > 10, D < 20", True, True),
    (ST, "B < D, A = 10", False, True),
    (ST, "B < D, C < E, A = 10", False, False),
    (ST, "B < D, C < E, B < E, C < D, A = 10", False, True),
    (ST, "B < D, D > 10, B < 20, A = 10", True, True),
]
FIGURE_1 = {"S1_": "A B C D", "S2_": "E F G", "S3_": "H I J"}
FIGURE_1_EDGES = "H < A, G < C, C < B, G < B, F > 10, F < 20, J < F, J < A, A > D, D = 10, I = 20"


def both_say(query: Conjunctive, verdict: bool) -> bool:
    return definition.is_bounded(query) == checker.is_bounded(query) == verdict


@pytest.mark.parametrize(("streams", "condition", "preserving", "distinct"), TABLE_1)
def test_table_1(streams: dict[str, str], condition: str, preserving: bool, distinct: bool) -> None:
    """Table I: 14 verdicts."""
    assert both_say(written(streams, condition, "A"), preserving)
    assert both_say(written(streams, condition, "A", distinct=True), distinct)


AB_C = {"S": "A B", "T": "C"}
EXAMPLES = {
    "5.7": (AB_C, "A < 20, A = C, C > 10, B > 20", False, True),
    "5.8": (AB_C, "A > 10, B = C, B = 10", False, False),
    "5.9": (AB_C, "A = 10, B < C, B > 10, C > 10", False, False),
    "5.11": (AB_C, "A = 10, B < C, B > 10, C > 10", True, True),
    "5.12": (ST, "A = 10, B > D, C > E, B > 10", True, False),
    "7.4": ({"S": "A B C D", "T": "E F"}, "B > F, C > F, D > F, A = 10", True, True),
    "8.7": ({"S": "A B", "T": "C"}, "A < 20, C < 20, A > 10, C > 10", False, True),
}


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples(example: str) -> None:
    """The paper's examples, 7.4 with the A = 10 that it lacks, and 8.7 as its reduced query."""
    streams, condition, distinct, verdict = EXAMPLES[example]
    assert both_say(written(streams, condition, "A", distinct=distinct), verdict)


def test_example_5_5_max_ref_and_min_ref() -> None:
    """Figure 1, from its description: which attributes are in MaxRef and in MinRef."""
    query = written(FIGURE_1, FIGURE_1_EDGES + ", E > 10")
    references = find_references(compute_order(query), keep_all(query))
    assert [names(query, references.max_ref(s)) for s in range(3)] == [{"A", "C"}, set(), set()]
    assert [names(query, references.min_ref(s)) for s in range(3)] == [set(), {"G"}, {"H", "J"}]


def test_example_5_9_and_5_12_references() -> None:
    """Section 5: the sets that violate C3."""
    query = written(AB_C, "A = 10, B < C, B > 10, C > 10")
    references = find_references(compute_order(query), keep_all(query))
    assert names(query, references.min_ref(0)) == {"B"}
    assert names(query, references.max_ref(1)) == {"C"}
    query = written(ST, "A = 10, B > D, C > E, B > 10", distinct=True)
    assert names(query, find_references(compute_order(query), keep_all(query)).max_ref(0)) == {
        "B",
        "C",
    }


def test_example_6_1_an_order_violates_c3() -> None:
    """Figure 3: some order has MaxRef(S1) = {A, C}, so the query is unbounded."""
    query = written(FIGURE_1, FIGURE_1_EDGES, distinct=True)
    assert both_say(query, False)
    small = written({"S": "A C", "T": "G", "U": "H"}, "H < A, G < C", distinct=True)
    assert both_say(small, False)
    sets = [
        names(small, find_references(o, keep_all(small)).max_ref(0))
        for o in iter_total_orders(small)
    ]
    assert {"A", "C"} in sets


def test_example_7_4_references_of_a_bucket() -> None:
    """In the bucket B = 10, C < 10, D < 10 just C and D are in MaxRef(S)."""
    condition = "B > F, C > F, D > F, A = 10, B = 10, C < 10, D < 10"
    query = written({"S": "A B C D", "T": "E F"}, condition, distinct=True)
    references = find_references(compute_order(query), keep_all(query))
    assert names(query, references.max_ref(0)) == {"C", "D"}
    assert not references.min_ref(0)


@pytest.mark.parametrize(
    ("streams", "condition", "count"),
    [
        ({"S": "A B", "T": "C"}, "B = C, A = 10", 3),
        ({"S": "A B C", "T": "D E"}, "A = 10, B < A, A < C, D < E", 5),
        ({"S": "A B C", "T": "D E"}, "A = 10, B < A, A < C, D < E, E < 10", 1),
        ({"S": "A B"}, "A > 10, B > A, B < 13", 1),
        ({"S": "A B"}, "A > 10, B > A, B < 12", 0),
    ],
)
def test_number_of_orders(streams: dict[str, str], condition: str, count: int) -> None:
    """Section 5: how many ordered queries are derived from some that the paper shows."""
    assert len(list(iter_total_orders(written(streams, condition)))) == count


def test_self_joins() -> None:
    """Example 8.1, and one whose second occurrence is superfluous only before ordering."""
    twice = {"S1": "A B", "S2": "A B"}
    condition = "S1.A = 10, S1.A = S2.A, S1.B = S2.B, S1.B > 10"
    assert definition.is_bounded(written(twice, condition, "S1.A", distinct=True))
    assert not definition.is_bounded(written(twice, condition, "S1.A"))
    wide = {"S1": "A B C D E", "S2": "A B C D E"}
    condition = "S2.A = 10, S2.B < S2.C, S2.D < S2.E, S1.B < S2.C, S1.D < S2.E"
    assert definition.is_bounded(written(wide, condition, "S2.A", distinct=True))
    assert not definition.is_bounded(written(wide, condition, "S2.A S1.B", distinct=True))


def test_a_window_covers_no_occurrence() -> None:
    """The last rows of a stream are other rows than all of them."""
    twice = {"S1": "A B", "S2": "A B"}
    condition = "S1.A = 10, S1.A = S2.A, S1.B = S2.B, S1.B > 10"
    query = written(twice, condition, "S1.A", distinct=True)
    assert not definition.is_bounded(replace(query, windowed=frozenset({1})))


def test_extrema_need_one_value_at_a_time() -> None:
    """Theorem 8.6 C3, corrected: MAX(A) beside S.B < T.D, although MaxRef is empty."""
    streams = {"S": "A B", "T": "D"}
    neighbours = written(streams, "B < D", distinct=True)
    assert not find_references(compute_order(neighbours), keep_all(neighbours)).max_ref(0)
    assert not is_extremum_bounded(neighbours, 0, "maximum")
    assert not is_extremum_bounded(neighbours, 0, "minimum")
    same = written(streams, "D < A", distinct=True)
    assert is_extremum_bounded(same, 0, "maximum")
    assert not is_extremum_bounded(same, 0, "minimum")
    held = written(streams, "B < D, A > 3, A < 9", distinct=True)
    assert is_extremum_bounded(held, 0, "maximum")


def test_dense_gaps() -> None:
    """With doubles all constants count, not just the outermost, and a gap has room in it."""
    streams = {"S": "A B", "T": "C D"}
    apart = "A < 15, C > 15, A < C, B = 10, D = 20"
    within = "A < 20, C > 10, A < C, B = 10, D = 20"
    for distinct in (False, True):
        assert both_say(written(streams, apart, "B", whole=False, distinct=distinct), True)
        assert both_say(written(streams, within, "B", distinct=distinct), True)
        assert both_say(written(streams, within, "B", whole=False, distinct=distinct), distinct)
        sparse = written(streams, within, "B", whole=False, sparse="C", distinct=distinct)
        assert both_say(sparse, True)


def test_equal_by_the_closure() -> None:
    """A <= C <= B with A = B is an equality between streams, though none is written."""
    query = written({"S": "A B", "T": "C"}, "A <= C, C <= B, A = B", distinct=True)
    assert both_say(query, False)
    assert next(checker.find_violations(query)).condition == "C2"
    assert next(definition.find_violations(query)).condition == "C2"


def test_equals_do_not_make_each_other_redundant() -> None:
    """With A = C, A <= B and C <= B must not each excuse the other."""
    assert both_say(written({"S": "A C", "T": "B"}, "A = C, A <= B, C <= B"), False)


@pytest.mark.parametrize("finite_first", [True, False])
def test_finitely_many_values_travel_along_equalities(finite_first: bool) -> None:
    """What equals a variable with finitely many values has no more of them."""
    streams = {"S": "A", "T": "C"} if finite_first else {"T": "C", "S": "A"}
    condition = "A = C, A >= 10, A <= 20"
    assert both_say(written(streams, condition, "C", whole=False, finite="A"), True)
    assert both_say(written(streams, condition, "C", whole=False, sparse="A"), True)
    assert both_say(written(streams, condition, "C", whole=False), False)


def test_windows() -> None:
    """A windowed stream needs nothing, but it asks for what the others must remember."""
    streams = {"S": "A B", "T": "C"}
    assert both_say(written(streams, "A = C", "A", windowed="S T"), True)
    assert both_say(written(streams, "A = C", "B", windowed="S"), False)
    assert both_say(written(streams, "C = 5", "B", windowed="S"), True)
    assert both_say(written(streams, "A < C, B < C", "A", windowed="S", distinct=True), True)
    assert both_say(written(streams, "A < C, C < B", windowed="S", distinct=True), False)
    assert both_say(written(streams, "A < C, C < B", windowed="T", distinct=True), False)
    assert both_say(written(streams, "A < C", windowed="T"), False)


def test_contradictory_queries_are_bounded() -> None:
    """What yields nothing needs no memory, also where only whole numbers contradict."""
    assert both_say(written(ST, "A = D, A > 10, A < 11", "A"), True)
    assert both_say(written(ST, "A = D, A < D", "A"), True)
    assert both_say(written(ST, "B > 1, B < D, D < 3, A = E", "A"), True)


def test_too_many_orders_are_declined() -> None:
    """The number of orders is estimated before any of them is made."""
    variables = tuple(Variable(source, name) for source in range(4) for name in "abcdefgh")
    comparisons = tuple(Comparison(v, "<", (v + 9) % 32) for v in range(0, 32, 3))
    query = Conjunctive(tuple("stuv"), variables, comparisons, (Bound(0, "<", 3),))
    assert estimate_orders(query) > 1_000_000
    with pytest.raises(ExpansionTooLarge, match="ordered in"):
        definition.is_bounded(query)
