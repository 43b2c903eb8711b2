"""The growth of all hops of a tree at once: what a new query would add to each of them.

A parent has a lower number than its children, so one pass from the root is enough.
"""

import numpy as np

from headgate.jit import kernel
from headgate.jit.intrinsics import popcount


@kernel
def sum_growth(
    rows, count, column_use, width, readers, parent, link_cost, query_rows, query_use, widths, scale
):
    """Return for each hop the rows and row bytes that it lacks, and the traffic and load up to it.

    For each hop: `rows` (hops × words) and `count` are its sample rows, `column_use` (hops ×
    attributes) says which attributes it carries (1) or its filter reads (2), `width` is the bytes
    of its rows, `readers` how many read it, `parent` the number of the hop before it. Of the query:
    `query_rows` is its sample rows, `query_use` the attributes that it puts out (1) or reads (2).
    `widths` is the bytes of each attribute, `scale` the rows per second of one sample row.
    """
    hops, words = rows.shape
    missing_rows = np.zeros(hops, np.int64)
    missing_bytes = np.zeros(hops)
    traffic = np.zeros(hops)
    load = np.zeros(hops)
    # The rows that the query wants; a hop that would hold exactly these needs no filter for it.
    size = np.int64(0)
    for word in range(words):
        size += popcount(query_rows[word])
    for hop in range(1, hops):  # the root has all rows and columns
        for word in range(words):
            missing_rows[hop] += popcount(query_rows[word] & ~rows[hop, word])
        both = count[hop] + missing_rows[hop]
        # With more rows, the hop's consumers need a filter; with other rows, so does the query.
        breaks, filters = missing_rows[hop] > 0, both > size
        # An attribute is added if the query needs it and it is not carried, or if the hop's filter
        # reads it and a filter must now stand after the hop.
        for place in range(len(query_use)):
            reads = query_use[place] == 1 or (filters and query_use[place] == 2)
            use = column_use[hop, place]
            if (reads and use != 1) or (breaks and use == 2):
                missing_bytes[hop] += widths[place]
        # Bytes per second after less bytes per second before. Both sums run from the root, so the
        # parent's are final when a hop is reached.
        more = scale * (both * (width[hop] + missing_bytes[hop]) - count[hop] * width[hop])
        traffic[hop] = traffic[parent[hop]] + link_cost[hop] * more
        load[hop] = load[parent[hop]] + scale * missing_rows[hop] * readers[hop]
    return missing_rows, missing_bytes, traffic, load
