"""Which rows of a column break its CHECK or its NOT NULL. NULL passes a CHECK."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.events.columns import encode_column
from headgate.events.reasons import show_value
from headgate.schema import Attribute


def find_violations(array: pa.Array[Any], attribute: Attribute) -> Iterator[tuple[int, str]]:
    """The rows that the declaration of the attribute forbids, each with the reason."""
    if not attribute.nullable and array.null_count:
        for row in np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False)):
            yield int(row), f"`{attribute.name}` is NULL, against its NOT NULL"
    if not attribute.domain.is_everything:
        for row in np.flatnonzero(find_outside_domain(array, attribute)):
            value = show_value(array[int(row)].as_py())
            yield int(row), f"`{attribute.name}` is {value}, outside its CHECK"


def find_outside_domain(array: pa.Array[Any], attribute: Attribute) -> npt.NDArray[np.bool_]:
    """Which values have an ordinal outside the domain; a NULL is not outside.

    >>> from headgate.schema import INT, Interval, ValueSet
    >>> positive = Attribute("qty", INT, ValueSet.of(Interval(1, None)))
    >>> outside_domain(pa.array([3, None, 0], pa.int32()), positive).tolist()
    [False, False, True]
    """
    column = encode_column(array, attribute.type)
    outside = ~column.test_membership(attribute.domain)
    return outside if column.valid is None else outside & column.valid
