"""Classes as arrays: their hulls, where they have their bits, and corners of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headgate.implication.order.classes import QueryClass, QueryClasses
from headgate.implication.order.closure import MAX_EXAMPLE_ROWS, ClosedHull, Closure
from headgate.implication.order.hull import ALL_ROWS, Hull
from headgate.implication.order.products import Numbers, Products, build_products
from headgate.implication.order.supersets import SupersetTable, Words, build_superset_table
from headgate.predicate import Column

MAX_DIGITS = 7
SLACK = 1e-9  # volumes are sums of rounded numbers


class ClassArrays(NamedTuple):
    """`classes[i]` has bit i; None where the bit is not in use.

    `possible` is as `layout`, but its outer hulls are no larger than what each class may turn out
    to be; it differs for the classes `doubtful`. `corners[h]` are two rows of `layout.outer[h]`, as
    hulls, and `sources[:, h]` are products of rows of it; for the classes `unseen` none is known.
    `tied[i]`: class i has conditions. Columns with one free cell have it in `pinned`.
    """

    classes: list[QueryClass | None]
    table: SupersetTable
    layout: Layout
    possible: Layout
    corners: Numbers
    sources: Numbers
    pinned: Numbers
    tied: npt.NDArray[np.bool_]
    doubtful: Numbers
    unseen: Numbers


def build_arrays(grouped: QueryClasses, closure: Closure) -> ClassArrays:
    """Return the arrays of classes, and what the conditions in them say of each other."""
    parts = [part for one in grouped.classes for part in one.parts]
    owner = np.repeat(np.arange(len(grouped.classes)), [len(one.parts) for one in grouped.classes])
    own = np.arange(1, len(parts) + 1)
    # Number all hulls: 0 is all rows, then the parts, then what `closure` adds to them.
    hulls = _Hulls([ALL_ROWS, *parts])
    numbers = [_numbers(closure.close(part), at, hulls) for at, part in enumerate(parts, 1)]
    sure, possible, *seen = np.array(numbers, np.int64).reshape(-1, 2 + MAX_EXAMPLE_ROWS).T
    every = build_products(hulls.all, grouped.attributes)
    volumes = every.log_volume[np.where(sure < 0, own, sure)]
    # Give classes their bits, products first, small before large; then the parts theirs.
    order, counts = sort_classes(volumes, owner, len(grouped.classes))
    places, tables = assign_bits(counts[order])
    place_of = np.empty_like(places)
    place_of[order] = places
    place = place_of[owner]
    bits = _bits_of_parts(place, owner, tables)
    words, all_words = tables[-1]
    size = 64 * all_words
    # Bits that no part has keep hull 0, all rows; `layout.real` masks them.
    hull_of_bit = np.zeros(size, np.int64)
    hull_of_bit[bits] = own
    by_place = np.argsort(place, kind="stable")
    # Parts in the order of their class's bit, without those that can never hold.
    alive = by_place[sure[by_place] >= 0]
    every_class = np.arange(64 * words + 1)
    unions = (int((counts == 1).sum()) + 63) // 64
    layout = Layout(
        np.searchsorted(place[alive], every_class),
        _outer(sure, bits, size)[alive],
        np.searchsorted(place[by_place], every_class),
        bits[by_place],
        _as_bits(bits, all_words),
        np.concatenate([np.arange(first, words) for first, _ in tables[:-1]]),
        words,
        unions,
        _begin(volumes, place, places[: int((counts == 1).sum())], 64 * words),
    )
    # Where a closure changed a hull, the order by volume is not relied on.
    layout.begin[place[(sure != own) | (sure != possible)]] = 0
    # Hulls in the order of their bits, then all hulls, then the corners of the outer ones.
    base = every.take(hull_of_bit).concat(every)
    corners = np.full((len(alive), 2), -1, np.int64)
    if unions < words:
        # Of each outer hull the lowest and the highest corner, as hulls behind all others.
        rows = every.take(np.maximum(seen[0][alive], 0))
        first = len(base.offsets) - 1 + np.arange(len(alive))
        corners = np.stack((first, first + len(alive)), axis=1)
        corners[np.isin(place[alive], place[(seen[0] < 0) & (sure >= 0)])] = -1
        base = base.concat(rows.corners(0)).concat(rows.corners(1))
    table = build_superset_table(base, size, _free(every, hulls, closure.tied, unions < words))
    # Classes by bit, and which of them have conditions.
    tied = np.zeros(64 * words, np.bool_)
    tied[place[[any(c in grouped.conditions for c in part.sides) for part in parts]]] = True
    classes: list[QueryClass | None] = [None] * (64 * words)
    for one, at in zip(grouped.classes, place_of.tolist(), strict=True):
        classes[at] = one
    return ClassArrays(
        classes,
        table,
        layout,
        layout._replace(outer=_outer(possible, bits, size)[alive]),
        corners,
        size + np.maximum(np.stack(seen), 0)[:, alive],
        np.where(table.free[1] == table.free[2], table.free[1], -1),
        tied,
        np.unique(place[sure != possible]),
        np.unique(place[(seen[0] < 0) & (sure >= 0)]) if unions < words else every_class[:0],
    )


class _Hulls:
    """All hulls that are needed, each once."""

    def __init__(self, hulls: Sequence[Hull]) -> None:
        self.all = list(hulls)

    def add(self, hull: Hull) -> int:
        self.all.append(hull)
        return len(self.all) - 1


def _numbers(closed: ClosedHull | None, own: int, hulls: _Hulls) -> list[int]:
    """Return the numbers of its hulls; -1 for those that are not there."""
    if closed is None:
        return [-1] * (2 + MAX_EXAMPLE_ROWS)
    part = hulls.all[own]
    sure = own if closed.sure.sides == part.sides else hulls.add(closed.sure)
    possible = sure if closed.possible.sides == closed.sure.sides else hulls.add(closed.possible)
    seen = [own if one is part else hulls.add(one) for one in closed.seen] or [-1]
    return [sure, possible, *(seen + seen[-1:] * MAX_EXAMPLE_ROWS)[:MAX_EXAMPLE_ROWS]]


def _outer(numbers: Numbers, bits: Numbers, size: int) -> Numbers:
    """Return the places of hulls: at the bit of the part that it equals, else after all bits."""
    is_part = numbers == np.arange(1, len(numbers) + 1)
    return np.where(is_part, bits, size + numbers)


def _bits_of_parts(place: Numbers, owner: Numbers, tables: list[tuple[int, int]]) -> Numbers:
    """Return the bit of each part: the k-th part of a class has its bit in table k."""
    first = np.searchsorted(owner, owner)
    shifts = np.array([64 * (begin - first) for first, begin in tables[:-1]], np.int64)
    return place + shifts[np.arange(len(owner)) - first] if len(owner) else place


def _as_bits(places: Numbers, words: int) -> Words:
    flags = np.zeros(64 * words, np.bool_)
    flags[places] = True
    return np.packbits(flags, bitorder="little").view(np.uint64)


def _begin(
    volumes: npt.NDArray[np.float64], place: Numbers, product_places: Numbers, count: int
) -> Numbers:
    """Return the first word in which a product can contain the class: one that is not smaller."""
    largest = np.full(count, -np.inf)
    np.maximum.at(largest, place, volumes)
    return np.searchsorted(largest[product_places], largest - SLACK) >> 6


def _free(every: Products, hulls: _Hulls, tied: Iterable[Column], with_unions: bool) -> Numbers:
    """For columns without a side: none, then the lowest cell, then the highest, then either.

    Of any two columns the one has its lowest cell and the other its highest in some row: columns
    are numbered, and each binary digit tells some apart. A column that a condition mentions, or
    that stands for one, has the lowest cell always.
    """
    place: dict[Column, int] = {}
    for one in hulls.all:
        for column in one.sides:
            place.setdefault(column, len(place))
    lowest, highest = every.bottom, every.top - 1
    for column in tied:
        if column in place:
            highest[place[column]] = lowest[place[column]]
    rows = [np.full(every.columns, -1), lowest, highest]
    numbers = np.arange(every.columns)
    for digit in range(min(MAX_DIGITS, len(place).bit_length()) if with_unions else 0):
        is_one = numbers >> digit & 1 == 1
        rows += [np.where(is_one, lowest, highest), np.where(is_one, highest, lowest)]
    return np.stack(rows)


class Layout(NamedTuple):
    """Class i has the hulls `outer[outer_offsets[i]:outer_offsets[i + 1]]`, which contain it.

    Its parts, which are it, are the bits `parts[part_offsets[i]:part_offsets[i + 1]]`. `real` are
    the bits that are in use; some are not. `class_word[w]` is the word of the classes whose parts
    are in word w. Unions begin at word `unions`, and no product before word `begin[i]` contains i.
    """

    outer_offsets: Numbers
    outer: Numbers
    part_offsets: Numbers
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
