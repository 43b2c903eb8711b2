"""Selecting and joining encoded queries is what selecting and joining the queries is."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from headgate.queries import Query, Source
from headgate.schema import Schema
from headgate.snapshot.arrays import decode_queries, encode_queries, find_flaw
from headgate.snapshot.arrays.selection import concatenate_queries, select_queries
from headgate.sql import parse_where
from headgate.testing.generate import every_type, random_where


def queries(rng: Random, count: int, first: int = 0) -> list[Query]:
    stream = every_type()
    return [
        Query(
            f"q{first + n}",
            (Source(stream, stream.name),),
            parse_where(random_where(rng, stream), stream),
            metadata=rng.choice([None, "", '{"owner": "né"}']),
        )
        for n in range(count)
    ]


@pytest.mark.parametrize("seed", range(20))
def test_a_selection_holds_the_selected_queries_and_nothing_else(seed: int) -> None:
    rng, schema = Random(seed), Schema((every_type(),))
    whole = queries(rng, 60)
    places = rng.sample(range(60), rng.randrange(61))
    selection = select_queries(encode_queries(whole, schema), np.array(places, np.int64), schema)
    assert list(decode_queries(selection, schema)) == [whole[place] for place in places]
    assert find_flaw(selection, schema) is None
    used = set(selection.trees.program[selection.trees.program >= 0].tolist())
    assert used == set(range(len(selection.atoms)))


@pytest.mark.parametrize("seed", range(20))
def test_parts_that_are_joined_hold_the_queries_of_all(seed: int) -> None:
    rng, schema = Random(seed), Schema((every_type(),))
    parts = [queries(rng, rng.randrange(30), 100 * n) for n in range(rng.randrange(1, 5))]
    result = concatenate_queries([encode_queries(part, schema) for part in parts], schema)
    assert list(decode_queries(result, schema)) == [query for part in parts for query in part]
    assert find_flaw(result, schema) is None
