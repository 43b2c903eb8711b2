"""What a processor can do and Numba has no word for.

With Numba's JIT off (`NUMBA_DISABLE_JIT=1`) the kernels are plain Python, and so is this.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import config, types
from numba.core import cgutils as code_generation
from numba.extending import intrinsic

_llvm: Any = code_generation
_settings: Any = config


@intrinsic
def _lowest_bit(typing_context: Any, word: Any) -> Any:
    del typing_context, word

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


@intrinsic
def _ones(typing_context: Any, word: Any) -> Any:
    del typing_context, word

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


def _pointer(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Where an item of an array lies; its place is taken as it is."""
    array = signature.args[0]
    structure = context.make_array(array)(context, builder, arguments[0])
    return _llvm.get_item_pointer(
        context, builder, array, structure, [arguments[1]], wraparound=False
    )


@intrinsic
def _prefetch(typing_context: Any, array: Any, place: Any) -> Any:
    del typing_context

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature, arguments)
        number = ir.IntType(32)
        byte_pointer = ir.IntType(8).as_pointer()
        called = _llvm.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [byte_pointer, number, number, number]),
            "llvm.prefetch.p0",
        )
        to_read, keep, data = (ir.Constant(number, value) for value in (0, 3, 1))
        builder.call(called, [builder.bitcast(pointer, byte_pointer), to_read, keep, data])
        return context.get_dummy_value()

    return types.void(array, place), generate


@intrinsic
def _unchecked(typing_context: Any, array: Any, place: Any) -> Any:
    del typing_context

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature, arguments)
        return context.unpack_value(builder, signature.args[0].dtype, pointer)

    return array.dtype(array, place), generate


def _plain_unchecked(array: Any, place: Any) -> Any:
    return array[place]


def _plain_lowest_bit(word: Any) -> int:
    number = int(word)
    return (number & -number).bit_length() - 1


def _plain_ones(word: Any) -> int:
    return int(word).bit_count()


def _plain_prefetch(array: Any, place: Any) -> None:
    del array, place


_plain = bool(_settings.DISABLE_JIT)

# The place of the lowest bit that is set in a word that is not 0: one instruction.
lowest_bit: Any = _plain_lowest_bit if _plain else _lowest_bit

# How many bits of a word are set: one instruction.
ones: Any = _plain_ones if _plain else _ones

# Begin to load the cache line of an array's item, which need not exist.
prefetch: Any = _plain_prefetch if _plain else _prefetch

# An item of an array at a place that is known not to be negative.
unchecked: Any = _plain_unchecked if _plain else _unchecked
