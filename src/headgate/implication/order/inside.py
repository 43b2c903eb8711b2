"""Is a product inside another? For pairs, and for queries that are unions of several."""

from __future__ import annotations

import numpy as np

from headgate.matching.keyed.compiled import kernel, part_of_kernel
from headgate.matching.keyed.intrinsics import lowest_bit

CORNERS = 12


@part_of_kernel
def contains(hulls, outer, inner):
    """Is hull `inner` inside hull `outer`? Every side of the outer one must hold the inner's."""
    found = True
    mine, end = hulls.offsets[inner], hulls.offsets[inner + 1]
    side = hulls.offsets[outer]
    while found and side < hulls.offsets[outer + 1]:
        while mine < end and hulls.column[mine] < hulls.column[side]:
            mine += 1
        found = mine < end and hulls.column[mine] == hulls.column[side]
        if found:
            at, last = hulls.first[side], hulls.last[side]
            part = hulls.first[mine]
            while found and part < hulls.last[mine]:
                while at < last and hulls.highs[at] < hulls.highs[part]:
                    at += 1
                found = at < last and hulls.lows[at] <= hulls.lows[part]
                part += 1
        side += 1
    return found


@kernel
def proved(hulls, split, inner, outer):
    """For each pair: is every outer hull of the one inside an inner hull of the other?"""
    found = np.zeros(len(inner), np.bool_)
    for at in range(len(inner)):
        i, j = inner[at], outer[at]
        missing = False
        part = split.outer_offsets[i]
        while not missing and part < split.outer_offsets[i + 1]:
            missing = True
            other = split.inner_offsets[j]
            while missing and other < split.inner_offsets[j + 1]:
                missing = not contains(hulls, split.inner[other], split.outer[part])
                other += 1
            part += 1
        found[at] = not missing
    return found


@part_of_kernel
def _holds_corner(hulls, outer, inner, mask):
    """Does a hull hold the corner of another that has the low end in each column of the mask?"""
    found = True
    mine, end = hulls.offsets[inner], hulls.offsets[inner + 1]
    side = hulls.offsets[outer]
    while found and side < hulls.offsets[outer + 1]:
        column = hulls.column[side]
        while mine < end and hulls.column[mine] < column:
            mine += 1
        is_low = (mask >> (column & 63)) & 1
        if mine < end and hulls.column[mine] == column:
            low, high = hulls.lows[hulls.first[mine]], hulls.highs[hulls.last[mine] - 1]
        else:
            low, high = hulls.bottom[column], hulls.top[column]
        cell = low if is_low else high - 1
        found = False
        for at in range(hulls.first[side], hulls.last[side]):
            found |= hulls.lows[at] <= cell < hulls.highs[at]
        side += 1
    return found


@kernel
def refuted_by_corners(hulls, split, inner, outer):
    """For each pair of a product and a union of its inner hulls: is a corner of it outside?"""
    found = np.zeros(len(inner), np.bool_)
    for at in range(len(inner)):
        j = outer[at]
        mask = np.int64(0)
        for corner in range(CORNERS):
            missing = True
            other = split.inner_offsets[j]
            while missing and other < split.inner_offsets[j + 1]:
                missing = not _holds_corner(hulls, split.inner[other], inner[at], mask)
                other += 1
            if missing:
                found[at] = True
                break
            mask = np.int64(-1) if corner == 0 else mask * 6364136223846793005 + 1442695040888963407
    return found


@kernel
def same_as(hulls, size, also):
    """For each union the first class that holds for the same rows, or -1.

    Two unions do that contain each other, or a union and a product.
    """
    found = np.full(len(also.row) - size, -1)
    for i in range(len(also.row)):
        row = also.row[i]
        if row < 0 or (i >= size and found[i - size] >= 0):
            continue
        for w in range(also.unions.shape[1]):
            bits = also.unions[row, w]
            while bits:
                k = 64 * w + lowest_bit(bits)
                bits &= bits - np.uint64(1)
                if found[k] >= 0 or size + k == i:
                    continue
                if i < size:
                    back = contains(hulls, i, size + k)
                    for at in range(also.offsets[size + k], also.offsets[size + k + 1]):
                        back |= also.products[at] == i
                else:
                    other, j = also.row[size + k], np.uint64(i - size)
                    back = other >= 0 and (
                        also.unions[other, j >> np.uint64(6)] >> (j & np.uint64(63))
                    ) & np.uint64(1) == np.uint64(1)
                if back:
                    found[k] = i
    return found


@kernel
def in_all(owners, offsets, positions, count):
    """Of each owner the positions, below `count`, that all of its rows have; rows are by owner."""
    seen = np.zeros(count, np.int64)
    first, second = np.empty(len(positions), np.int64), np.empty(len(positions), np.int64)
    found = 0
    start = 0
    while start < len(owners):
        stop = start + 1
        while stop < len(owners) and owners[stop] == owners[start]:
            stop += 1
        for row in range(start, stop):
            for at in range(offsets[row], offsets[row + 1]):
                if seen[positions[at]] == row - start:
                    seen[positions[at]] += 1
        for at in range(offsets[start], offsets[start + 1]):
            if seen[positions[at]] == stop - start:
                first[found], second[found] = owners[start], positions[at]
                found += 1
        for row in range(start, stop):
            for at in range(offsets[row], offsets[row + 1]):
                seen[positions[at]] = 0
        start = stop
    return first[:found], second[:found]
