"""The bitmap of section 6.1: for each region of a column's values, which predicates are TRUE there.

The paper has a row for each value of a discrete domain. No predicate tells two values of a region
apart (`encoding.code_book`), so a row for each region is as good, for any type.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from headgate.matching.be_tree.domain import LEAST, MOST, is_exact
from headgate.matching.be_tree.kernels.match import Bits, fill_rows
from headgate.matching.be_tree.kernels.pools import Predicates
from headgate.matching.encoding.code_book import Regions, build_look_up_table
from headgate.predicate import Atom, Column, Within
from headgate.snapshot.arrays.selection import expand_ranges

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """The predicates of one column, and the codes `low[i]` … `high[i]` for which `owner[i]`, a
    place among them, is TRUE."""

    regions: Regions
    predicates: Numbers
    owner: Numbers
    low: Numbers
    high: Numbers

    @property
    def words(self) -> int:
        """Of a row."""
        return -(-len(self.predicates) // 64)

    @property
    def bytes(self) -> int:
        return 8 * self.words * (self.regions.greatest + 1)

    def moved(self, new: Numbers) -> Block:
        """The same under new numbers."""
        return replace(self, predicates=new[self.predicates])


def block_of(
    column: Column, numbers: Numbers, atoms: Sequence[Atom | None], arrays: Predicates
) -> Block:
    """The regions that predicates of a column tell apart, and the predicates in terms of them."""
    if not is_exact(column.type):
        return _of_cuts(column, numbers, atoms)
    first, last = arrays.first[numbers], arrays.last[numbers]
    owner = np.repeat(np.arange(len(numbers)), last - first)
    places = expand_ranges(first, last)
    low, high = arrays.low[places], arrays.high[places]
    cuts = np.unique(np.concatenate((low[low != LEAST], high[high != MOST] + 1)))
    greatest = len(cuts) + 1
    low_code = np.where(low == LEAST, 1, np.searchsorted(cuts, low) + 2)
    high_code = np.where(high == MOST, greatest, np.searchsorted(cuts, high, side="right") + 1)
    return Block(
        Regions(column, cuts, build_look_up_table(cuts)), numbers, owner, low_code, high_code
    )


def _of_cuts(column: Column, numbers: Numbers, atoms: Sequence[Atom | None]) -> Block:
    """The same for ordinals that do not fit into 64 bits."""
    sets = [atom.values for atom in atoms if isinstance(atom, Within)]
    cuts: list[Any] = sorted({cut for values in sets for cut in values.cuts})
    found = [
        (
            place,
            1 if one.low is None else bisect_left(cuts, one.low) + 2,
            len(cuts) + 1 if one.high is None else bisect_left(cuts, one.high) + 1,
        )
        for place, values in enumerate(sets)
        for one in values.intervals
    ]
    owner, low, high = np.array(found, np.int64).reshape(-1, 3).T
    return Block(Regions(column, cuts, None), numbers, owner, low, high)


def filled(blocks: Mapping[int, Block], columns: int, end: int) -> Bits:
    """The bitmap of the blocks of some columns; predicates from `end` on are not in it."""
    word, words, row = (np.zeros(columns, np.int64) for _ in range(3))
    size = 0
    for c, block in blocks.items():
        word[c], words[c], row[c] = block.predicates[0] // 64, block.words, size
        size += block.bytes // 8
    bits = np.zeros(size, np.uint64)
    for c, block in blocks.items():
        fill_rows(bits, row[c], block.words, block.owner, block.low, block.high)
    return Bits(end, word, words, row, bits)


def with_columns(bits: Bits, columns: int) -> Bits:
    """The same bitmap where more columns are known by now, which are not in it."""
    more = max(0, columns - len(bits.words))
    if not more:
        return bits
    nothing = np.zeros(more, np.int64)
    word, words, row = (np.concatenate((one, nothing)) for one in (bits.word, bits.words, bits.row))
    return bits._replace(word=word, words=words, row=row)
