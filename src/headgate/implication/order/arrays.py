"""Classes as arrays: their hulls, where they have their bits, and which products contain which.

A product does not contain another if in some column it begins later, or ends earlier, or has a side
where the other has none. Sorted by where they begin in a column, the products that begin later are
a prefix; its bitmap is kept at every so many of them, and the others are set one by one. Which
products have a side in a range of columns is read off a tree of ORs. So 100,000 products take
100,000²/64 words for each side of a product, in all, whatever the products are.

These bitmaps see the lowest and the highest cell of a side. Where sides of a column have gaps and
it has few cells, there is one bitmap for each cell instead; where it has many, pairs are compared.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headgate.implication.order.classes import QueryClass, QueryClasses
from headgate.implication.order.hull import ALL_ROWS
from headgate.implication.order.kernels.supersets import (
    find_sides_without,
    set_bits,
    set_bits_by_cell,
    set_bits_in_rows,
)
from headgate.implication.order.products import Numbers, Products, build_products

MIN_PREFIX_STEP = 512  # products between two of the prefixes that are kept as bitmaps
MAX_BITMAP_BYTES = 1 << 28  # of all sides, before steps become longer
MAX_CELL_BITMAPS = 64  # of a column
MAX_DIGITS = 7  # binary digits of a column's number by which free columns are distinguished
VOLUME_SLACK = 1e-9  # volumes are sums of rounded numbers

Words = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]


class SupersetTable(NamedTuple):
    """What a kernel needs to find the products that contain a hull.

    Hull j is a product with bit j if j < `size`. Products that begin later than side s does are the
    bits in row `row[0, s]` of `kept`, none if that is -1, and those in `order` from `start[0, s]`
    up to before `stop[0, s]`. `row[1]`, … are about products that end earlier. If `cells[c]` is not
    -1, then the products that have a side in column c without cell x are row `cells[c] + x` of
    `kept`. `trees[0]` is about all sides, `trees[f]` about sides without the cell `free[f, c]`.
    Products with the bits `gaps` have a side of several ranges that no cell bitmap describes.
    """

    size: int
    hulls: Products
    row: Numbers
    start: Numbers
    stop: Numbers
    order: Numbers
    cells: Numbers
    kept: Words
    trees: Words
    free: Numbers
    gaps: Words


def build_superset_table(hulls: Products, size: int, free: Numbers) -> SupersetTable:
    """Build the table; the first `size` hulls are products that may contain the others."""
    words = (size + 63) // 64
    owner = hulls.owner
    has_bit = owner < size
    step = MIN_PREFIX_STEP
    # Two bitmaps of `words` words for every `step` sides: longer steps until they fit.
    while 16 * words * (has_bit.sum() // step + hulls.columns) > MAX_BITMAP_BYTES and step < size:
        step *= 2
    low, high = hulls.low, hulls.high
    # Columns with few cells, and gaps in a side, have a bitmap for each cell.
    has_gaps = has_bit & (hulls.last - hulls.first > 1)
    by_cell = hulls.top <= MAX_CELL_BITMAPS
    by_cell &= np.bincount(hulls.column[has_gaps], minlength=hulls.columns) > 0
    # (2, sides): by end and side, the bitmap row and the rest of the order behind it.
    row, start, stop = (np.zeros((2, len(owner)), np.int64) for _ in range(3))
    row -= 1
    orders: list[Numbers] = []
    rows = places = 0
    by_column = _group_by_column(hulls)
    # All others: for both ends of each column, products in the order of that end. `before` counts
    # for each side the products that rule themselves out.
    for end, cell in enumerate((-low, high)):
        for column, sides in enumerate(by_column):
            if by_cell[column]:
                continue
            entries = sides[has_bit[sides]]
            entries = entries[np.argsort(cell[entries], kind="stable")]
            before = np.searchsorted(cell[entries], cell[sides])
            row[end, sides] = np.where(before < step, -1, rows + before // step)
            start[end, sides] = places + before // step * step
            stop[end, sides] = places + before
            orders.append(owner[entries])
            rows += len(entries) // step + 1
            places += len(entries)
    cells = np.full(hulls.columns, -1, np.int64)
    kept = np.zeros((rows + int(hulls.top[by_cell].sum()), words), np.uint64)
    _fill_prefixes(kept, orders, step)
    for column in np.flatnonzero(by_cell).tolist():
        cells[column] = rows
        sides = by_column[column]
        set_bits_by_cell(kept, rows, hulls, sides[has_bit[sides]], owner, hulls.top[column])
        rows += hulls.top[column]
    gaps = np.zeros(words, np.uint64)
    set_bits(gaps, owner[has_gaps & ~by_cell[hulls.column]])
    return SupersetTable(
        size,
        hulls,
        row,
        start,
        stop,
        np.concatenate([np.zeros(0, np.int64), *orders]),
        cells,
        kept,
        _build_trees(hulls, owner, has_bit, free, words),
        free,
        gaps,
    )


def _group_by_column(hulls: Products) -> list[Numbers]:
    """Return the sides of each column."""
    if not hulls.columns:
        return []
    # Sides sorted by column, split where the column changes.
    order = np.argsort(hulls.column, kind="stable")
    return np.split(order, np.searchsorted(hulls.column[order], np.arange(1, hulls.columns)))


def _fill_prefixes(kept: Words, orders: list[Numbers], step: int) -> None:
    """Write the bitmaps of the first 0, `step`, 2 · `step`, … of each order."""
    at = 0
    for order in orders:
        for start in range(0, len(order) + 1, step):
            # Each bitmap is the one before it and the next `step` products.
            if start:
                kept[at] = kept[at - 1]
                set_bits(kept[at], order[start - step : start])
            at += 1


def _build_trees(
    hulls: Products, owner: Numbers, has_bit: Flags, free: Numbers, words: int
) -> Words:
    """Build a tree of ORs over columns for each row of `free`: leaves first, then their parents."""
    trees = np.zeros((len(free), 2 * hulls.columns, words), np.uint64)
    for tree, cells in zip(trees, free, strict=True):
        chosen = np.flatnonzero(has_bit & find_sides_without(hulls, cells))
        set_bits_in_rows(tree, hulls.columns + hulls.column[chosen], owner[chosen])
        # Node n is the OR of 2n and 2n + 1; leaves begin at `columns`.
        for node in range(hulls.columns - 1, 0, -1):
            np.bitwise_or(tree[2 * node], tree[2 * node + 1], out=tree[node])
    return trees


class ClassArrays(NamedTuple):
    """`classes[i]` has bit i; None where the bit is not in use.

    `corners[h]` are two rows of `layout.outer[h]`, as hulls.
    """

    classes: list[QueryClass | None]
    table: SupersetTable
    layout: Layout
    corners: Numbers


def build_arrays(grouped: QueryClasses) -> ClassArrays:
    """Return the arrays of classes."""
    parts = [part for query_class in grouped.classes for part in query_class.parts]
    sizes = [len(query_class.parts) for query_class in grouped.classes]
    owner = np.repeat(np.arange(len(sizes)), sizes)
    # Number all hulls: 0 is all rows, then the parts.
    every = build_products([ALL_ROWS, *parts], grouped.attributes)
    own = np.arange(1, len(parts) + 1)
    volumes = every.log_volume[own]
    # Give classes their bits, products first, small before large; then the parts theirs. Opaque
    # classes stand among the unions: like these they may equal another class.
    order, counts = sort_classes(volumes, owner, len(grouped.classes))
    opaque = np.array([query_class.is_opaque for query_class in grouped.classes], np.bool_)
    counts = np.where(opaque, 2, counts)
    order = order[np.argsort(counts[order] > 1, kind="stable")]
    places, tables = assign_bits(counts[order])
    place_of = np.empty_like(places)
    place_of[order] = places
    place = place_of[owner]
    bits = _assign_part_bits(place, owner, tables)
    words, all_words = tables[-1]
    size = 64 * all_words
    # Bits that no part has keep hull 0, all rows; `layout.real` masks them.
    hull_of_bit = np.zeros(size, np.int64)
    hull_of_bit[bits] = own
    # Parts in the order of their class's bit.
    by_place = np.argsort(place, kind="stable")
    offsets = np.searchsorted(place[by_place], np.arange(64 * words + 1))
    products = int((counts == 1).sum())
    unions = (products + 63) // 64
    layout = Layout(
        offsets,
        bits[by_place],
        _pack_bits(bits, all_words),
        np.concatenate([np.arange(first, words) for first, _ in tables[:-1]]),
        words,
        unions,
        _find_first_words(volumes, place, places[:products], 64 * words),
    )
    # The volume of an opaque class is not known.
    layout.begin[place_of[opaque]] = 0
    # Hulls in the order of their bits, then the corners of all parts.
    base = every.take(hull_of_bit)
    corners = np.full((len(parts), 2), -1, np.int64)
    if unions < words:
        # Of each part the lowest and the highest corner, as hulls behind all others.
        rows = every.take(own[by_place])
        first = size + np.arange(len(parts))
        corners = np.stack((first, first + len(parts)), axis=1)
        base = base.concat(rows.corners(0)).concat(rows.corners(1))
    table = build_superset_table(base, size, _choose_free_cells(every, unions < words))
    classes: list[QueryClass | None] = [None] * (64 * words)
    for query_class, at in zip(grouped.classes, place_of.tolist(), strict=True):
        classes[at] = query_class
    return ClassArrays(classes, table, layout, corners)


def _assign_part_bits(place: Numbers, owner: Numbers, tables: list[tuple[int, int]]) -> Numbers:
    """Return the bit of each part: the k-th part of a class has its bit in table k."""
    first = np.searchsorted(owner, owner)
    shifts = np.array([64 * (begin - first) for first, begin in tables[:-1]], np.int64)
    return place + shifts[np.arange(len(owner)) - first] if len(owner) else place


def _pack_bits(places: Numbers, words: int) -> Words:
    flags = np.zeros(64 * words, np.bool_)
    flags[places] = True
    return np.packbits(flags, bitorder="little").view(np.uint64)


def _find_first_words(
    volumes: npt.NDArray[np.float64], place: Numbers, product_places: Numbers, count: int
) -> Numbers:
    """Return the first word in which a product can contain the class: one that is not smaller."""
    largest = np.full(count, -np.inf)
    np.maximum.at(largest, place, volumes)
    return np.searchsorted(largest[product_places], largest - VOLUME_SLACK) >> 6


def _choose_free_cells(every: Products, with_unions: bool) -> Numbers:
    """Return cells for columns without a side: none, the lowest, the highest, then either.

    Of any two columns the one has its lowest cell and the other its highest in some row: columns
    are numbered, and each binary digit tells some apart.
    """
    lowest, highest = every.bottom, every.top - 1
    rows = [np.full(every.columns, -1), lowest, highest]
    numbers = np.arange(every.columns)
    for digit in range(min(MAX_DIGITS, every.columns.bit_length()) if with_unions else 0):
        is_one = numbers >> digit & 1 == 1
        rows += [np.where(is_one, lowest, highest), np.where(is_one, highest, lowest)]
    return np.stack(rows)


class Layout(NamedTuple):
    """Class i has the parts `parts[offsets[i]:offsets[i + 1]]`, which are bits and hulls.

    `real` are the bits that are in use; some are not. `class_word[w]` is the word of the classes
    whose parts are in word w. Unions and opaque classes begin at word `unions`, and no product
    before word `begin[i]` contains i.
    """

    offsets: Numbers
    parts: Numbers
    real: Words
    class_word: Numbers
    words: int
    unions: int
    begin: Numbers


def sort_classes(
    volume: npt.NDArray[np.float64], owner: Numbers, count: int
) -> tuple[Numbers, Numbers]:
    """Return the classes in order, and the number of parts of each; part h is of `owner[h]`.

    Unions of few parts come before those of many, so that later tables are short.
    """
    largest = np.full(count, -np.inf)
    np.maximum.at(largest, owner, volume)
    # The logarithm of a sum of volumes, with the largest taken out so that none underflows.
    total = np.zeros(count)
    np.add.at(total, owner, np.exp(volume - largest[owner]))
    parts = np.bincount(owner, minlength=count)
    bucket = np.ceil(np.log2(np.maximum(parts, 1)))
    return np.lexsort((largest + np.log(np.maximum(total, 1)), bucket)), parts


def assign_bits(parts: Numbers) -> tuple[Numbers, list[tuple[int, int]]]:
    """Return the bit of each class, and of each table its first class word and its first word.

    `parts` are the numbers of parts, in the same order.
    """
    products = int((parts == 1).sum())
    unions = (products + 63) // 64
    places = np.arange(len(parts))
    # Unions begin at a word of their own.
    places[products:] += 64 * unions - products
    words = unions + (len(parts) - products + 63) // 64
    tables = [(0, 0)]
    end = words
    # Table k has a bit for the k-th part of every class with more than k parts.
    for table in range(1, int(parts.max(initial=1))):
        first = int(places[np.argmax(parts > table)]) // 64
        tables.append((first, end))
        end += words - first
    return places, [*tables, (words, end)]
