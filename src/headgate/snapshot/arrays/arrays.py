"""Nested dataclasses of arrays, flat by name: `atoms.cuts.numbers` and so on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    T = TypeVar("T", bound=DataclassInstance)
else:
    T = TypeVar("T")

Arrays = Mapping[str, npt.NDArray[Any]]


def named_arrays(encoded: DataclassInstance, prefix: str = "") -> dict[str, npt.NDArray[Any]]:
    """Every array under its path of field names.

    >>> from headgate.snapshot.arrays.texts import pack
    >>> {name: array.tolist() for name, array in named_arrays(pack(["a"])).items()}
    {'offsets': [0, 1], 'data': [97]}
    """
    found: dict[str, npt.NDArray[Any]] = {}
    for field in fields(encoded):
        value, name = getattr(encoded, field.name), prefix + field.name
        if isinstance(value, np.ndarray):
            found[name] = value
        else:
            found.update(named_arrays(value, f"{name}."))
    return found


def assembled(template: T, arrays: Arrays, prefix: str = "") -> T:
    """The dataclass of the template's shape that holds these arrays."""
    values: dict[str, Any] = {}
    for field in fields(template):
        value, name = getattr(template, field.name), prefix + field.name
        inner = not isinstance(value, np.ndarray)
        values[field.name] = assembled(value, arrays, f"{name}.") if inner else arrays[name]
    return replace(template, **values)
