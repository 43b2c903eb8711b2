"""Bitmaps of events against rows of the table."""

from __future__ import annotations

import numpy as np

from headgate.matching.keyed.compiled import kernel, part_of_kernel


@part_of_kernel
def ones(word):
    """The number of bits that are set."""
    one = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    two = (one & np.uint64(0x3333333333333333)) + (
        (one >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    four = (two + (two >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((four * np.uint64(0x0101010101010101)) >> np.uint64(56))


@kernel
def and_row(grb, bits, row):
    """AND a row into a bitmap; is anything left?"""
    left = np.uint64(0)
    for w in range(len(grb)):
        grb[w] &= bits[row, w]
        left |= grb[w]
    return left != 0


@kernel
def meets(grb, bits, row):
    """Would anything be left?"""
    w = 0
    while w < len(grb) and not grb[w] & bits[row, w]:
        w += 1
    return w < len(grb)


@kernel
def left_in(grb, bits, row):
    """How many bits would be left?"""
    total = np.int64(0)
    for w in range(len(grb)):
        total += ones(grb[w] & bits[row, w])
    return total
