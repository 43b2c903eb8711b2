"""Clauses by the thousand, parsed once for all tests of a process."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from headgate.predicate import Predicate
from headgate.sql import WhereReader
from tests.scale import many, seed
from tests.strategies import STREAM, Clauses, Row, Seeded, row

SHARDS = range(4)
SIZE = 1_000


@dataclass(frozen=True)
class Case:
    """A clause, what the product reads in it, and rows to try it on."""

    text: str
    predicate: Predicate
    rows: tuple[Row, ...]


@lru_cache(maxsize=2)
def cases(shard: int, rows: int = 8) -> tuple[Case, ...]:
    """Clauses with rows near their constants; another shard has others."""
    dice = Seeded(seed(shard))
    reader = WhereReader(STREAM)
    found = []
    for _ in range(many(SIZE)):
        text = Clauses(dice).where()
        found.append(Case(text, reader.read(text), tuple(row(dice) for _ in range(rows))))
    return tuple(found)
