"""Texts out of a block of lines, as Arrow holds them."""

import numpy as np

from headgate.jit import kernel, load_unchecked


@kernel
def copy_texts(data, begins, lengths, valid, offsets):
    """Return the texts of a column one after the other, and write where each of them starts.

    `offsets` has one item more than the column has rows: the end of the last text.
    """
    total = np.int64(0)
    for row in range(len(begins)):
        offsets[row] = total
        if valid[row]:
            total += lengths[row]
    offsets[len(begins)] = total
    texts = np.empty(total, np.uint8)
    for row in range(len(begins)):
        # Byte by byte: texts are short, and a slice for each of them was slower.
        to = np.int64(offsets[row])
        begin = begins[row]
        for place in range(np.int64(offsets[row + 1]) - to):
            texts[to + place] = load_unchecked(data, begin + place)
    return texts
