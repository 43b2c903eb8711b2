"""Programs that need not be run to their end."""

from __future__ import annotations

import numpy as np

from headgate.jit import kernel


@kernel
def deciding(offsets, program):
    """By entry: is it the end of a part of an AND that is the whole condition?

    Where such a part is not TRUE, the condition is not either.
    """
    found = np.zeros(len(program), np.bool_)
    longest = 0
    for q in range(len(offsets) - 1):
        longest = max(longest, offsets[q + 1] - offsets[q])
    first = np.empty(longest, np.int64)  # by entry: where what it ends begins
    for q in range(len(offsets) - 1):
        begin, size = offsets[q], offsets[q + 1] - offsets[q]
        for i in range(size):
            entry = program[begin + i]
            first[i] = i if entry >= 0 else first[i - 1]
            if entry <= -16:
                child = i - 1
                for _ in range((-16 - entry) // 2):
                    first[i] = first[child]
                    child = first[child] - 1
        root = program[offsets[q + 1] - 1] if size else 0
        if root <= -16 and root % 2 == 0:
            child = size - 2
            for _ in range((-16 - root) // 2):
                found[begin + child] = True
                child = first[child] - 1
    return found
