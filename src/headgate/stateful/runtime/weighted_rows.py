"""Weighted rows: each stands for many, and carries how many, and the sums over them.

Reductions, synopses and answers are all of this form, so that they are merged, written and read in
one way.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.errors import Overflow, StateError
from headgate.events.columns import Mask
from headgate.predicate import Column
from headgate.stateful.runtime.exact_sums import Sums
from headgate.stateful.runtime.grouping import Numbers

MAX_COUNT = (1 << 63) - 1
_HEAD = struct.Struct("<QI")  # the length and the checksum of a table
_MEMBER, _COUNT, _SUM = "member", "count", "sum"


@dataclass(slots=True, eq=False)
class WeightedRows:
    """Rows with what is kept of them, the branches they can be in, their number, and sums.

    `member` has a row for each row and a column for each branch.
    """

    values: dict[Column, pa.Array[Any]]
    member: Mask
    count: Numbers
    sums: dict[Column, Sums] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.count)

    def at(self, rows: Numbers) -> WeightedRows:
        """Return some of the rows."""
        return WeightedRows(
            {column: array.take(rows) for column, array in self.values.items()},
            self.member[rows],
            self.count[rows],
            {column: sums.at(rows) for column, sums in self.sums.items()},
        )

    def table(self) -> pa.Table:
        """Return the rows as a table, whose columns are numbered by their place."""
        columns: dict[str, pa.Array[Any]] = {}
        for number, array in enumerate(self.values.values()):
            columns[f"value{number}"] = array
        # A bit for each branch, padded to whole bytes.
        bits = np.packbits(self.member, axis=1)
        columns[_MEMBER] = pa.array([row.tobytes() for row in bits], pa.binary())
        columns[_COUNT] = pa.array(self.count)
        for number, sums in enumerate(self.sums.values()):
            columns[f"{_SUM}{number}"] = pa.array(map(_to_bytes, sums.finite.tolist()), pa.binary())
            columns[f"{_SUM}{number}.special"] = pa.array(sums.special)
            columns[f"{_SUM}{number}.count"] = pa.array(sums.count)
        return pa.table(columns)


def from_table(
    table: pa.Table, columns: Sequence[Column], branches: int, summed: Sequence[Column]
) -> WeightedRows:
    """Read what `WeightedRows.table` wrote; StateError where something else wrote it."""
    table = table.combine_chunks()

    def array(name: str, type_: pa.DataType) -> pa.Array[Any]:
        if name not in table.column_names or table.column(name).type != type_:
            raise StateError(f"stored rows have no `{name}` of type {type_}")
        return _get_chunk(table.column(name), type_)

    # Checked before they are reshaped: a row has a byte for every eight branches.
    packed = b"".join(bytes(row or b"") for row in array(_MEMBER, pa.binary()).to_pylist())
    width = -(-branches // 8)
    if len(packed) != width * table.num_rows:
        raise StateError(f"stored rows are not of {branches} branches")
    bits = np.frombuffer(packed, np.uint8).reshape(table.num_rows, width)
    member = np.unpackbits(bits, axis=1)[:, :branches].astype(np.bool_)
    sums = {
        column: Sums(
            _from_bytes(array(f"{_SUM}{number}", pa.binary())),
            _to_numpy(array(f"{_SUM}{number}.special", pa.int8())),
            _to_numpy(array(f"{_SUM}{number}.count", pa.int64())),
        )
        for number, column in enumerate(summed)
    }
    values = {c: array(f"value{n}", c.type.arrow) for n, c in enumerate(columns)}
    return WeightedRows(values, member, _to_numpy(array(_COUNT, pa.int64())), sums)


def empty_rows(columns: Sequence[Column], branches: int, summed: Sequence[Column]) -> WeightedRows:
    """Return no rows."""
    return WeightedRows(
        {column: empty(column.type.arrow) for column in columns},
        np.empty((0, branches), np.bool_),
        np.empty(0, np.int64),
        {column: Sums.none(0) for column in summed},
    )


def concatenate(parts: Sequence[WeightedRows]) -> WeightedRows:
    """Return the rows of several, which keep the same columns."""
    first = parts[0]
    if len(parts) == 1:
        return first
    return WeightedRows(
        {c: pa.concat_arrays([part.values[c] for part in parts]) for c in first.values},
        np.concatenate([part.member for part in parts]),
        np.concatenate([part.count for part in parts]),
        {c: Sums.concatenate([part.sums[c] for part in parts]) for c in first.sums},
    )


def multiply_counts(counts: Sequence[Numbers]) -> Numbers:
    """Multiply counts; an Overflow where a product does not fit into 64 bits.

    >>> multiply_counts([np.array([2, 3]), np.array([5, 7])]).tolist()
    [10, 21]
    """
    product = counts[0]
    for other in counts[1:]:
        # A double is quick and nearly exact; only near the limit is the product computed exactly.
        if np.any(product.astype(np.float64) * other > MAX_COUNT / 2):
            exact = product.astype(object) * other.astype(object)
            if any(number > MAX_COUNT for number in exact.tolist()):
                raise Overflow("a row is there more than 2^63 times, which no BIGINT counts")
        product = product * other
    return product


def add_counts(counts: Numbers, groups: Numbers, size: int) -> Numbers:
    """Add counts up by group; an Overflow where a sum does not fit into 64 bits."""
    # No group has more than the sum of all, so the exact way is rarely taken.
    if float(counts.sum(dtype=np.float64)) > MAX_COUNT / 2:
        exact = np.zeros(size, object)
        np.add.at(exact, groups, counts.astype(object))
        if any(number > MAX_COUNT for number in exact.tolist()):
            raise Overflow("more than 2^63 rows, which no BIGINT counts")
        return exact.astype(np.int64)
    total = np.zeros(size, np.int64)
    np.add.at(total, groups, counts)
    return total


def _to_bytes(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 8) // 8, "little", signed=True)


def _from_bytes(array: pa.Array[Any]) -> npt.NDArray[np.object_]:
    integers = np.empty(len(array), object)
    every: list[Any] = array.to_pylist()
    integers[:] = [int.from_bytes(each, "little", signed=True) for each in every]
    return integers


def _get_chunk(column: pa.ChunkedArray[Any], type_: pa.DataType) -> pa.Array[Any]:
    chunk: Any = column.chunk(0) if column.num_chunks else empty(type_)
    whole: pa.Array[Any] = chunk
    return whole


def empty(type_: Any) -> pa.Array[Any]:
    """Return an empty array of a type."""
    array: pa.Array[Any] = pa.nulls(0, type_)
    return array


def _to_numpy(array: pa.Array[Any]) -> npt.NDArray[Any]:
    values: npt.NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return values


def write_frames(tables: Iterable[pa.Table]) -> bytes:
    """Write tables one after the other, each behind its length and a checksum.

    Arrow trusts what it reads: a flipped bit would end the process.
    """
    frames = []
    for table in tables:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        data = sink.getvalue().to_pybytes()
        frames += [_HEAD.pack(len(data), crc32(data)), data]
    return b"".join(frames)


def read_frames(data: bytes) -> list[pa.Table]:
    """Read what `write_frames` wrote; StateError where it is damaged."""
    tables, at = [], 0
    while at < len(data):
        if at + _HEAD.size > len(data):
            raise _make_damage_error()
        length, checksum = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        # The checksum is compared before Arrow sees the bytes.
        part = data[at : at + length]
        if not part or len(part) != length or crc32(part) != checksum:
            raise _make_damage_error()
        tables.append(pa.ipc.open_stream(part).read_all())
        at += length
    return tables


def _make_damage_error() -> StateError:
    return StateError("stored rows are damaged: their checksum does not fit")
