"""Kernels on entries, the conjunctions that every rival indexes."""

from __future__ import annotations

import numpy as np

from headgate.jit import kernel


@kernel
def has_repeated_column(start, atom, column, columns):
    """Return whether an entry has two predicates on one column."""
    # the entry that last had a predicate on each column
    last = np.full(columns, -1, np.int64)
    for e in range(len(start) - 1):
        for k in range(start[e], start[e + 1]):
            c = column[atom[k]]
            if last[c] == e:
                return True
            last[c] = e
    return False


@kernel
def collect_owners(offsets, entries, owner, always, seen):
    """Return the matches of events as queries: owners of entries, and those that always match.

    A query of which two conjunctions match is reported once. `seen` has room for every query.
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
            # the event that last reported the query, instead of clearing flags
            if seen[query] != e:
                seen[query] = e
                queries[used] = query
                used += 1
        ends[e + 1] = used
    return ends, queries[:used]
