"""Bitmaps of events against rows of the table."""

from __future__ import annotations

import numpy as np

from headgate.jit import kernel, popcount


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
        total += popcount(grb[w] & bits[row, w])
    return total
