"""From entries to queries: a query that several of its conjunctions found is reported once."""

from __future__ import annotations

import numpy as np

from headgate.jit import kernel


@kernel
def gather(offsets, entries, owner, always, seen):
    """The matches of events as queries: the owners of their entries, and those that always match.

    `seen` has room for every query.
    """
    events = len(offsets) - 1
    queries = np.empty(len(entries) + events * len(always), np.int64)
    ends = np.zeros(events + 1, np.int64)
    seen[:] = -1
    used = 0
    for e in range(events):
        for query in always:
            queries[used] = query
            seen[query] = e
            used += 1
        for k in range(offsets[e], offsets[e + 1]):
            query = owner[entries[k]]
            if seen[query] != e:
                seen[query] = e
                queries[used] = query
                used += 1
        ends[e + 1] = used
    return ends, queries[:used]
