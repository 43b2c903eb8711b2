"""A plain kernel counts no references to arrays, and cannot make one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import config
from numba.core.caching import NullCache
from numba.core.errors import NumbaError

from headgate.jit import kernel, plain_kernel
from headgate.matching.keyed.kernels.match import match

pytestmark = pytest.mark.skipif(
    bool(config.DISABLE_JIT),  # type: ignore[attr-defined]
    reason="nothing is compiled with Numba's JIT off",
)

COUNTING = "NRT_incref"


class Group(NamedTuple):
    """Arrays that are given to an inlined function together."""

    numbers: Any
    weights: Any


def sum_up(group: Any, order: Any) -> Any:
    """Swap the arrays after each step, so that the optimiser cannot cancel the counting."""
    total, this, other = 0.0, group.numbers, group.weights
    for i in order:
        total += this[i]
        this, other = other, this
    return total


def make_array(count: int) -> Any:
    return np.zeros(count)


def read_code(compiled: Any) -> str:
    (code,) = compiled.inspect_llvm().values()
    return str(code)


def test_no_reference_is_counted() -> None:
    group = Group(np.arange(3.0), np.arange(3.0))
    counting, plain = kernel(sum_up), plain_kernel(sum_up)
    # never from the cache, which keeps no code that can be read
    counting._cache = plain._cache = NullCache()
    assert counting(group, np.arange(3)) == plain(group, np.arange(3)) == 3.0
    # else this test would pass even if Numba renamed what it looks for
    assert COUNTING in read_code(counting)
    assert COUNTING not in read_code(plain)


def test_the_match_counts_none() -> None:
    assert match.targetoptions["_nrt"] is False


def test_an_array_cannot_be_made() -> None:
    with pytest.raises(NumbaError, match="array passed into the function"):
        plain_kernel(make_array)(3)
