"""Events over many integer attributes, of which each event has a few."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.schema import INT, Attribute, Stream

ABSENT = -1

Offsets = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]


def integer_stream(attributes: int) -> Stream:
    """Return the stream `events` with the INT attributes a0, a1, …"""
    return Stream("events", tuple(Attribute(f"a{i}", INT) for i in range(attributes)))


@dataclass(frozen=True, eq=False)
class IntegerEvents:
    """Event i has `value[k]` in attribute number `attribute[k]`, for k in `offsets[i:i + 2]`.

    Values are 0 or greater, and the attributes of an event ascend.

    >>> events = IntegerEvents.from_dense(np.array([[7, -1], [-1, 0]], np.int32))
    >>> events.attribute.tolist(), events.table().to_pylist()
    ([0, 1], [{'a0': 7, 'a1': None}, {'a0': None, 'a1': 0}])
    """

    stream: Stream
    offsets: Offsets
    attribute: Numbers
    value: Numbers

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @staticmethod
    def from_dense(dense: Numbers) -> IntegerEvents:
        """Return the events whose rows are these."""
        rows, attribute = np.nonzero(dense != ABSENT)
        counts = np.bincount(rows, minlength=len(dense))
        offsets = np.concatenate(([0], np.cumsum(counts)))
        value = dense[rows, attribute]
        return IntegerEvents(
            integer_stream(dense.shape[1]), offsets, attribute.astype(np.int32), value
        )

    def dense(self) -> Numbers:
        """Return a row for each event and a column for each attribute; what is absent is −1."""
        dense = np.full((len(self), len(self.stream.attributes)), ABSENT, np.int32)
        dense[np.repeat(np.arange(len(self)), np.diff(self.offsets)), self.attribute] = self.value
        return dense

    def table(self) -> pa.Table:
        """Return the same for Arrow; what is absent is NULL."""
        columns = np.ascontiguousarray(self.dense().T)
        arrays = [pa.array(column, INT.arrow, mask=column == ABSENT) for column in columns]
        return pa.Table.from_arrays(arrays, names=list(self.stream.names))


# The operators of predicates on integers, by number, and what the numbers have in common.

OPERATORS = ("=", "<", "<=", ">=", ">", "BETWEEN", "IN", "<>", "NOT IN")
EQUAL, BELOW, AT_MOST, AT_LEAST, ABOVE, BETWEEN, IN, UNEQUAL, NOT_IN = range(len(OPERATORS))

Codes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]


def from_below(operator: Codes) -> Mask:
    """Return where there is no least value."""
    return np.isin(operator, (BELOW, AT_MOST))


def to_above(operator: Codes) -> Mask:
    """Return where there is no greatest value."""
    return np.isin(operator, (AT_LEAST, ABOVE))


def has_list(operator: Codes) -> Mask:
    """Return where values are listed."""
    return np.isin(operator, (IN, NOT_IN))


def refuses(operator: Codes) -> Mask:
    """Return where the values that are named are those that do not match."""
    return np.isin(operator, (UNEQUAL, NOT_IN))
