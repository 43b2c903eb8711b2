"""The bitmap of predicates: for each region of a column's values, which predicates are TRUE there.

"Analysis and optimization for Boolean expression indexing", section 6.1. The paper has a row for
each value of a discrete domain. No predicate tells two values of a region apart
(`encoding.code_book`), so a row for each region is as good, for any type.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from headgate.matching.be_tree.kernels.match import Bitmap, fill_rows
from headgate.matching.be_tree.kernels.pools import PredicateArrays
from headgate.matching.be_tree.values import MAX_POINT, MIN_POINT, fits_in_64_bits
from headgate.matching.encoding.code_book import Regions, build_look_up_table
from headgate.predicate import Atom, Column, Within
from headgate.snapshot.arrays.selection import expand_ranges

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """The predicates of one column, and the codes of regions for which each of them is TRUE.

    For the codes from `low[i]` to `high[i]` that is `owner[i]`, a place among `predicates`.
    """

    regions: Regions
    predicates: Numbers
    owner: Numbers
    low: Numbers
    high: Numbers

    @property
    def words(self) -> int:
        """The number of words in a row of the bitmap."""
        return -(-len(self.predicates) // 64)

    @property
    def bytes(self) -> int:
        return 8 * self.words * (self.regions.greatest + 1)

    def renumber(self, new: Numbers) -> Block:
        """Return the same block under the new numbers of predicates, `new[old]`."""
        return replace(self, predicates=new[self.predicates])


def build_block(
    column: Column, numbers: Numbers, atoms: Sequence[Atom | None], arrays: PredicateArrays
) -> Block:
    """Return the regions that predicates of a column tell apart, and where each of them holds."""
    if not fits_in_64_bits(column.type):
        return _build_block_from_cuts(column, numbers, atoms)
    # the closed intervals of all predicates, and the predicate of each
    first, last = arrays.first[numbers], arrays.last[numbers]
    owner = np.repeat(np.arange(len(numbers)), last - first)
    places = expand_ranges(first, last)
    low, high = arrays.low[places], arrays.high[places]
    # Code 0 is NULL, 1 what lies below the least cut, and so on up to `greatest`.
    cuts = np.unique(np.concatenate((low[low != MIN_POINT], high[high != MAX_POINT] + 1)))
    greatest = len(cuts) + 1
    low_code = np.where(low == MIN_POINT, 1, np.searchsorted(cuts, low) + 2)
    high_code = np.where(high == MAX_POINT, greatest, np.searchsorted(cuts, high, side="right") + 1)
    return Block(
        Regions(column, cuts, build_look_up_table(cuts)), numbers, owner, low_code, high_code
    )


def _build_block_from_cuts(column: Column, numbers: Numbers, atoms: Sequence[Atom | None]) -> Block:
    """Build a block for ordinals that do not fit into 64 bits."""
    sets = [atom.values for atom in atoms if isinstance(atom, Within)]
    cuts: list[Any] = sorted({cut for values in sets for cut in values.cuts})
    rows = [
        (
            place,
            1 if interval.low is None else bisect_left(cuts, interval.low) + 2,
            len(cuts) + 1 if interval.high is None else bisect_left(cuts, interval.high) + 1,
        )
        for place, values in enumerate(sets)
        for interval in values.intervals
    ]
    owner, low, high = np.array(rows, np.int64).reshape(-1, 3).T
    return Block(Regions(column, cuts, None), numbers, owner, low, high)


def build_bitmap(blocks: Mapping[int, Block], columns: int, end: int) -> Bitmap:
    """Return the bitmap of the blocks of some columns; predicates from `end` on are not in it."""
    # Numbers of predicates in the bitmap begin at a word for each column.
    word, words, row = (np.zeros(columns, np.int64) for _ in range(3))
    size = 0
    for c, block in blocks.items():
        word[c], words[c], row[c] = block.predicates[0] // 64, block.words, size
        size += block.bytes // 8
    bits = np.zeros(size, np.uint64)
    for c, block in blocks.items():
        fill_rows(bits, row[c], block.words, block.owner, block.low, block.high)
    return Bitmap(end, word, words, row, bits)


def add_columns(bits: Bitmap, columns: int) -> Bitmap:
    """Return the bitmap with entries for columns that became known since, and are not in it."""
    more = max(0, columns - len(bits.words))
    if not more:
        return bits
    nothing = np.zeros(more, np.int64)
    word, words, row = (
        np.concatenate((array, nothing)) for array in (bits.word, bits.words, bits.row)
    )
    return bits._replace(word=word, words=words, row=row)
