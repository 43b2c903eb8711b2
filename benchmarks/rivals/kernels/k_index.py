"""Kernels of the k-index: walk the lists of an event's values together, by number of predicates."""

from __future__ import annotations

import numpy as np

from headgate.jit import kernel

END = np.uint64((1 << 64) - 1)  # the current entry of a list that was walked to its end
ONE = np.uint64(1)
LIST = np.uint64(16)  # bits for the number of a list, below those of its current entry
MAX_LISTS = 1 << 16


@kernel
def partition_lists(start, entry, sizes):
    """Split the list of each value by the number of predicates of its entries.

    Returns the first partition of each value, and the size and place of each partition.
    """
    # entries are sorted by size, so that a partition ends where the size changes; count, then fill
    first = np.zeros(len(start), np.int64)
    count = 0
    for value in range(len(start) - 1):
        for k in range(start[value], start[value + 1]):
            if k == start[value] or sizes[entry[k]] != sizes[entry[k - 1]]:
                count += 1
        first[value + 1] = count
    size, place = np.empty(count, np.int64), np.empty(count + 1, np.int64)
    place[count] = len(entry)
    g = 0
    for value in range(len(start) - 1):
        for k in range(start[value], start[value + 1]):
            if k == start[value] or sizes[entry[k]] != sizes[entry[k - 1]]:
                size[g], place[g] = sizes[entry[k]], k
                g += 1
    return first, size, place


@kernel
def walk_lists(entry, partitions, base, order, greatest, events, row, stop, out, offsets):
    """Append, for each K, the entries that stand in K lists of the event's values."""
    # `group[i]` is the next partition of value i, `last[i]` the one behind its last
    widest = 1
    for e in range(row, stop):
        widest = max(widest, events.start[e + 1] - events.start[e])
    group, last = np.empty(widest, np.int64), np.empty(widest, np.int64)
    place, end = np.empty(widest, np.int64), np.empty(widest, np.int64)
    current = np.empty(widest, np.uint64)
    used = 0
    e = row
    while e < stop and len(out) - used >= len(order):
        values = events.start[e + 1] - events.start[e]
        for i in range(values):
            k = events.start[e] + i
            value = base[events.column[k]] + events.low[k]
            group[i], last[i] = partitions.start[value], partitions.start[value + 1]
        for size in range(1, min(values, greatest) + 1):
            count = 0
            for i in range(values):
                g = group[i]
                if g < last[i] and partitions.size[g] == size:
                    place[count], end[count] = partitions.place[g], partitions.place[g + 1]
                    group[i] += 1
                    count += 1
            if size == 1:
                used = take_all(entry, place, end, count, order, out, used)
            elif count >= size:
                used = take_common(entry, place, end, current[:count], size, order, out, used)
        e += 1
        offsets[e - row] = used
    return e


@kernel
def take_all(entry, place, end, count, order, out, used):
    """Append all entries of the lists: with one predicate each, any list is enough."""
    for i in range(count):
        for k in range(np.uint64(place[i]), np.uint64(end[i])):
            out[used] = order[np.uint32(entry[k])]
            used += 1
    return used


@kernel
def take_common(entry, place, end, current, size, order, out, used):
    """Append the entries that stand in `size` lists.

    `current` has the current entry of each list, with the list's number below it, and ascends.
    """
    count = np.uint64(len(current))
    for i in range(len(current)):
        current[i] = (np.uint64(entry[place[i]]) << LIST) | np.uint64(i)
    current.sort()
    while current[size - 1] != END:
        least, most = current[0] >> LIST, current[size - 1] >> LIST
        # nothing below the entry of list number `size` can stand in so many
        target = most
        if least == most:
            out[used] = order[most]
            used += 1
            target = most + ONE
        for j in range(size - 1, -1, -1):
            if current[j] >> LIST < target:
                moved = skip_to(entry, place, end, current[j], target)
                # insert it where it belongs now
                at = np.uint64(j)
                while at + ONE < count and current[at + ONE] < moved:
                    current[at] = current[at + ONE]
                    at += ONE
                current[at] = moved
    return used


@kernel
def skip_to(entry, place, end, current, target):
    """Move a list to its first entry that is not below the target."""
    # in steps that double, then that halve
    i = current & np.uint64(MAX_LISTS - 1)
    at, stop, step = np.uint64(place[i]) + ONE, np.uint64(end[i]), ONE
    while at + step < stop and np.uint64(entry[at + step]) < target:
        at += step
        step <<= ONE
    while step:
        while at + step < stop and np.uint64(entry[at + step]) < target:
            at += step
        step >>= ONE
    while at < stop and np.uint64(entry[at]) < target:
        at += ONE
    place[i] = at
    if at >= stop:
        return END
    return (np.uint64(entry[at]) << LIST) | i
