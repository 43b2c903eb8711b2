"""Kernels that number values: the cell of each is one more than the cuts that are not above it.

Cuts lie in buckets of equal width, and `first[b]` of them in those before bucket b. So a value's
bucket leaves few cuts to compare it with: `steps` halvings, most often of nothing. Bucket 0 is for
what lies below all cuts, where values are many; so the processor can foresee how a comparison ends,
which takes longer than to make it. `cuts` has a filler in front: a search may look one place too
low.
"""

from __future__ import annotations

import numpy as np

from headgate.jit import inlined_kernel, kernel, load_unchecked


@inlined_kernel
def count_cuts_up_to(cuts, first, bucket, steps, value):
    """How many cuts are not above a value of this bucket."""
    base = np.int64(load_unchecked(first, bucket))
    left = np.int64(load_unchecked(first, bucket + 1)) - base
    for _ in range(steps):
        half = (left + 1) >> 1
        base += half if load_unchecked(cuts, base + half) <= value else 0
        left -= half
    return base


@inlined_kernel
def bucket_of_integer(value, least, most, shift):
    """The bucket of a whole number, where cuts are from `least` to `most`."""
    inside = min(max(value, least), most)
    return np.int64(value >= least) * (1 + (inside >> shift) - (least >> shift))


@inlined_kernel
def bucket_of_double(value, least, scale, last):
    """The bucket of a double that is not NaN."""
    place = (value - least) * scale + 1.0
    place = place if place > 0 else 0.0
    return np.int64(place if place < last else last)


@kernel
def bucket_integers(values, least, most, shift):
    """The bucket of each value."""
    found = np.empty(len(values), np.int64)
    for i in range(len(values)):
        found[i] = bucket_of_integer(np.int64(values[i]), least, most, shift)
    return found


@kernel
def bucket_doubles(values, least, scale, last):
    """The bucket of each value."""
    found = np.empty(len(values), np.int64)
    for i in range(len(values)):
        found[i] = bucket_of_double(values[i], least, scale, last)
    return found


@kernel
def encode_integers(values, cuts, first, steps, least, most, shift, cells):
    """The cells of whole numbers; of those that are NULL, any."""
    for i in range(len(values)):
        value = np.int64(values[i])
        bucket = bucket_of_integer(value, least, most, shift)
        cells[i] = count_cuts_up_to(cuts, first, bucket, steps, value) + 1


@kernel
def encode_doubles(values, cuts, first, steps, least, scale, last, nan, cells):
    """The cells of doubles; NaN has one of its own, or shares the last."""
    for i in range(len(values)):
        value = values[i]
        bucket = bucket_of_double(value, least, scale, last)
        cell = count_cuts_up_to(cuts, first, bucket, steps, value) + 1
        cells[i] = nan if np.isnan(value) else cell
