"""Set and clear the bits of queries: a query is one column of bits, a slot, a region is one row.

A bit is 1 unless the region rules the query out: also where the query says nothing about the
attribute (Definition 1).
"""

from __future__ import annotations

import numpy as np

from headgate.jit import kernel, plain_kernel


@kernel
def set_bits(bits, rows, slots):
    """Set the bits of some slots in all of the first rows."""
    for row in range(rows):
        for slot in slots:
            bits[row, slot >> 6] |= np.uint64(1) << np.uint64(slot & 63)


@plain_kernel
def clear_bits(bits, rows, slots):
    """Clear the bits of some slots in all of the first rows."""
    for row in range(rows):
        for slot in slots:
            bits[row, slot >> 6] &= ~(np.uint64(1) << np.uint64(slot & 63))


@plain_kernel
def clear_rejected(bits, rows, slots, start, low, high):
    """Clear the bit of slot i in those of an attribute's rows that its condition rejects.

    It accepts those from `low[k]` to `high[k]`, for k from `start[i]` on, in ascending order.
    """
    for i in range(len(slots)):
        word, bit = slots[i] >> 6, np.uint64(1) << np.uint64(slots[i] & 63)
        # clear the gaps between the intervals that it accepts
        begin = 0
        for k in range(start[i], start[i + 1]):
            for r in range(begin, low[k]):
                bits[rows[r], word] &= ~bit
            begin = high[k] + 1
        for r in range(begin, len(rows)):
            bits[rows[r], word] &= ~bit


@kernel
def fill_text_rows(bits, first, words, silent, needed, texts, uses):
    """Write the rows of texts, from row `first` on.

    Text t matched the patterns `texts.numbers[start[t]:start[t + 1]]`, and pattern p is used by the
    slots `uses.slots[start[p]:start[p + 1]]`, some of which refuse it. A slot's bit is set where as
    many patterns matched as it needs, and none that it refuses; `silent` is the row of those that
    need none.
    """
    met = np.zeros(len(needed), np.int64)  # by slot: patterns that the text has matched
    for t in range(len(texts.start) - 1):
        row = first + t
        for w in range(words):
            # a row begins with the slots that need no pattern
            bits[row, w] = silent[w]
        for turn in range(2):  # what is needed first, and then what is refused
            for m in range(texts.start[t], texts.start[t + 1]):
                p = texts.numbers[m]
                for u in range(uses.start[p], uses.start[p + 1]):
                    slot = uses.slots[u]
                    bit = np.uint64(1) << np.uint64(slot & 63)
                    if turn == 1 and uses.refuses[u]:
                        bits[row, slot >> 6] &= ~bit
                    elif turn == 0 and not uses.refuses[u]:
                        met[slot] += 1
                        if met[slot] == needed[slot]:
                            bits[row, slot >> 6] |= bit
        # back to 0, only where something was counted
        for m in range(texts.start[t], texts.start[t + 1]):
            p = texts.numbers[m]
            for u in range(uses.start[p], uses.start[p + 1]):
                met[uses.slots[u]] = 0
