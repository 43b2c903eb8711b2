"""Take events through the constructs, one after the other, until no query is left.

"Adaptive two-level optimization for selection predicates of multiple continuous queries", sections
3.2 and 5.1. The paper ANDs a whole bitmap at a time. Here it is done block by block, and a block
ends as soon as it is empty: an event meets the constructs in the same order in every block, and the
deepest block is the number of constructs that the paper would have evaluated. Two constructs are
ANDed in one pass, which takes little longer than one, and counted as if one by one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headgate.jit import inlined_kernel, kernel, load_unchecked, lowest_bit, plain_kernel

Words = npt.NDArray[np.uint64]
Int64s = npt.NDArray[np.int64]

MAX_ARROW_TARGETS = 64  # constructs that a micro-arrow can lead to: the bits of a word

# Places in a tally: events, those that no condition held for, constructs evaluated, steps along a
# micro-arrow, and all steps from one construct to the next.
EVENTS, DROPPED, EVALUATED, MICRO, FOLLOWED, TALLY_SIZE = range(6)


class Table(NamedTuple):
    """The bits of all regions: a row for each region, and a slot, one bit, per conjunction."""

    bits: Words  # (rows, words or more): row r has the words `bits[r, :len(alive)]`
    alive: Words  # (words,): the slots in use
    owner: Int64s  # by slot: the position of its query
    shared: Int64s  # by slot: the first slot of its query if that has more than one, else −1
    always: Int64s  # positions of queries without a condition, which every event matches


class PackedOrder(NamedTuple):
    """An evaluation order: the macro-sequence, and the micro-arrows in terms of its places."""

    sequence: Int64s  # constructs, by place
    # by row: the place that its micro-arrow leads to, below MAX_ARROW_TARGETS, or −1
    arrows: npt.NDArray[np.int16]


class Scratch(NamedTuple):
    """The working memory of one call."""

    grb: Words  # (block,): what is left of the queries of one block (the global result bitmap)
    path: Int64s  # by step: where the row of its construct begins
    some: Words  # by block: not 0 if anybody is alive in it
    micros: Int64s  # by step: how many of those so far followed a micro-arrow


@kernel
def evaluate_events(table, at, start, stop, order, block, max_matches, seen, out, offsets, tally):
    """Write the matches of events from `start` on into `out` and `offsets`; return where it ended.

    Event e is in row `at[c, e]` of construct c. It ends at `stop`, or before an event for which
    there might not be room, as it can match `max_matches` queries. `seen` has a place for each
    slot, and serves one call at a time; `tally` is added to.
    """
    words, count = len(table.alive), len(order.sequence)
    # made here, once a call, since the loop makes nothing and so counts no references
    scratch = Scratch(
        np.empty(block, np.uint64),
        np.empty(count + 1, np.int64),
        np.zeros(words // block + 1, np.uint64),
        np.zeros(count + 1, np.int64),
    )
    for w in range(words):
        scratch.some[w // block] |= table.alive[w]
    return _evaluate(
        table, at, start, stop, order, block, max_matches, seen, scratch, out, offsets, tally
    )


@plain_kernel
def _evaluate(  # noqa: PLR0915 (one loop; its parts would hand over twenty arrays)
    table, at, start, stop, order, block, max_matches, seen, scratch, out, offsets, tally
):
    """Do the work of `evaluate_events`, which makes the arrays of `scratch`."""
    # Rows are read at `row * stride` of the flat bits.
    bits, alive, owner, shared = table.bits.reshape(-1), table.alive, table.owner, table.shared
    stride, words, count = np.int64(table.bits.shape[1]), len(alive), len(order.sequence)
    sequence, arrows, always = order.sequence, order.arrows, table.always
    hybrid = len(arrows) > 0
    grb, path, some, micros = scratch.grb, scratch.path, scratch.some, scratch.micros
    # A bit for each place in the sequence that is not evaluated yet, which the paper's global
    # evaluation bitmap (GEB) has as a 0; at first all of them.
    every = ~np.uint64(0) >> np.uint64(max(0, MAX_ARROW_TARGETS - count))
    used = evaluated = dropped = micro = followed = 0
    offsets[0] = 0
    e = start
    while e < stop and used + max_matches <= len(out):
        # The first `known` steps of the event's path are chosen, which all blocks share.
        before, known, deepest, row, to_do = used, 0, 0, np.int64(-1), every
        for begin in range(0, words, block):
            size = min(block, words - begin)
            left, depth = some[begin // block], 0
            while left != 0 and depth < count:
                # Choose the next two steps, unless an earlier block needed them.
                while known < min(depth + 2, count):
                    place = np.int64(known)
                    if hybrid:
                        arrow = np.int64(arrows[row]) if 0 <= row < len(arrows) else np.int64(-1)
                        micro_next = arrow >= 0 and (to_do >> np.uint64(arrow)) & np.uint64(1) != 0
                        if micro_next:
                            place = arrow
                        elif to_do != 0:
                            place = lowest_bit(to_do)
                        micros[known + 1] = micros[known] + micro_next
                        if place < MAX_ARROW_TARGETS:
                            to_do &= ~(np.uint64(1) << np.uint64(place))
                    row = np.int64(at[sequence[place], e])
                    path[known] = row * stride
                    known += 1
                # AND two rows; if the first leaves nothing, the second was not needed.
                first, last = path[depth] + begin, depth + 1 == count
                second = first if last else path[depth + 1] + begin
                if depth == 0:
                    half, left = _and_two(alive, begin, bits, first, second, grb, size)
                else:
                    half, left = _and_two(grb, 0, bits, first, second, grb, size)
                depth += 1 if last or half == 0 else 2
            deepest = max(deepest, depth)
            if left != 0:
                used = _append_matches(grb, size, begin, owner, shared, seen, e, out, used)
        dropped += used == before
        evaluated += deepest
        micro += micros[deepest]
        followed += max(0, deepest - 1)
        for query in always:
            out[used] = query
            used += 1
        e += 1
        offsets[e - start] = used
    tally[EVENTS] += e - start
    tally[DROPPED] += dropped
    tally[EVALUATED] += evaluated
    tally[MICRO] += micro
    tally[FOLLOWED] += followed
    return e


@inlined_kernel
def _and_two(source, begin, bits, first_row, second_row, grb, size):
    """AND two rows into what is left of a block; return what the first leaves, and what both do."""
    # not 0 if anything is left: the OR of the words
    half = left = np.uint64(0)
    for w in range(size):
        first = load_unchecked(source, begin + w) & load_unchecked(bits, first_row + w)
        word = first & load_unchecked(bits, second_row + w)
        grb[w] = word
        half |= first
        left |= word
    return half, left


@inlined_kernel
def _append_matches(grb, size, begin, owner, shared, seen, e, out, used):
    """Append the queries whose bits are left in a block, each once an event."""
    # go from one set bit to the next; `seen` remembers by slot the event that it last matched
    for w in range(size):
        word = grb[w]
        while word != 0:
            slot = ((begin + w) << 6) + lowest_bit(word)
            word &= word - np.uint64(1)
            first = shared[slot]
            if first < 0 or seen[first] != e:
                if first >= 0:
                    seen[first] = e
                out[used] = owner[slot]
                used += 1
    return used
