"""Nested groups of arrays in one file, and back again as views of its map.

A group is a NamedTuple or a dataclass of this package. Its fields are arrays, numbers, texts, lists
of them, or groups. The file does not know any group: it has the module and the name of each, and
the names of its fields. So a group may change; what was packed before is then refused.

    8 bytes         the length of the header
    header          JSON: the groups with their fields, and where each array begins
    arrays          one behind the other, each at a multiple of 64 bytes

It is no form to exchange: whoever writes such a file decides which classes are made of it, and what
the arrays hold is not looked over. It is read only from where no other user can write.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib import import_module
from mmap import mmap
from typing import Any, BinaryIO, overload

import numpy as np
import numpy.typing as npt

from headgate.snapshot.arrays.operands import split_wide
from headgate.snapshot.arrays.texts import LENIENT, Texts, pack, unpack

ALIGNMENT = 64  # of a line of the processor's cache
PACKAGE = "headgate."
MAX_LISTED_TEXTS = 4096  # of a list; a longer one stays in the file, and gives one at a time

Array = npt.NDArray[Any]


class PackedArrays:
    """Groups that are ready to be written, with the size that they will have in a file.

    `known` are objects that the file does not hold, but names by their place in this list.

    >>> from headgate.snapshot.arrays.texts import pack
    >>> from io import BytesIO
    >>> file = BytesIO()
    >>> packed = PackedArrays(pack(["a", "bc"]))
    >>> packed.write(file)
    >>> len(file.getvalue()) == packed.size
    True
    >>> unpack(load_arrays(file.getvalue()))
    ['a', 'bc']
    """

    def __init__(self, group: object, known: Sequence[object] = ()) -> None:
        self._arrays: list[Array] = []
        self._known = {(type(item), item): place for place, item in enumerate(known)}
        tree = self._describe(group)
        # where each array begins behind the header, at a multiple of the alignment
        sizes = [_align(array.nbytes) for array in self._arrays]
        starts = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))).tolist()
        listed = [
            [array.dtype.str, list(array.shape), start]
            for array, start in zip(self._arrays, starts, strict=False)
        ]
        header = json.dumps({"tree": tree, "arrays": listed}).encode()
        # spaces up to the first array
        self._header = header.ljust(_align(8 + len(header)) - 8)
        self.size = 8 + len(self._header) + starts[-1]

    def write(self, file: BinaryIO) -> None:
        """Write the file."""
        file.write(len(self._header).to_bytes(8, "little"))
        file.write(self._header)
        for array in self._arrays:
            file.write(array.reshape(-1).view(np.uint8).data)
            file.write(bytes(_align(array.nbytes) - array.nbytes))

    def _describe(self, value: object) -> Any:
        """Return a value as JSON, in which arrays are numbers."""
        if isinstance(value, np.ndarray):
            self._arrays.append(np.ascontiguousarray(value))
            return {"array": len(self._arrays) - 1}
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | float | str):
            return {"value": value}
        if isinstance(value, int):
            return {"value": value}
        place = self._find_known(value)
        if place is not None:
            return {"known": place}
        if is_dataclass(value) or hasattr(value, "_fields"):
            return self._describe_group(value)
        if isinstance(value, list | tuple | TextList):
            return self._describe_list(value)
        raise TypeError(f"{type(value).__name__} cannot be packed")

    def _find_known(self, value: object) -> int | None:
        try:
            return self._known.get((type(value), value))
        except TypeError:  # not hashable, as all that holds arrays
            return None

    def _describe_group(self, group: Any) -> Any:
        name = f"{type(group).__module__}:{type(group).__qualname__}"
        members = {field: self._describe(getattr(group, field)) for field in _list_fields(group)}
        return {"group": name, "fields": members}

    def _describe_list(self, items: Sequence[object]) -> Any:
        # many texts or numbers as arrays
        texts = [item for item in items if isinstance(item, str)]
        if texts and len(texts) == len(items):
            packed = items.texts if isinstance(items, TextList) else pack(texts)
            return {"texts": [self._describe(packed.offsets), self._describe(packed.data)]}
        numbers = [item for item in items if type(item) is int]
        if numbers and len(numbers) == len(items):
            return {"numbers": [self._describe(half) for half in split_wide(numbers)]}
        kind = "tuple" if isinstance(items, tuple) else "list"
        return {kind: [self._describe(item) for item in items]}


def load_arrays(content: mmap | bytes, known: Sequence[object] = ()) -> Any:
    """Return the groups in a file, their arrays as views of its content.

    Raise ValueError if a group has other fields than when it was packed.
    """
    length = int.from_bytes(bytes(memoryview(content)[:8]), "little")
    header = json.loads(bytes(memoryview(content)[8 : 8 + length]))
    arrays = [
        np.frombuffer(content, dtype, int(np.prod(shape)), 8 + length + start).reshape(shape)
        for dtype, shape, start in header["arrays"]
    ]
    return _assemble(header["tree"], arrays, known)


def _assemble(tree: Any, arrays: Sequence[Array], known: Sequence[object]) -> Any:
    """Return the value that a part of the header describes."""
    match tree:
        case {"array": number}:
            return arrays[number]
        case {"value": value}:
            return value
        case {"known": place}:
            return known[place]
        case {"group": name, "fields": members}:
            return _assemble_group(
                name, {field: _assemble(part, arrays, known) for field, part in members.items()}
            )
        case {"texts": [offsets, data]}:
            texts = Texts(_assemble(offsets, arrays, known), _assemble(data, arrays, known))
            return unpack(texts) if len(texts) <= MAX_LISTED_TEXTS else TextList(texts)
        case {"numbers": [high, low]}:
            halves = (_assemble(half, arrays, known).tolist() for half in (high, low))
            return [(high << 64) | low for high, low in zip(*halves, strict=True)]
        case {"tuple": parts}:
            return tuple(_assemble(part, arrays, known) for part in parts)
        case {"list": parts}:
            return [_assemble(part, arrays, known) for part in parts]
    raise ValueError(f"{tree} describes nothing")


def _assemble_group(name: str, members: Mapping[str, Any]) -> Any:
    module, _, qualified = name.partition(":")
    if not module.startswith(PACKAGE):
        raise ValueError(f"{name} is no group of this package")
    group = getattr(import_module(module), qualified, None)
    if group is None or set(_list_fields(group)) != set(members):
        raise ValueError(f"{name} has other fields now")
    return group(**members)


def _list_fields(group: Any) -> Sequence[str]:
    """Return the names of the fields of a group or of its class."""
    if hasattr(group, "_fields"):
        names: Sequence[str] = group._fields
        return names
    return [field.name for field in fields(group)]


def _align(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


class TextList(Sequence[str]):
    """Strings in arrays, as a sequence that makes one at a time.

    >>> from headgate.snapshot.arrays.texts import pack
    >>> texts = TextList(pack(["a", "né", "z"]))
    >>> texts[1], texts[-1], texts[:2], len(texts)
    ('né', 'z', ['a', 'né'], 3)
    """

    def __init__(self, texts: Texts) -> None:
        self.texts = texts
        # as Python reads single numbers and bytes from it fastest
        self._offsets, self._data = texts.offsets.data, texts.data.data

    def __len__(self) -> int:
        return len(self.texts)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self[number] for number in range(*place.indices(len(self)))]
        number = place + len(self) if place < 0 else place
        if not 0 <= number < len(self):
            raise IndexError(f"text {place} of {len(self)}")
        start, end = self._offsets[number], self._offsets[number + 1]
        return bytes(self._data[start:end]).decode("utf-8", LENIENT)
