"""The kernel decorators, processor intrinsics, and the cache of compiled kernels.

This package imports Numba: import it only from modules that are themselves imported on use.
"""

from __future__ import annotations

from headgate.jit.cache import inlined_kernel, kernel, plain_kernel, warn_before_compiling
from headgate.jit.intrinsics import (
    copy_lanes,
    load_byte_at,
    load_int8_at,
    load_int16_at,
    load_int32_at,
    load_int64_at,
    load_unchecked,
    load_word_at,
    lowest_bit,
    popcount,
    prefetch,
    prefetch_at,
    store_unchecked,
)

__all__ = [
    "copy_lanes",
    "inlined_kernel",
    "kernel",
    "load_byte_at",
    "load_int8_at",
    "load_int16_at",
    "load_int32_at",
    "load_int64_at",
    "load_unchecked",
    "load_word_at",
    "lowest_bit",
    "plain_kernel",
    "popcount",
    "prefetch",
    "prefetch_at",
    "store_unchecked",
    "warn_before_compiling",
]
