"""Batches of a file against an index, chunk by chunk, with what else was met on the way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from headgate.events import EventBatch
from headgate.matching.matches import Matches
from headgate.matching.protocol import Index

NOTHING = Matches(np.zeros(1, np.int64), np.zeros(0, np.int64), ())


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Some matches; blank lines and undeclared names are counted with the first of their batch."""

    matches: Matches
    blank: int
    unknown: Mapping[str, int]


def match_batches(index: Index, batches: Iterable[EventBatch]) -> Iterator[Chunk]:
    """The matches of one batch after the other, in pieces of bounded size."""
    for batch in batches:
        blank, unknown = batch.blank, batch.unknown
        for matches in index.match_chunks(batch):
            yield Chunk(matches, blank, unknown)
            blank, unknown = 0, {}
        if blank:
            yield Chunk(NOTHING, blank, unknown)
