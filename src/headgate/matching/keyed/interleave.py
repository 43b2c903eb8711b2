"""The matches of two segments, event by event."""

from __future__ import annotations

import numpy as np

from headgate.matching.keyed.compiled import kernel


@kernel
def interleaved(offsets, positions, more_offsets, more):
    """For each event its positions, and behind them those of the other segment."""
    found = np.empty(len(positions) + len(more), np.int64)
    place = 0
    for e in range(len(offsets) - 1):
        for i in range(offsets[e], offsets[e + 1]):
            found[place] = positions[i]
            place += 1
        for i in range(more_offsets[e], more_offsets[e + 1]):
            found[place] = more[i]
            place += 1
    return found
