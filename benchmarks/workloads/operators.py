"""The operators of predicates on integers, by number, and what the numbers have in common."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

OPERATORS = ("=", "<", "<=", ">=", ">", "BETWEEN", "IN", "<>", "NOT IN")
EQUAL, BELOW, AT_MOST, AT_LEAST, ABOVE, BETWEEN, IN, UNEQUAL, NOT_IN = range(len(OPERATORS))

Codes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]


def from_below(operator: Codes) -> Mask:
    """Where there is no least value."""
    return np.isin(operator, (BELOW, AT_MOST))


def to_above(operator: Codes) -> Mask:
    """Where there is no greatest value."""
    return np.isin(operator, (AT_LEAST, ABOVE))


def has_list(operator: Codes) -> Mask:
    """Where values are listed."""
    return np.isin(operator, (IN, NOT_IN))


def refuses(operator: Codes) -> Mask:
    """Where the values that are named are those that do not match."""
    return np.isin(operator, (UNEQUAL, NOT_IN))
