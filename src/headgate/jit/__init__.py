"""The kernel decorators, processor intrinsics, and the cache of compiled kernels.

This package imports Numba: import it only from modules that are themselves imported on use.
"""

from __future__ import annotations

from headgate.jit.cache import inlined_kernel, kernel, plain_kernel, warn_before_compiling
from headgate.jit.intrinsics import (
    copy_lanes,
    load_unchecked,
    lowest_bit,
    popcount,
    prefetch,
    store_unchecked,
)

__all__ = [
    "copy_lanes",
    "inlined_kernel",
    "kernel",
    "load_unchecked",
    "lowest_bit",
    "plain_kernel",
    "popcount",
    "prefetch",
    "store_unchecked",
    "warn_before_compiling",
]
