"""Processor instructions that Numba does not offer: bits, prefetch, loads and stores unchecked.

With Numba's JIT off (`NUMBA_DISABLE_JIT=1`) the kernels are plain Python, and so are these.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

_cgutils: Any = cgutils
_numba_config: Any = config


@intrinsic
def _lowest_bit(typing_context: Any, word: Any) -> Any:
    del typing_context, word

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


@intrinsic
def _popcount(typing_context: Any, word: Any) -> Any:
    del typing_context, word

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


def _call_prefetch(builder: Any, byte_pointer: Any) -> None:
    int32 = ir.IntType(32)
    llvm_prefetch = _cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(ir.VoidType(), [byte_pointer.type, int32, int32, int32]),
        "llvm.prefetch.p0",
    )
    # for reading, with high locality, into the data cache
    read, locality, data_cache = (ir.Constant(int32, value) for value in (0, 3, 1))
    builder.call(llvm_prefetch, [byte_pointer, read, locality, data_cache])


def _pointer(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Return a pointer to an item of an array, without checking or wrapping its index."""
    array = signature.args[0]
    structure = context.make_array(array)(context, builder, arguments[0])
    return _cgutils.get_item_pointer(
        context, builder, array, structure, [arguments[1]], wraparound=False
    )


@intrinsic
def _prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    del typing_context

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature, arguments)
        _call_prefetch(builder, builder.bitcast(pointer, ir.IntType(8).as_pointer()))
        return context.get_dummy_value()

    return types.void(array, index), generate


@intrinsic
def _prefetch_at(typing_context: Any, address: Any) -> Any:
    del typing_context, address

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del signature
        _call_prefetch(builder, builder.inttoptr(arguments[0], ir.IntType(8).as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64), generate


@intrinsic
def _load_unchecked(typing_context: Any, array: Any, index: Any) -> Any:
    del typing_context

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature, arguments)
        return context.unpack_value(builder, signature.args[0].dtype, pointer)

    return array.dtype(array, index), generate


LANES, _VECTOR_LANES = 64, 8  # numbers that `copy_lanes` copies, in all and at a time


@intrinsic
def _store_unchecked(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    del typing_context

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature, arguments)
        context.pack_value(builder, signature.args[0].dtype, arguments[2], pointer)
        return context.get_dummy_value()

    del value  # it is converted to what the array holds
    return types.void(array, index, array.dtype), generate


@intrinsic
def _copy_lanes(typing_context: Any, target: Any, to: Any, source: Any, begin: Any) -> Any:
    del typing_context

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source_type = signature.args[2]
        first = _pointer(context, builder, signature, arguments)
        second = _cgutils.get_item_pointer(
            context,
            builder,
            source_type,
            context.make_array(source_type)(context, builder, arguments[2]),
            [arguments[3]],
            wraparound=False,
        )
        # eight vectors of eight lanes, aligned like the items themselves
        vector = ir.VectorType(ir.IntType(32), _VECTOR_LANES)
        for lane in range(0, LANES, _VECTOR_LANES):
            offset = [ir.Constant(ir.IntType(64), lane)]
            read = builder.bitcast(builder.gep(second, offset), vector.as_pointer())
            write = builder.bitcast(builder.gep(first, offset), vector.as_pointer())
            builder.store(builder.load(read, align=4), write, align=4)
        return context.get_dummy_value()

    return types.void(target, to, source, begin), generate


def _make_loader(bits: int, result: Any) -> Any:
    """Return an intrinsic that loads an integer of so many bits, on which no alignment is asked."""

    @intrinsic
    def load(typing_context: Any, address: Any) -> Any:
        del typing_context, address

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            del context, signature
            stored, wide = ir.IntType(bits), ir.IntType(64)
            pointer = builder.inttoptr(arguments[0], stored.as_pointer())
            value = builder.load(pointer, align=1)
            if bits == 64:
                return value
            return builder.sext(value, wide) if result.signed else builder.zext(value, wide)

        return result(types.int64), generate

    return load


def _make_plain_loader(integer: Any, result: Any) -> Callable[[Any], Any]:
    return lambda address: result(integer.from_address(int(address)).value)


def _plain_load_unchecked(array: Any, index: Any) -> Any:
    return array[index]


def _plain_store_unchecked(array: Any, index: Any, value: Any) -> None:
    array[index] = value


def _plain_copy_lanes(target: Any, to: Any, source: Any, begin: Any) -> None:
    target[to : to + LANES] = source[begin : begin + LANES]


def _plain_lowest_bit(word: Any) -> int:
    bits = int(word)
    return (bits & -bits).bit_length() - 1


def _plain_popcount(word: Any) -> int:
    return int(word).bit_count()


def _plain_prefetch(array: Any, index: Any) -> None:
    del array, index


def _plain_prefetch_at(address: Any) -> None:
    del address


_is_plain = bool(_numba_config.DISABLE_JIT)

# Return the position of the lowest set bit of a word that is not 0: one instruction.
lowest_bit: Any = _plain_lowest_bit if _is_plain else _lowest_bit

# Return the number of set bits of a word: one instruction.
popcount: Any = _plain_popcount if _is_plain else _popcount

# Begin to load the cache line of an array's item. The index may lie outside of the array.
prefetch: Any = _plain_prefetch if _is_plain else _prefetch

# Begin to load the cache line at an address, which may be any number.
prefetch_at: Any = _plain_prefetch_at if _is_plain else _prefetch_at

# Return the item of an array at an index that is known to be valid and not negative.
load_unchecked: Any = _plain_load_unchecked if _is_plain else _load_unchecked

# Write an item of an array at an index that is known to be valid and not negative.
store_unchecked: Any = _plain_store_unchecked if _is_plain else _store_unchecked

# Copy 64 numbers of 32 bits from one array to another, both of which must have room for them.
copy_lanes: Any = _plain_copy_lanes if _is_plain else _copy_lanes

# Return the integer that lies at an address, as an int64 or, for bytes and words of bits, a uint64.
load_int64_at: Any
load_int32_at: Any
load_int16_at: Any
load_int8_at: Any
load_word_at: Any
load_byte_at: Any
if _is_plain:
    load_int64_at = _make_plain_loader(ctypes.c_int64, np.int64)
    load_int32_at = _make_plain_loader(ctypes.c_int32, np.int64)
    load_int16_at = _make_plain_loader(ctypes.c_int16, np.int64)
    load_int8_at = _make_plain_loader(ctypes.c_int8, np.int64)
    load_word_at = _make_plain_loader(ctypes.c_uint64, np.uint64)
    load_byte_at = _make_plain_loader(ctypes.c_uint8, np.uint64)
else:
    load_int64_at = _make_loader(64, types.int64)
    load_int32_at = _make_loader(32, types.int64)
    load_int16_at = _make_loader(16, types.int64)
    load_int8_at = _make_loader(8, types.int64)
    load_word_at = _make_loader(64, types.uint64)
    load_byte_at = _make_loader(8, types.uint64)
