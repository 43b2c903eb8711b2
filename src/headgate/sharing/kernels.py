"""Over all hops at once: the sample rows that a query adds, and what that costs from the root on.

A parent has a lower number than its children, so one pass from the root is enough.
"""

import numpy as np

from headgate.jit import kernel

ODD = np.uint64(0x5555555555555555)
PAIRS = np.uint64(0x3333333333333333)
FOURS = np.uint64(0x0F0F0F0F0F0F0F0F)
BYTES = np.uint64(0x0101010101010101)


@kernel
def count_ones(word):
    word -= (word >> np.uint64(1)) & ODD
    word = (word & PAIRS) + ((word >> np.uint64(2)) & PAIRS)
    word = (word + (word >> np.uint64(4))) & FOURS
    return np.int64((word * BYTES) >> np.uint64(56))


@kernel
def sum_growth(rows, count, has, width, consumers, parent, link_cost, wanted, asked, widths, scale):
    """`asked` says of each attribute whether the query puts it out (1), or only reads it (2)."""
    hops, words = rows.shape
    lacks = np.zeros(hops, np.int64)
    wider = np.zeros(hops)
    traffic = np.zeros(hops)
    load = np.zeros(hops)
    size = np.int64(0)
    for word in range(words):
        size += count_ones(wanted[word])
    for hop in range(1, hops):
        for word in range(words):
            lacks[hop] += count_ones(wanted[word] & ~rows[hop, word])
        both = count[hop] + lacks[hop]
        breaks, filters = lacks[hop] > 0, both > size
        for place in range(len(asked)):
            reads = asked[place] == 1 or (filters and asked[place] == 2)
            if (reads and has[hop, place] != 1) or (breaks and has[hop, place] == 2):
                wider[hop] += widths[place]
        more = scale * (both * (width[hop] + wider[hop]) - count[hop] * width[hop])
        traffic[hop] = traffic[parent[hop]] + link_cost[hop] * more
        load[hop] = load[parent[hop]] + scale * lacks[hop] * consumers[hop]
    return lacks, wider, traffic, load
