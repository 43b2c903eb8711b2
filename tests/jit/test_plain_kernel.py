"""A plain kernel counts no references to arrays, and cannot make one."""

from __future__ import annotations

import ast
import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import config
from numba.core.caching import NullCache
from numba.core.errors import NumbaError

import headgate
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


def test_a_kernel_counts_whoever_calls_it() -> None:
    """Numba compiles a function that leaves it open as the one that calls it first."""
    assert kernel(make_array).targetoptions["_nrt"] is True


def find_kernels(module: ModuleType) -> Iterator[tuple[ast.FunctionDef, str]]:
    """The functions of a module that are compiled, each with the name of its decorator."""
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Name) and decorator.id.endswith("kernel"):
                    yield node, decorator.id


def find_calls(function: ast.FunctionDef) -> set[str]:
    return {
        node.func.id
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }


# counting kernels that plain ones may call, since they return no more than a number
RETURN_NO_ARRAY = {
    "are_related",
    "check_cover",
    "detach_partition",
    "dissolve_partition",
    "merge_halves",
    "pad_count",
    "partition_leaf",
    "reinsert_expressions",
}


def test_plain_kernels_get_no_arrays() -> None:
    """What a counting kernel returns to one that counts nothing would never be freed."""
    names = [m.name for m in pkgutil.walk_packages(headgate.__path__, "headgate.")]
    modules = [name for name in names if ".kernels" in name]
    called, plain_count = set[str](), 0
    # by package: kernels of two packages may have one name
    for package in {name.partition(".kernels")[0] for name in modules}:
        own = [import_module(n) for n in modules if n.partition(".kernels")[0] == package]
        kernels = [pair for module in own for pair in find_kernels(module)]
        counting = {function.name for function, decorator in kernels if decorator == "kernel"}
        plain = [function for function, decorator in kernels if decorator == "plain_kernel"]
        plain_count += len(plain)
        called |= {name for function in plain for name in find_calls(function) & counting}
    assert plain_count > 50
    assert called <= RETURN_NO_ARRAY


def test_an_array_cannot_be_made() -> None:
    with pytest.raises(NumbaError, match="array passed into the function"):
        plain_kernel(make_array)(3)
