"""Queries compared by their arrays are equal exactly where the objects are."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.predicate import And, Compare, IsNull, Matches, Not, Or, Predicate, Truth, Within
from headgate.queries import Query, Source
from headgate.schema import Schema, ValueSet
from headgate.snapshot.arrays import decode_queries, encode_queries
from headgate.snapshot.arrays.atoms import decode_atoms
from headgate.snapshot.arrays.comparison import mark_equal, number_atoms
from headgate.snapshot.arrays.selection import select_queries
from headgate.sql import parse_where
from headgate.testing.generate import every_type, random_where
from tests.scale import case_count, seed
from tests.snapshot.arrays.objects import SCHEMA, queries


def check(parts: Sequence[Sequence[Query]], newer: Sequence[Query], schema: Schema) -> int:
    """Compare every query with every stored one; return how many pairs are equal."""
    stored = [query for part in parts for query in part]
    pairs = [(old, new) for old in range(len(stored)) for new in range(len(newer))]
    encoded = encode_queries([newer[new] for _, new in pairs], schema)
    positions = np.array([old for old, _ in pairs], np.int64)
    actual = mark_equal([encode_queries(p, schema) for p in parts], positions, encoded, schema)
    expected = [replace(stored[old], id="") == replace(newer[new], id="") for old, new in pairs]
    assert actual.tolist() == expected
    return sum(expected)


@given(st.lists(st.lists(queries(), max_size=2), max_size=3), st.data())
def test_oracle_any_queries(parts: list[list[Query]], data: st.DataObject) -> None:
    known = [query for part in parts for query in part]
    again = data.draw(st.lists(st.sampled_from(known), max_size=2)) if known else []
    other = data.draw(st.lists(queries(), max_size=2))
    # objects of their own: nothing may rely on what is shared
    check(parts, deepcopy([*again, *other]), SCHEMA)


def alter(rng: Random, query: Query) -> Query:
    """A query that differs in one thing, or only in how it is written."""
    where = query.where
    if rng.random() < 0.2:
        return replace(query, metadata=rng.choice([None, "", "{}", '{"to": "ünï"}']))
    if rng.random() < 0.1:
        return replace(query, distinct=not query.distinct)
    return replace(query, where=alter_predicate(rng, where))


def alter_predicate(rng: Random, predicate: Predicate) -> Predicate:
    if isinstance(predicate, And | Or) and rng.random() < 0.8:
        parts = list(predicate.parts)
        if rng.random() < 0.2:
            rng.shuffle(parts)
            return type(predicate)(tuple(parts))
        place = rng.randrange(len(parts))
        parts[place] = alter_predicate(rng, parts[place])
        return type(predicate)(tuple(parts))
    if isinstance(predicate, And | Or):
        return (Or if isinstance(predicate, And) else And)(predicate.parts)
    if isinstance(predicate, Within):
        return rng.choice(
            [
                replace(predicate, form=rng.choice(["range", "list", "exclusion"])),
                replace(predicate, values=predicate.values.complement()),
                replace(predicate, values=ValueSet(predicate.values.cuts[1:], rng.random() < 0.5)),
            ]
        )
    if isinstance(predicate, IsNull | Matches):
        return replace(predicate, negated=not predicate.negated)
    if isinstance(predicate, Compare):
        return replace(predicate, operator=rng.choice(["<", "=", "<>", ">"]))
    if isinstance(predicate, Truth):
        return replace(predicate, accepted=frozenset(rng.sample([True, False, None], 2)))
    return Not(predicate)


@pytest.mark.parametrize("shard", range(4))
def test_oracle_small_differences(shard: int) -> None:
    rng, stream = Random(seed(shard)), every_type()
    schema, sources = Schema((stream,)), (Source(stream, stream.name),)
    equal = 0
    for _ in range(case_count(60)):
        wheres = [parse_where(random_where(rng, stream), stream) for _ in range(6)]
        old = [Query(f"q{n}", sources, where) for n, where in enumerate(wheres)]
        new = [alter(rng, query) if rng.random() < 0.8 else query for query in old]
        rng.shuffle(new)
        cut = rng.randrange(7)
        equal += check([old[:cut], old[cut:]], deepcopy(new), schema)
    assert equal > case_count(60)


def test_a_selection_and_what_was_read_back_compare_the_same() -> None:
    rng, stream = Random(5), every_type()
    schema, sources = Schema((stream,)), (Source(stream, stream.name),)
    wheres = [parse_where(random_where(rng, stream), stream) for _ in range(200)]
    encoded = encode_queries([Query(f"q{n}", sources, w) for n, w in enumerate(wheres)], schema)
    places = np.array(rng.sample(range(200), 150))
    selected = select_queries(encoded, places, schema)
    assert mark_equal([encoded], places, selected, schema).all()
    assert not mark_equal([encoded], (places + 1) % 200, selected, schema).all()
    again = encode_queries(decode_queries(selected, schema), schema)
    assert mark_equal([encoded], places, again, schema).all()


def test_equal_atoms_have_one_number() -> None:
    rng, stream = Random(6), every_type()
    schema, sources = Schema((stream,)), (Source(stream, stream.name),)
    wheres = [parse_where(random_where(rng, stream), stream) for _ in range(300)]
    halves = [[Query("q", sources, where) for where in half] for half in (wheres, wheres[::-1])]
    parts = [encode_queries(half, schema).atoms for half in halves]
    numbers = number_atoms(parts, schema)
    # two that differ in their form are two for the encoding, but equal
    distinct = len(set(decode_atoms(parts[0], schema)))
    assert set(numbers[0].tolist()) == set(numbers[1].tolist()) == set(range(distinct))
