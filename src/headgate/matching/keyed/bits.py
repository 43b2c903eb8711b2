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
def put_in_order(numbers, begin, end, bitmap, span, alive):
    """Put distinct numbers into `numbers[begin:]`, ascending; gives where they end.

    They are those of `numbers[begin:end]` and those whose bits are set in `bitmap` between the
    words of `span`, without those whose bit in `alive` is 0. The bitmap is empty afterwards.
    """
    place = begin
    least, most = span[0], span[1]
    if end - begin <= FEW and least > most:
        numbers[begin:end].sort()
        for i in range(begin, end):
            number = numbers[i]
            if alive[number >> 6] >> np.uint64(number & 63) & np.uint64(1):
                numbers[place] = number
                place += 1
        return place
    for i in range(begin, end):
        word = numbers[i] >> 6
        bitmap[word] |= np.uint64(1) << np.uint64(numbers[i] & 63)
        least, most = min(least, word), max(most, word)
    for word in range(least, most + 1):
        if bitmap[word] != 0:
            bits = bitmap[word] & alive[word]
            bitmap[word] = 0
            base = word << 6
            while bits != 0:
                numbers[place] = base + lowest_bit(bits)
                place += 1
                bits &= bits - np.uint64(1)
    return place
