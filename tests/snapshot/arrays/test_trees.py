"""Postfix programs against a recursive twin that shares no code with them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.predicate import TRUE, And, Atom, Not, Or, Predicate, Truth, iter_atoms
from headgate.snapshot.arrays.trees import from_postfix, to_postfix
from tests.snapshot.arrays.objects import SINGLE_SOURCES, predicates

Number = int
KNOWN: list[Atom] = [TRUE]


def naive_postfix(predicate: Predicate, known: list[Atom]) -> list[Number]:
    """The table at the top of `trees`, read aloud."""
    if isinstance(predicate, And | Or):
        inner = [entry for part in predicate.parts for entry in naive_postfix(part, known)]
        return [*inner, -16 - isinstance(predicate, Or) - 2 * len(predicate.parts)]
    if isinstance(predicate, Not):
        return [*naive_postfix(predicate.part, known), -1]
    if isinstance(predicate, Truth):
        bits = {False: 1, True: 2, None: 4}
        mask = sum(bits[value] for value in predicate.accepted)
        return [*naive_postfix(predicate.part, known), -8 - mask]
    return [known.index(predicate)]


def naive_tree(program: list[Number], known: list[Atom]) -> tuple[Predicate, list[Number]]:
    """The tree that a program ends in, and what of the program lies before it."""
    *rest, last = program
    if last >= 0:
        return known[last], rest
    if last > -16:
        part, rest = naive_tree(rest, known)
        if last == -1:
            return Not(part), rest
        mask = -8 - last
        pairs = ((False, 1), (True, 2), (None, 4))
        return Truth(part, frozenset(value for value, bit in pairs if mask & bit)), rest
    parts: list[Predicate] = []
    for _ in range((-16 - last) // 2):
        part, rest = naive_tree(rest, known)
        parts.insert(0, part)
    return (Or(tuple(parts)) if last % 2 else And(tuple(parts))), rest


@given(predicates(SINGLE_SOURCES[0]))
def test_agree_with_the_recursive_twin(predicate: Predicate) -> None:
    known = list(dict.fromkeys(iter_atoms(predicate)))
    program = to_postfix(predicate, known.index)
    assert program == naive_postfix(predicate, known)
    assert from_postfix(program, known) == predicate
    assert naive_tree(program, known) == (predicate, [])


def test_a_tree_deeper_than_pythons_stack_is_no_problem() -> None:
    tree: Predicate = TRUE
    for _ in range(50_000):
        tree = Not(tree)
    program = to_postfix(tree, KNOWN.index)
    assert program == [0] + 50_000 * [-1]
    again = from_postfix(program, KNOWN)
    for _ in range(50_000):
        assert isinstance(again, Not)
        again, part = again.part, again
        object.__setattr__(part, "part", TRUE)  # or else freeing it would recurse
        assert isinstance(tree, Not)
        tree, part = tree.part, tree
        object.__setattr__(part, "part", TRUE)
    assert again is TRUE


@given(st.permutations(range(6)))
def test_atoms_are_numbered_from_left_to_right(order: list[int]) -> None:
    requests: list[Atom] = []

    def number_of(atom: Atom) -> int:
        requests.append(atom)
        return 0

    tree = And((Or((TRUE, Not(TRUE))), TRUE, And(tuple(TRUE for _ in order))))
    to_postfix(tree, number_of)
    assert requests == list(iter_atoms(tree))


@pytest.mark.parametrize("program", [[], [0, 0], [-1]])
def test_a_program_that_leaves_not_one_value_is_an_error(program: list[int]) -> None:
    with pytest.raises((ValueError, IndexError)):
        from_postfix(program, KNOWN)
