"""Columns of Arrow as they lie in memory: validity bits and values, read from their addresses.

A batch is handed over by Arrow's C data interface in one call, whatever the number of its columns
(https://arrow.apache.org/docs/format/CDataInterface.html). `read_layout` notes where the buffers of
the columns are; the other kernels read there, never outside of what the lengths and offsets say,
since a buffer that comes from elsewhere need not be padded.
"""

import numpy as np

from headgate.jit import (
    inlined_kernel,
    load_byte_at,
    load_int8_at,
    load_int16_at,
    load_int32_at,
    load_int64_at,
    load_word_at,
    lowest_bit,
    plain_kernel,
)
from headgate.schema.types import INFINITY_RANK, MAGNITUDE, NAN_RANK

# how the values of a column are written
INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32 = 0, 1, 2, 3, 4, 5, 6
BIT, DOUBLE, DECIMAL = 7, 8, 9  # of a decimal of 128 bits, the low half: up to 18 digits
WIDTHS = np.array([1, 2, 4, 8, 1, 2, 4, 0, 8, 16])  # in bytes, by form; less than one for a bit

# what is known of a column: its NULLs, the place of its first value, and two addresses
NULLS, OFFSET, VALIDITY, VALUES = 0, 1, 2, 3
LAYOUT_FIELDS = 4

# where the fields of a `struct ArrowArray` lie, in bytes
NULL_COUNT_AT, OFFSET_AT, BUFFERS_AT, CHILDREN_AT = 8, 16, 40, 48
POINTER = 8


@plain_kernel
def read_layout(address, children, layout):
    """Note where the columns with these numbers lie, of the batch whose struct is at an address.

    `layout` has a row for each of them, with the fields above.
    """
    first, pointers = load_int64_at(address + OFFSET_AT), load_int64_at(address + CHILDREN_AT)
    for k in range(len(children)):
        child = load_int64_at(pointers + POINTER * children[k])
        buffers = load_int64_at(child + BUFFERS_AT)
        layout[k, NULLS] = load_int64_at(child + NULL_COUNT_AT)
        layout[k, OFFSET] = first + load_int64_at(child + OFFSET_AT)
        layout[k, VALIDITY] = load_int64_at(buffers)
        layout[k, VALUES] = load_int64_at(buffers + POINTER)
        # without a bitmap nothing is NULL
        if layout[k, VALIDITY] == 0:
            layout[k, NULLS] = 0


@inlined_kernel
def load_bits(address, first, count):
    """Return `count` bits, at most 64, from bit number `first` on; no byte is read behind them."""
    place = address + (first >> 3)
    shift = np.uint64(first & 7)
    size = (count + (first & 7) + 7) >> 3  # bytes that hold these bits: up to nine
    word = np.uint64(0)
    if size >= 8:
        word = load_word_at(place) >> shift
        if size == 9:
            word |= load_byte_at(place + 8) << (np.uint64(64) - shift)
    else:
        for i in range(size):
            word |= load_byte_at(place + i) << np.uint64(8 * i)
        word >>= shift
    if count < 64:
        word &= (np.uint64(1) << np.uint64(count)) - np.uint64(1)
    return word


@inlined_kernel
def load_ordinal(values, place, form):
    """Return the ordinal of the value at a place of a column, which is not NULL."""
    if form == INT32:
        ordinal = load_int32_at(values + 4 * place)
    elif form == INT64:
        ordinal = load_int64_at(values + 8 * place)
    elif form == DOUBLE:
        # as `columns.rank_doubles` does, on the bits of the double
        ordinal = load_int64_at(values + 8 * place)
        magnitude = ordinal & MAGNITUDE
        if magnitude > INFINITY_RANK:
            ordinal = np.int64(NAN_RANK)
        elif ordinal < 0:
            ordinal = -magnitude
    elif form == BIT:
        ordinal = np.int64(
            (load_byte_at(values + (place >> 3)) >> np.uint64(place & 7)) & np.uint64(1)
        )
    elif form == DECIMAL:
        ordinal = load_int64_at(values + 16 * place)
    elif form == INT16:
        ordinal = load_int16_at(values + 2 * place)
    elif form == INT8:
        ordinal = load_int8_at(values + place)
    elif form == UINT32:
        ordinal = load_int32_at(values + 4 * place) & 0xFFFFFFFF
    elif form == UINT16:
        ordinal = load_int16_at(values + 2 * place) & 0xFFFF
    else:
        ordinal = load_int8_at(values + place) & 0xFF
    return ordinal


@plain_kernel
def are_within(layout, rows, forms, required, low, high):
    """Return whether all values of some columns are within bounds, and none that is required NULL.

    All arrays have an item for each of these columns.
    """
    for k in range(len(layout)):
        nulls, offset = layout[k, NULLS], layout[k, OFFSET]
        validity, values = layout[k, VALIDITY], layout[k, VALUES]
        form, least, most = forms[k], low[k], high[k]
        if nulls and required[k]:
            return False
        if nulls == rows:
            continue
        # as many rows at a time as a word has bits; only those that are not NULL have a value
        for begin in range(0, rows, 64):
            count = min(np.int64(64), rows - begin)
            if nulls == 0:
                for row in range(begin, begin + count):
                    ordinal = load_ordinal(values, offset + row, form)
                    if ordinal < least or ordinal > most:
                        return False
                continue
            word = load_bits(validity, offset + begin, count)
            while word != 0:
                row = begin + lowest_bit(word)
                word &= word - np.uint64(1)
                ordinal = load_ordinal(values, offset + row, form)
                if ordinal < least or ordinal > most:
                    return False
    return True
