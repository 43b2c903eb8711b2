"""From the bitmaps that events are left with to their matches."""

from __future__ import annotations

import numpy as np

from headgate.jit import kernel, lowest_bit, popcount


@kernel
def given_out(left, owner):
    """The matches of events as offsets and queries; slot s is `owner[s]`'s."""
    events, words = left.shape
    offsets = np.zeros(events + 1, np.int64)
    for e in range(events):
        total = offsets[e]
        for w in range(words):
            total += popcount(left[e, w])
        offsets[e + 1] = total
    queries = np.empty(offsets[events], np.int64)
    used = 0
    for e in range(events):
        for w in range(words):
            word = left[e, w]
            while word != 0:
                queries[used] = owner[(w << 6) + lowest_bit(word)]
                used += 1
                word &= word - np.uint64(1)
    return offsets, queries
