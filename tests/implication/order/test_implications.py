"""What implies what: the fast way against the definition, and hard sets."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from headgate.implication.decision import decide_implication
from headgate.implication.order.definition import Order, order_by_definition
from headgate.implication.order.implications import find_implications
from headgate.implication.pair import Constraints
from headgate.predicate import Predicate, decide_satisfiability, to_monotone
from headgate.schema import INT, STRING, Attribute, Interval, Stream, ValueSet
from headgate.sql import parse_where
from tests.boundaries import STREAM
from tests.scale import at_least, case_count, slow_unless_in
from tests.strategies import Clauses, Seeded

SMALL = Stream(
    "s",
    (
        Attribute("a", INT, ValueSet.of(Interval(1, 8))),
        Attribute("b", INT, nullable=False),
        Attribute("c", INT),
        Attribute("t", STRING),
    ),
)
TEXTS = ("= 'ab'", "LIKE 'a%'", "LIKE '%b'", "LIKE '%b%'", "NOT LIKE '%b%'", "> 'a'", "IS NULL")


def fast(conditions: Sequence[Predicate], stream: Stream) -> Order:
    """The fast order of all conditions, without those that are never TRUE."""
    places = []
    for at, condition in enumerate(conditions):
        declared = Constraints.of(stream, (condition,))
        if decide_satisfiability(condition, declared.domains, declared.required).answer != "no":
            places.append(at)
    result = find_implications([to_monotone(conditions[at]) for at in places], stream)
    same_as = list(range(len(conditions)))
    implied_by: list[list[int]] = [[] for _ in conditions]
    for number, at in enumerate(places):
        same_as[at] = places[result.same_as[number]]
        implied_by[at] = [places[int(other)] for other in result.implied_by[number]]
    unknown = {places[q]: [places[p] for p in ps] for q, ps in result.undecided.items()}
    skipped = {places[one] for one in result.skipped}
    return Order(same_as, implied_by, unknown, result.is_complete, skipped)


def order_of(*wheres: str, stream: Stream = SMALL) -> Order:
    return fast([parse_where(where, stream) for where in wheres], stream)


def atom(dice: Random) -> str:
    column, value = dice.choice("aabbcct"), dice.randrange(9)
    if column == "t":
        return f"t {dice.choice(TEXTS)}"
    return f"{column} " + dice.choice(
        (
            f"> {value}",
            f"<= {value}",
            f"= {value}",
            f"<> {value}",
            f"IN ({value}, {dice.randrange(9)}, 3)",
            "IS NULL",
            "IS NOT NULL",
            f"BETWEEN {value} AND {value + 2}",
            f"< {dice.choice('abc')}",
        )
    )


def where(dice: Random, depth: int) -> str:
    kind = dice.random()
    if depth == 0 or kind < 0.3:
        return atom(dice)
    if kind < 0.9:
        parts = (f"({where(dice, depth - 1)})" for _ in range(2))
        return (" AND " if kind < 0.65 else " OR ").join(parts)
    return f"NOT ({where(dice, depth - 1)})"


def agree(conditions: Sequence[Predicate], stream: Stream) -> bool:
    """Do both ways say the same? Where one leaves a pair open they need not; is none open?

    What the fast way says is then confirmed by `decide_implication`, where that has an answer.
    """
    wanted, result = order_by_definition(conditions, stream), fast(conditions, stream)
    assert result.is_complete
    if not wanted.undecided and not result.undecided and not result.skipped:
        assert (result.implied_by, result.same_as) == (wanted.implied_by, wanted.same_as), (
            conditions
        )
        return True
    pairs = [(p, q) for q, ps in enumerate(result.implied_by) for p in ps]
    pairs += [pair for q, p in enumerate(result.same_as) if p != q for pair in ((p, q), (q, p))]
    for p, q in pairs:
        declared = Constraints.of(stream, (conditions[p], conditions[q]))
        assert decide_implication(conditions[p], conditions[q], declared).answer != "no", conditions
    return False


@pytest.mark.parametrize("seed", slow_unless_in([0], range(4)))
def test_the_fast_order_is_that_of_the_definition(seed: int) -> None:
    """On small sets over few values, with CHECK, NOT NULL, <>, IN, OR, NOT, LIKE and a < b."""
    decided = 0
    for number in range(case_count(250)):
        dice = Random(1000 * seed + number)
        wheres = [where(dice, dice.choice((0, 1, 1, 2))) for _ in range(dice.randint(2, 12))]
        decided += agree([parse_where(one, SMALL) for one in wheres], SMALL)
    assert decided > at_least(220)


def test_the_whole_language_agrees() -> None:
    """On sets of clauses over all types, as far as they are decided."""
    decided = 0
    for seed in range(case_count(100)):
        clauses = Clauses(Seeded(seed), STREAM.attributes[2 * (seed % 9) :][:2])
        wheres = [clauses.where(1) for _ in range(6)]
        decided += agree([parse_where(one, STREAM) for one in wheres], STREAM)
    assert decided > at_least(60)


def test_a_chain_has_one_parent_each() -> None:
    """All pairs of 3,000 thresholds would be 4.5 million."""
    order = order_of(*(f"c > {x}" for x in range(3000)))
    assert [list(one) for one in order.implied_by] == [[x + 1] for x in range(2999)] + [[]]


def test_nested_unions_are_a_chain_too() -> None:
    """Each disjunction contains the next, by its parts."""
    order = order_of(*(f"c > {x} OR t = 'x'" for x in range(200)))
    assert order.implied_by == [[x + 1] for x in range(199)] + [[]]


def test_duplicates_are_one_class_however_they_are_written() -> None:
    """The first stands for all; unions that become a product are found too."""
    order = order_of(
        "c > 3 OR b = 1", "b = 1 OR c >= 4", "c IN (1, 2)", "c = 1 OR c = 2", "c BETWEEN 1 AND 2",
        "b = 1 OR c > 3 AND b <> 1", "c > 5",
    )  # fmt: skip
    assert order.same_as == [0, 0, 2, 2, 2, 0, 6]
    assert order.implied_by == [[6], [], [], [], [], [], []]


def test_a_tautology_is_implied_by_the_largest_only() -> None:
    """CHECK and NOT NULL make `b IS NOT NULL` one, and contradictions are left out."""
    order = order_of("b IS NOT NULL", "c > 1", "c > 2", "a = 9", "TRUE", "a > 7 OR a IS NULL")
    assert order.implied_by == [[1, 5], [2], [], [], [], []]
    assert order.same_as[4] == 0


def test_regular_expressions_are_compared() -> None:
    """By their languages, categories of Unicode included."""
    order = order_of("t RLIKE '^[a-c]+$'", "t RLIKE '^[a-d]+$'", r"t RLIKE '^(\\p{Lu}|[a-c])+$'")
    assert [list(implied) for implied in order.implied_by] == [[], [0], [0]]
    assert not order.undecided


def test_conditions_are_compared_with_conditions_and_values() -> None:
    """A pattern by the patterns it contains, a range by its prefix, an order by its values."""
    order = order_of(
        "t LIKE '%ab%' AND c > 5", "t LIKE 'ab%' AND c > 6", "t = 'cab' AND c = 9", "t IS NOT NULL",
        "b < c", "b < 3 AND c > 3", "b <> c", "b <= 4 AND c = 9 AND t LIKE '%abc%'",
    )  # fmt: skip
    assert [list(one) for one in order.implied_by] == [
        [1, 2, 7], [], [], [0], [5, 7], [], [4], [],
    ]  # fmt: skip
    assert not order.undecided


def test_parts_contain_a_query_together() -> None:
    """No part of the first holds the second, third or fourth; it does as a whole."""
    order = order_of(
        "c <= 5 OR c > 5 AND b = 1 OR c > 3 AND b <> 1", "c > 1 AND b > 0",
        "c IN (2, 9) AND b IN (1, 2)", "c > 1 AND b > 0 OR c = 1 AND t = 'x'", "c IS NOT NULL",
    )  # fmt: skip
    assert order.same_as == [0, 1, 2, 3, 0]
    assert [list(one) for one in order.implied_by] == [[3], [2], [], [1], []]


def test_too_many_products_are_compared_by_rows() -> None:
    """Conjunctions of disjunctions, which would be thousands of products."""
    parts = [f"(c = {x} OR b = {x} OR t = '{x}' OR a IS NULL)" for x in range(6)]
    order = order_of(" AND ".join(parts), " AND ".join(parts[:3]), "c = 1", "a IS NULL")
    assert [list(implied) for implied in order.implied_by] == [[], [0], [], []]
    assert not order.skipped
    assert not order.undecided


def test_two_conditions_are_compared_alike_in_any_company() -> None:
    """Whether two rules are the same, or imply one another, depends on no other rule."""
    pairs = [
        ("t ILIKE '%ab%' OR t ILIKE '%cd%'", "t ILIKE '%CD%' OR t ILIKE '%Ab%'"),
        ("t LIKE '%.exe' AND c > b", "t LIKE '%e' AND c >= b"),
        ("NOT COALESCE(t ILIKE '%a%' OR t ILIKE '%b', FALSE)", "t IS NULL"),
    ]
    apart = [order_of(*pair) for pair in pairs]
    others = [f"t LIKE '%{x}%' AND c > {x}" for x in range(40)]
    together = order_of(*(condition for pair in pairs for condition in pair), *others)
    for number, order in enumerate(apart):
        first = 2 * number
        assert [place - first for place in together.same_as[first : first + 2]] == order.same_as
        for inner, outer in ((0, 1), (1, 0)):
            implied = first + inner in together.implied_by[first + outer]
            assert implied == (inner in order.implied_by[outer])


def test_rows_that_refute_have_all_required_values() -> None:
    """A row that refutes one pair says nothing about a NOT NULL column that this pair lacks."""
    fillers = [f"t NOT LIKE '%a%' OR c = {x}" for x in range(12)]
    order = order_of(
        "t LIKE '%ab%'", "t LIKE '%a%' AND b IS NOT NULL", "t NOT LIKE '%z%'", *fillers
    )
    assert 0 in order.implied_by[1]
