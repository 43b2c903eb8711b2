"""Compare queries by their arrays, without an object for any of them.

Every set numbers its atoms, columns, cuts, patterns and frames in an order of its own. Here what is
equal in several sets gets one number in all of them. Then the programs of two queries are equal, as
bytes, exactly if their conditions are. Numbers are given by Arrow's hash tables, which compare what
they hold: nothing relies on a hash alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headgate.schema import Schema
from headgate.snapshot.arrays.atoms import MATCHES, WITHIN, EncodedAtoms
from headgate.snapshot.arrays.operands import NUMBERS, TEXTS, WIDE, Cuts, decode_patterns
from headgate.snapshot.arrays.queries import EncodedQueries
from headgate.snapshot.arrays.selection import (
    Numbers,
    find_pools,
    list_column_keys,
    number_distinct,
)
from headgate.snapshot.arrays.texts import unpack
from headgate.snapshot.arrays.trees import Trees


def mark_equal(
    stored: Sequence[EncodedQueries], positions: Numbers, queries: EncodedQueries, schema: Schema
) -> npt.NDArray[np.bool_]:
    """Return whether query i equals the stored one at `positions[i]`, whatever their ids are.

    Positions count through all of `stored`, one behind the other. Equal is what compares equal as
    objects: the form in which a set of values was written does not count (`Within.form`).
    """
    parts = [*stored, queries]
    atom_of = number_atoms([part.atoms for part in parts], schema)
    programs = [
        _list_programs(part.trees, numbers) for part, numbers in zip(parts, atom_of, strict=True)
    ]
    _, frame_of = number_distinct([unpack(part.frames) for part in parts])
    frame = [numbers[part.frame] for part, numbers in zip(parts, frame_of, strict=True)]
    equal: npt.NDArray[np.bool_]
    equal = np.concatenate([np.zeros(0, np.int64), *frame[:-1]])[positions] == frame[-1]
    has_metadata = [np.zeros(0, np.uint8), *(part.has_metadata for part in stored)]
    equal &= np.concatenate(has_metadata)[positions] == queries.has_metadata
    # texts and programs, as bytes
    metadata = [part.metadata.arrow() for part in parts]
    for column in (metadata, programs):
        before = pa.chunked_array(column[:-1], pa.large_binary()).take(positions)
        same: Any = pc.equal(before, column[-1])
        equal &= np.asarray(same, np.bool_)
    return equal


def number_atoms(parts: Sequence[EncodedAtoms], schema: Schema) -> list[Numbers]:
    """Return a number for each atom of each part; those of equal atoms are equal.

    >>> from headgate.schema import INT, Attribute, Stream
    >>> from headgate.snapshot.arrays.queries import encode_queries
    >>> from headgate.sql import Script
    >>> script = Script(Schema((Stream("s", (Attribute("a", INT),)),)))
    >>> texts = ("a > 3 AND a IS NULL", "a IS NULL AND a >= 4 AND a < 9")
    >>> parts = [
    ...     encode_queries(script.read(f"CREATE QUERY q AS SELECT * FROM s WHERE {text}"),
    ...     script.schema).atoms for text in texts]
    >>> [numbers.tolist() for numbers in number_atoms(parts, script.schema)]
    [[0, 1], [1, 0, 2]]
    """
    _, column_of = number_distinct([list_column_keys(part.columns) for part in parts])
    _, pattern_of = number_distinct([decode_patterns(part.patterns) for part in parts])
    operands = _number_cuts(parts, schema)
    keys = []
    for part, columns, patterns, operand in zip(
        parts, column_of, pattern_of, operands, strict=True
    ):
        numbers = np.append(columns, -1)  # so that −1, no column, stays as it is
        is_match = part.kind == MATCHES
        operand[is_match] = patterns[part.start[is_match]]
        # (atoms, 4): all that tells two apart; of a WITHIN its code is the form, which does not
        key = np.zeros((len(part), 4), np.int32)
        key[:, 0] = numbers[part.column]
        key[:, 1] = numbers[part.second]
        key[:, 2] = operand
        code = np.where(part.kind == WITHIN, 0, part.code).astype(np.int32)
        flags = part.negated.astype(np.int32) * 2 + part.starts_inside
        key[:, 3] = (code * 8 + part.kind) * 4 + flags
        width = pa.binary(key.shape[1] * key.itemsize)
        buffers = [None, pa.py_buffer(key.data)]
        keys.append(pa.Array.from_buffers(width, len(part), buffers))
    return _number_entries(keys)


def _number_cuts(parts: Sequence[EncodedAtoms], schema: Schema) -> list[Numbers]:
    """Return a number for the cuts of each atom, equal for equal cuts of one pool; else 0."""
    numbers = [np.zeros(len(part), np.int64) for part in parts]
    texts = _number_entries([part.cuts.texts.arrow() for part in parts])
    for pool in (NUMBERS, WIDE, TEXTS):
        inside = [(part.kind == WITHIN) & (find_pools(part, schema) == pool) for part in parts]
        lists = [
            _list_cuts(part, mask, _list_pool(part.cuts, pool, text))
            for part, mask, text in zip(parts, inside, texts, strict=True)
        ]
        for number, mask, listed in zip(numbers, inside, _number_entries(lists), strict=True):
            number[mask] = listed
    return numbers


def _list_pool(cuts: Cuts, pool: int, texts: Numbers) -> npt.NDArray[Any]:
    """Return the cuts of a pool as numbers, where equal texts have equal numbers; (cuts, …)."""
    if pool == NUMBERS:
        return cuts.numbers
    wide = np.stack([cuts.wide_high, cuts.wide_low.view(np.int64)], axis=1)
    return wide if pool == WIDE else texts


def _list_cuts(
    atoms: EncodedAtoms, inside: npt.NDArray[np.bool_], pool: npt.NDArray[Any]
) -> pa.LargeBinaryArray:
    # the ranges of atoms tile their pool in order, so that one ends where the next begins
    ends = atoms.end[inside]
    return _view_lists(np.append(np.zeros(1, np.int64), ends), pool)


def _list_programs(trees: Trees, numbers: Numbers) -> pa.LargeBinaryArray:
    """Return the programs with other numbers for their atoms, each as bytes."""
    program = trees.program.copy()
    is_atom = program >= 0
    program[is_atom] = numbers[program[is_atom]]
    return _view_lists(trees.offsets, program)


def _view_lists(offsets: Numbers, entries: npt.NDArray[Any]) -> pa.LargeBinaryArray:
    """Return lists of fixed-width entries as an array of bytes, which Arrow compares and hashes."""
    width = entries.itemsize * int(np.prod(entries.shape[1:]))
    parts = (offsets * width, np.ascontiguousarray(entries))
    buffers = [None, *(pa.py_buffer(part.data) for part in parts)]
    array = pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)
    assert isinstance(array, pa.LargeBinaryArray)
    return array


def _number_entries(arrays: Sequence[pa.Array[Any]]) -> list[Numbers]:
    """Return the number of each entry of each array; equal ones of all arrays have one."""
    encoded: Any = pa.chunked_array(arrays).dictionary_encode()
    numbers = [np.asarray(chunk.indices) for chunk in encoded.chunks]
    # an empty array may have lost its chunk
    whole = np.concatenate([np.zeros(0, np.int64), *numbers])
    ends = np.cumsum([len(array) for array in arrays])
    return np.split(whole, ends[:-1])
