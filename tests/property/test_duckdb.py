"""DuckDB reads the same clauses as we do; `oracles/duck.py` says where the two are held apart."""

from __future__ import annotations

import pytest

from headgate.predicate import evaluate
from headgate.sql import WhereReader
from tests.boundaries import STREAM, Row
from tests.oracles.duck import TEXTS, Pairs, table_of, truths
from tests.scale import case_count, seed
from tests.strategies import Seeded, row

CHUNK = 50


def rows_for(dice: Seeded) -> list[Row]:
    rows = [row(dice) for _ in range(60)]
    return [r for r in rows if all(r[n] is None or r[n] in TEXTS for n in ("side", "client.name"))]


@pytest.mark.parametrize("shard", range(4))
def test_agree_duckdb(shard: int) -> None:
    """Every clause has, on every row, the truth value that DuckDB gives it."""
    dice, reader = Seeded(seed(shard)), WhereReader(STREAM)
    rows = rows_for(dice)
    with table_of(rows) as connection:
        for _ in range(case_count(15)):
            pairs = [Pairs(dice).where() for _ in range(CHUNK)]
            predicates = [reader.read(pair.ours) for pair in pairs]
            for event, theirs in zip(
                rows, truths(connection, [p.duck for p in pairs]), strict=True
            ):
                for pair, predicate, truth in zip(pairs, predicates, theirs, strict=True):
                    assert evaluate(predicate, event) is truth, (pair, event)
