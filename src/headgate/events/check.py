"""Which rows of a column break its CHECK or its NOT NULL. NULL passes a CHECK."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.events.batch import Numbers
from headgate.events.reasons import show
from headgate.schema import Attribute, DecimalType, Double, String, ValueSet
from headgate.schema.types import INFINITY_RANK, MAGNITUDE, NAN_RANK


def violations(array: pa.Array[Any], attribute: Attribute) -> Iterator[tuple[int, str]]:
    """The rows that the declaration of the attribute forbids, each with the reason."""
    if not attribute.nullable and array.null_count:
        for row in np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False)):
            yield int(row), f"`{attribute.name}` is NULL, against its NOT NULL"
    if not attribute.domain.is_everything:
        for row in np.flatnonzero(outside_domain(array, attribute)):
            value = show(array[int(row)].as_py())
            yield int(row), f"`{attribute.name}` is {value}, outside its CHECK"


def outside_domain(array: pa.Array[Any], attribute: Attribute) -> npt.NDArray[np.bool_]:
    """Which values have an ordinal outside the domain; a NULL is not outside.

    >>> from headgate.schema import INT, Interval
    >>> positive = Attribute("qty", INT, ValueSet.of(Interval(1, None)))
    >>> outside_domain(pa.array([3, None, 0], pa.int32()), positive).tolist()
    [False, False, True]
    """
    present = array.is_valid().to_numpy(zero_copy_only=False)
    if isinstance(attribute.type, String | DecimalType):  # ordinals that no machine integer holds
        inside = _inside_by_value(array, attribute)
    else:
        inside = _inside_by_ordinal(_ordinals(array, attribute), attribute.domain)
    return present & ~inside


def _inside_by_value(array: pa.Array[Any], attribute: Attribute) -> npt.NDArray[np.bool_]:
    """Look each distinct value up once, in Python."""
    encoded = array.dictionary_encode()
    domain, ordinal = attribute.domain, attribute.type.ordinal
    inside = [ordinal(value) in domain for value in encoded.dictionary.to_pylist()]
    places = encoded.indices.fill_null(len(inside)).to_numpy()
    found: npt.NDArray[np.bool_] = np.array([*inside, True])[places]
    return found


def _inside_by_ordinal(ordinals: Numbers, domain: ValueSet) -> npt.NDArray[np.bool_]:
    cuts = np.array(domain.cuts, dtype=np.int64)
    passed: Numbers = np.searchsorted(cuts, ordinals, side="right")
    inside: npt.NDArray[np.bool_] = (passed + domain.starts_inside) % 2 == 1
    return inside


def _ordinals(array: pa.Array[Any], attribute: Attribute) -> Numbers:
    """The ordinals of values that have machine integers for them; anything for NULL."""
    if isinstance(attribute.type, Double):
        bits = array.fill_null(0.0).to_numpy().view(np.int64)
        ranks = np.where(bits >= 0, bits, -(bits & MAGNITUDE))
        return np.where(np.abs(ranks) > INFINITY_RANK, NAN_RANK, ranks)
    if pa.types.is_date32(array.type):
        array = array.cast(pa.int32())
    return array.cast(pa.int64()).fill_null(0).to_numpy()
