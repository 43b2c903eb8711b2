"""Select and concatenate encoded queries, without an object for any of them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from headgate.schema import Schema
from headgate.snapshot.arrays.atoms import ATOM_FIELDS, MATCHES, WITHIN, EncodedAtoms
from headgate.snapshot.arrays.operands import (
    NUMBERS,
    TEXTS,
    WIDE,
    ColumnKey,
    ColumnTable,
    Cuts,
    PatternNumbers,
    Patterns,
    decode_columns,
    decode_patterns,
    pack_columns,
    pool_of,
)
from headgate.snapshot.arrays.queries import EncodedQueries
from headgate.snapshot.arrays.texts import Texts, pack, unpack
from headgate.snapshot.arrays.trees import Trees

Numbers = npt.NDArray[np.int64]
T = TypeVar("T", bound=Hashable)


def expand_ranges(starts: Numbers, ends: Numbers) -> Numbers:
    """Return the numbers from each start up to its end, one range behind the other.

    >>> expand_ranges(np.array([5, 0]), np.array([7, 1])).tolist()
    [5, 6, 0]
    """
    lengths = ends - starts
    return np.arange(lengths.sum()) - np.repeat(_to_offsets(lengths)[:-1] - starts, lengths)


def select_queries(encoded: EncodedQueries, places: Numbers, schema: Schema) -> EncodedQueries:
    """Return the queries at these places, in this order, with the atoms that they use."""
    # atoms are renumbered by the order of those that remain
    trees = encoded.trees
    starts, ends = trees.offsets[places], trees.offsets[places + 1]
    program = trees.program[expand_ranges(starts, ends)]
    used = np.unique(program[program >= 0]).astype(np.int64)
    numbers = np.zeros(len(encoded.atoms), np.int64)
    numbers[used] = np.arange(len(used))
    return EncodedQueries(
        ids=take_texts(encoded.ids, places),
        metadata=take_texts(encoded.metadata, places),
        has_metadata=encoded.has_metadata[places],
        stream=encoded.stream[places],
        frame=encoded.frame[places],
        # all of them, as a copy: a view would keep the whole content of a file in memory
        frames=take_texts(encoded.frames, np.arange(len(encoded.frames))),
        trees=Trees(_to_offsets(ends - starts), _renumber(program, numbers)),
        atoms=_take_atoms(encoded.atoms, used, schema),
    )


def concatenate_queries(parts: Sequence[EncodedQueries], schema: Schema) -> EncodedQueries:
    """Return the queries of all parts, one part behind the other.

    What is equal in different parts becomes one, except for conditions on constants.
    """
    atoms, numbers = _remove_duplicates(
        _concatenate_atoms([part.atoms for part in parts], schema), schema
    )
    # atoms of a part are numbered behind those of the parts before it, then again as distinct
    before = np.cumsum([0, *(len(part.atoms) for part in parts)])
    programs = [
        _renumber(part.trees.program, numbers[shift : shift + len(part.atoms)])
        for part, shift in zip(parts, before.tolist(), strict=False)
    ]
    sizes = [np.diff(part.trees.offsets) for part in parts]
    # most parts have the same single frame
    frames, frame_of = number_distinct([unpack(part.frames) for part in parts])
    return EncodedQueries(
        ids=_concatenate_texts([part.ids for part in parts]),
        metadata=_concatenate_texts([part.metadata for part in parts]),
        has_metadata=_concatenate([part.has_metadata for part in parts], np.uint8),
        stream=_concatenate([part.stream for part in parts], np.int32),
        frame=_concatenate(
            [number[part.frame] for part, number in zip(parts, frame_of, strict=True)], np.int32
        ),
        frames=pack(frames),
        trees=Trees(_to_offsets(_concatenate(sizes, np.int64)), _concatenate(programs, np.int32)),
        atoms=atoms,
    )


def take_texts(texts: Texts, places: Numbers) -> Texts:
    """Return the strings at these places.

    >>> unpack(take_texts(pack(["a", "bc", ""]), np.array([1, 1, 0])))
    ['bc', 'bc', 'a']
    """
    starts, ends = texts.offsets[places], texts.offsets[places + 1]
    return Texts(_to_offsets(ends - starts), texts.data[expand_ranges(starts, ends)])


def _take_atoms(atoms: EncodedAtoms, places: Numbers, schema: Schema) -> EncodedAtoms:
    """Return the atoms at these places, with only the columns, cuts and patterns that they use."""
    # cuts and patterns close up: the ranges of the atoms are numbered again, pool by pool
    kind, start, end = atoms.kind[places], atoms.start[places].copy(), atoms.end[places].copy()
    pools = find_pools(atoms, schema)[places]
    taken_cuts = {}
    for pool in (NUMBERS, WIDE, TEXTS):
        in_pool = (kind == WITHIN) & (pools == pool)
        taken_cuts[pool] = expand_ranges(start[in_pool], end[in_pool])
        bounds = _to_offsets(end[in_pool] - start[in_pool])
        start[in_pool], end[in_pool] = bounds[:-1], bounds[1:]
    texts = kind == MATCHES
    patterns, numbers = np.unique(start[texts], return_inverse=True)
    start[texts], end[texts] = numbers, numbers + 1
    # columns that no atom mentions any more are left out as well
    cuts, columns = atoms.cuts, atoms.columns
    column, second = atoms.column[places], atoms.second[places]
    mentioned = np.union1d(column[column >= 0], second[second >= 0]).astype(np.int64)
    column_of = np.full(len(columns) + 1, -1, np.int32)  # the last is for −1, which stays
    column_of[mentioned] = np.arange(len(mentioned))
    return EncodedAtoms(
        kind=kind,
        column=column_of[column],
        second=column_of[second],
        code=atoms.code[places],
        negated=atoms.negated[places],
        starts_inside=atoms.starts_inside[places],
        start=start,
        end=end,
        columns=ColumnTable(
            columns.stream[mentioned],
            columns.attribute[mentioned],
            take_texts(columns.alias, mentioned),
        ),
        cuts=Cuts(
            cuts.numbers[taken_cuts[NUMBERS]],
            cuts.wide_high[taken_cuts[WIDE]],
            cuts.wide_low[taken_cuts[WIDE]],
            take_texts(cuts.texts, taken_cuts[TEXTS]),
        ),
        patterns=Patterns(
            atoms.patterns.kind[patterns],
            take_texts(atoms.patterns.text, patterns),
            take_texts(atoms.patterns.escape, patterns),
        ),
    )


def _remove_duplicates(atoms: EncodedAtoms, schema: Schema) -> tuple[EncodedAtoms, Numbers]:
    """Return the atoms without repetition, and the new number of each; WITHIN may repeat."""
    # WITHIN is left out: its cuts would have to be compared too, and repetition costs only room
    others = np.flatnonzero(atoms.kind != WITHIN)
    fields = (atoms.kind, atoms.column, atoms.second, atoms.code, atoms.negated, atoms.start)
    # (atoms, 6): all that tells two apart; equal ones share the range of one pattern, if any
    keys = np.stack([field[others].astype(np.int64) for field in fields], axis=1)
    _, first, same = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    # by atom: the first one that equals it, itself for a WITHIN
    stands_for = np.arange(len(atoms))
    stands_for[others] = others[first[same.reshape(-1)]]
    distinct, numbers = np.unique(stands_for, return_inverse=True)
    return _take_atoms(atoms, distinct, schema), numbers.astype(np.int64)


def _renumber(program: npt.NDArray[np.int32], numbers: Numbers) -> npt.NDArray[np.int32]:
    renumbered = program.copy()
    is_atom = renumbered >= 0
    renumbered[is_atom] = numbers[renumbered[is_atom]]
    return renumbered


def _concatenate_atoms(parts: Sequence[EncodedAtoms], schema: Schema) -> EncodedAtoms:
    # equal columns and patterns of different parts become one; cuts stay as they are
    columns, column_of = number_distinct([list_column_keys(part.columns) for part in parts])
    numbers = PatternNumbers()
    pattern_of = [
        np.array([numbers.number(pattern) for pattern in decode_patterns(part.patterns)], np.int64)
        for part in parts
    ]
    # (parts + 1, 3): how many cuts lie in each pool before those of a part
    before = np.cumsum([(0, 0, 0), *(part.cuts.sizes for part in parts)], axis=0)
    renumbered = [
        _renumber_atoms(part, number, pattern, shift, schema)
        for part, number, pattern, shift in zip(parts, column_of, pattern_of, before, strict=False)
    ]
    cuts = [part.cuts for part in parts]

    whole: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in renumbered]) for name in ATOM_FIELDS
    }
    return EncodedAtoms(
        **whole,
        columns=pack_columns(columns),
        cuts=Cuts(
            np.concatenate([part.numbers for part in cuts]),
            np.concatenate([part.wide_high for part in cuts]),
            np.concatenate([part.wide_low for part in cuts]),
            _concatenate_texts([part.texts for part in cuts]),
        ),
        patterns=numbers.arrays(),
    )


def _renumber_atoms(
    part: EncodedAtoms, column_of: Numbers, pattern_of: Numbers, shift: Numbers, schema: Schema
) -> EncodedAtoms:
    """Return the atoms of a part in the numbers of the whole."""
    # cuts of all parts lie behind each other, pool by pool
    by = np.where(part.kind == WITHIN, shift[find_pools(part, schema)], 0)
    start, end = part.start + by, part.end + by
    texts = part.kind == MATCHES
    start[texts] = pattern_of[part.start[texts]]
    end[texts] = start[texts] + 1
    columns = np.append(column_of, -1).astype(np.int32)  # so that −1 stays as it is
    return replace(
        part, column=columns[part.column], second=columns[part.second], start=start, end=end
    )


def find_pools(atoms: EncodedAtoms, schema: Schema) -> Numbers:
    """Return the pool that holds the cuts of each atom, if it has any."""
    of_column = [pool_of(column.type) for column in decode_columns(atoms.columns, schema)]
    return np.array([*of_column, NUMBERS], np.int64)[atoms.column]


def list_column_keys(columns: ColumnTable) -> list[ColumnKey]:
    """Return what tells each column from others of the schema."""
    parts = (columns.stream.tolist(), columns.attribute.tolist(), unpack(columns.alias))
    return list(zip(*parts, strict=True))


def number_distinct(parts: Sequence[Sequence[T]]) -> tuple[list[T], list[Numbers]]:
    """Return the distinct items of all parts, and for each part the numbers of its own."""
    known: dict[T, int] = {}
    numbers = [
        np.array([known.setdefault(item, len(known)) for item in part], np.int64) for part in parts
    ]
    return list(known), numbers


def _concatenate(arrays: Sequence[npt.NDArray[Any]], dtype: Any) -> npt.NDArray[Any]:
    return np.concatenate([np.empty(0, dtype), *arrays], dtype=dtype)


def _concatenate_texts(parts: Sequence[Texts]) -> Texts:
    sizes = _concatenate([np.diff(part.offsets) for part in parts], np.int64)
    return Texts(_to_offsets(sizes), _concatenate([part.data for part in parts], np.uint8))


def _to_offsets(lengths: Numbers) -> Numbers:
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts
