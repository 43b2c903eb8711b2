"""Many integers in a table, in one pass."""

from __future__ import annotations

import numpy as np

from headgate.jit import kernel


@kernel
def looked_up(values, least, table):
    """What the table has for each value; its first entry is for `least` and all below it, its last
    for the greatest and all above."""
    found, most = np.empty(len(values), table.dtype), np.int64(least + len(table) - 1)
    for i in range(len(values)):
        value = np.int64(values[i])
        value = least if value < least else most if value > most else value
        found[i] = table[value - least]
    return found
