"""Match the batches of a file, chunk by chunk, and count blank lines and undeclared names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from headgate.events import EventBatch
from headgate.matching.matches import Matches
from headgate.matching.protocol import Index

NO_MATCHES = Matches(np.zeros(1, np.int64), np.zeros(0, np.int64), ())


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Some matches; the first chunk of a batch also counts blank lines and undeclared names."""

    matches: Matches
    blank: int
    unknown: Mapping[str, int]


def match_batches(index: Index, batches: Iterable[EventBatch]) -> Iterator[Chunk]:
    """Return the matches of one batch after the other, in chunks of bounded size."""
    for batch in batches:
        blank, unknown = batch.blank, batch.unknown
        for matches in index.match_chunks(batch):
            yield Chunk(matches, blank, unknown)
            blank, unknown = 0, {}
        if blank:
            yield Chunk(NO_MATCHES, blank, unknown)
