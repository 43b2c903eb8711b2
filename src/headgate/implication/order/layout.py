"""Where classes and their parts have their bits.

A class has one bit. Products come first, then unions, each from the smallest to the largest as far
as their cells tell. The first part of a class has the bit of the class; the second part of a union
has one in a second table, which holds no products, and so on; so the parts that contain a product
become the classes that do by an OR of a few words.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headgate.implication.order.products import Numbers
from headgate.implication.order.supersets import Words


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
    """Classes in order, with how many parts each has, if `owner[h]` is the class of part h.

    Unions of few parts come before those of many, so that later tables are short.
    """
    largest = np.full(count, -np.inf)
    np.maximum.at(largest, owner, volume)
    total = np.zeros(count)
    np.add.at(total, owner, np.exp(volume - largest[owner]))
    parts = np.bincount(owner, minlength=count)
    bucket = np.ceil(np.log2(np.maximum(parts, 1)))
    return np.lexsort((largest + np.log(np.maximum(total, 1)), bucket)), parts


def assign_bits(parts: Numbers) -> tuple[Numbers, list[tuple[int, int]]]:
    """The bit of each class, in order, and of each table its first class word and its first word.

    `parts` are the numbers of parts, in the same order.
    """
    products = int((parts == 1).sum())
    unions = (products + 63) // 64
    places = np.arange(len(parts))
    places[products:] += 64 * unions - products
    words = unions + (len(parts) - products + 63) // 64
    tables = [(0, 0)]
    end = words
    for table in range(1, int(parts.max(initial=1))):
        first = int(places[np.argmax(parts > table)]) // 64
        tables.append((first, end))
        end += words - first
    return places, [*tables, (words, end)]
