"""Numbers put in order through a bitmap, where sorting would take longer than matching did."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from headgate.matching.keyed.compiled import kernel

FEW = 48  # numbers that are sorted sooner than a bitmap is read


@intrinsic
def lowest_bit(typing_context: Any, word: Any) -> Any:
    """The place of the lowest bit that is set in a word that is not 0: one instruction."""
    del typing_context, word

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


@kernel
def put_in_order(numbers, begin, end, bitmap):
    """Sort distinct numbers of `numbers[begin:end]`; `bitmap` is empty before and after."""
    if end - begin <= FEW:
        numbers[begin:end].sort()
        return
    least, most = len(bitmap), -1
    for i in range(begin, end):
        word = numbers[i] >> 6
        bitmap[word] |= np.uint64(1) << np.uint64(numbers[i] & 63)
        least, most = min(least, word), max(most, word)
    place = begin
    for word in range(least, most + 1):
        bits = bitmap[word]
        if bits != 0:
            bitmap[word] = 0
            base = word << 6
            while bits != 0:
                numbers[place] = base + lowest_bit(bits)
                place += 1
                bits &= bits - np.uint64(1)
