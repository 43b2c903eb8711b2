"""A flip is a real change of at most two attributes, and none of its halves would do."""

from __future__ import annotations

from itertools import combinations, product
from random import Random

import pytest

from headgate.findings import explain, find_flip
from headgate.predicate import evaluate
from headgate.queries import Query
from headgate.schema import INT, STRING, Attribute, Interval, Stream, Value, ValueSet
from headgate.testing import every_type, random_rows, random_where
from headgate.testing.contract import query

SMALL = Stream(
    "s", tuple(Attribute(name, INT, ValueSet.of(Interval(0, 4))) for name in ("a", "b", "c"))
)
VALUES = (None, 0, 1, 2, 3)


def smallest_flip(result: Query, row: dict[str, Value | None]) -> int:
    """By brute force over the whole domain: how many attributes must change? 3 if none or more."""
    matched = evaluate(result.where, row) is True
    for size in (1, 2):
        for names in combinations(row, size):
            for values in product(VALUES, repeat=size):
                changed = {**row, **dict(zip(names, values, strict=True))}
                if (evaluate(result.where, changed) is True) != matched:
                    return size
    return 3


def random_condition(rng: Random, depth: int = 2) -> str:
    """Conditions on a, b and c with constants inside and outside their domain."""
    if depth and rng.random() < 0.7:
        word = rng.choice((" AND ", " OR "))
        return "(" + word.join(random_condition(rng, depth - 1) for _ in range(3)) + ")"
    left, right = rng.sample("abc", 2)
    operator = rng.choice(("<", "<=", "=", "<>", ">=", ">"))
    return rng.choice(
        (
            f"{left} {operator} {rng.randint(-1, 5)}",
            f"{left} {operator} {right}",
            f"{left} IS NULL",
            f"NOT {left} IN (1, 3)",
        )
    )


def test_oracle_brute_force() -> None:
    """Where brute force finds a flip, so do we, with as few attributes; and never a false one."""
    rng, flips = Random(5), 0
    for _ in range(1_500):
        chosen = query(SMALL, "q", random_condition(rng))
        row: dict[str, Value | None] = {name: rng.choice(VALUES) for name in "abc"}
        flip = find_flip(chosen, row)
        expected = smallest_flip(chosen, row)
        assert (3 if flip is None else len(flip.changes)) == expected, (chosen, row, flip)
        flips += flip is not None
    assert flips > 500


def test_every_flip_is_verified_and_minimal() -> None:
    """Over all types: the change flips the answer, and no proper part of it does."""
    rng, stream = Random(6), every_type()
    sizes = []
    for _ in range(300):
        chosen = query(stream, "q", random_where(rng, stream, 2))
        (row,) = random_rows(rng, stream, 1)
        flip = find_flip(chosen, row)
        if flip is None:
            continue
        sizes.append(len(flip.changes))
        new = {key: value for key, (_, value) in flip.changes.items()}
        matched = evaluate(chosen.where, row) is True
        assert (evaluate(chosen.where, {**row, **new}) is True) == flip.matches == (not matched)
        for key in new if len(new) == 2 else ():
            assert (evaluate(chosen.where, {**row, key: new[key]}) is True) == matched
    assert len(sizes) > 200
    assert set(sizes) <= {1, 2}


def test_flip_stays_inside_the_declaration() -> None:
    """No value outside a CHECK, no NULL where it is forbidden, and the nearest value wins."""
    stream = Stream("s", (Attribute("a", INT, ValueSet.of(Interval(0, 10)), nullable=False),))
    assert find_flip(query(stream, "q", "a >= 0"), {"a": 3}) is None
    near = find_flip(query(stream, "q", "a > 5 OR a < 2"), {"a": 3})
    assert near is not None
    assert near.changes == {"a": (3, 1)}


@pytest.mark.parametrize(
    ("where", "row", "new"),
    [
        ("t LIKE 'ab%'", {"t": "x"}, {"t": "ab"}),
        ("t = 'x' AND a = 1", {"t": "y", "a": 2}, {"t": "x", "a": 1}),
        ("t > 'm'", {"t": "a"}, {"t": "m\0"}),
    ],
)
def test_examples(where: str, row: dict[str, Value | None], new: dict[str, Value]) -> None:
    """Texts are moved too."""
    stream = Stream("s", (Attribute("a", INT), Attribute("t", STRING)))
    flip = find_flip(query(stream, "q", where), row)
    assert flip is not None
    assert {key: value for key, (_, value) in flip.changes.items()} == new


def test_explanation_shows_every_atom_once() -> None:
    """Each atom has the values that it saw and its truth; the tree has every node."""
    chosen = query(SMALL, "q", "(a > 1 AND b IS NULL) OR NOT (a > 1 AND c = 2)")
    explanation = explain(chosen, {"a": 2, "b": None, "c": None})
    assert [(atom.condition, atom.truth) for atom in explanation.atoms] == [
        ("a >= 2", True),
        ("b IS NULL", True),
        ("c = 2", None),
    ]
    assert [text for _, text, _ in explanation.list_nodes()] == [
        "OR", "AND", "a >= 2", "b IS NULL", "NOT", "AND", "a >= 2", "c = 2",
    ]  # fmt: skip
    assert explanation.is_match
