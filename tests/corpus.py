"""Clauses by the thousand, parsed once for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from headgate.predicate import Predicate
from headgate.sql import WhereReader
from tests.boundaries import STREAM, Row
from tests.scale import case_count, seed
from tests.strategies import Clauses, Seeded, row

SHARDS = range(4)
SIZE = 1_000
ROWS = 8


@dataclass(frozen=True)
class Case:
    """A clause, what the product reads in it, and rows to try it on."""

    text: str
    predicate: Predicate
    rows: tuple[Row, ...]


def cases(shard: int, count: int = SIZE) -> Iterator[Case]:
    """Clauses with rows near their constants, so many in a full run; another shard has others."""
    yield from _turn(seed(shard))[: case_count(count)]


@lru_cache(maxsize=4)
def _turn(start: int) -> tuple[Case, ...]:
    dice, reader = Seeded(start), WhereReader(STREAM)
    texts = [Clauses(dice).where() for _ in range(SIZE)]
    return tuple(
        Case(text, reader.read(text), tuple(row(dice) for _ in range(ROWS))) for text in texts
    )
