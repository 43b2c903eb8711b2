"""Groups of arrays come back from a file as they were."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

from headgate.snapshot.arrays import encode_queries
from headgate.snapshot.arrays.texts import pack
from headgate.snapshot.packed_arrays import (
    ALIGNMENT,
    MAX_LISTED_TEXTS,
    PackedArrays,
    TextList,
    load_arrays,
)
from tests.snapshot.sets import SCHEMA, varied


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    pair: Pair
    items: tuple[Any, ...]
    name: str
    limit: float


def write(packed: PackedArrays) -> bytes:
    file = io.BytesIO()
    packed.write(file)
    content = file.getvalue()
    assert len(content) == packed.size
    return content


def assert_same(actual: Any, expected: Any) -> None:
    """Equal, of the same types, down to the last array."""
    if isinstance(expected, np.ndarray):
        assert actual.dtype == expected.dtype
        np.testing.assert_array_equal(actual, expected)
    elif is_dataclass(expected):
        assert type(actual) is type(expected)
        for field in fields(expected):
            assert_same(getattr(actual, field.name), getattr(expected, field.name))
    elif isinstance(expected, list | tuple):
        assert type(actual) is type(expected)
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            assert_same(one, other)
    else:
        assert type(actual) is type(expected)
        assert actual == expected


KNOWN = (("a", 1), SCHEMA)
GROUP = Group(
    Pair(np.arange(5, dtype=np.int32), np.array([[True, False]] * 3)),
    (
        np.zeros(0, np.uint64),
        None,
        ["a", "né", "\ud800", ""],
        [1, -1, 2**90, -(2**100)],
        [],
        (),
        np.zeros((0, 4)),
        SCHEMA,
    ),
    "x",
    float("inf"),
)


@pytest.fixture(autouse=True)
def groups_of_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.snapshot.packed_arrays.PACKAGE", ("headgate.", "tests."))


def test_groups_come_back_as_they_were() -> None:
    content = write(PackedArrays(GROUP, KNOWN))
    loaded = load_arrays(content, KNOWN)
    assert_same(loaded, GROUP)
    assert loaded.items[-1] is SCHEMA


def test_encoded_queries_come_back_as_they_were() -> None:
    encoded = encode_queries(varied(), SCHEMA)
    assert_same(load_arrays(write(PackedArrays(encoded))), encoded)


def test_arrays_are_views_that_begin_at_lines_of_the_cache() -> None:
    content = bytearray(write(PackedArrays(GROUP, KNOWN)))
    start = np.frombuffer(content, np.uint8).ctypes.data
    loaded = load_arrays(content, KNOWN)  # type: ignore[arg-type]
    for array in (*loaded.pair, loaded.items[0]):
        assert array.flags.writeable
        assert (array.ctypes.data - start) % ALIGNMENT == 0


def test_numbers_of_numpy_and_arrays_that_are_not_contiguous() -> None:
    pair = Pair(np.int64(3), np.arange(10)[::2])
    loaded = load_arrays(write(PackedArrays(pair)))
    assert_same(loaded, Pair(3, np.arange(0, 10, 2)))


def test_many_texts_stay_in_the_file() -> None:
    texts = [f"text {number}" for number in range(MAX_LISTED_TEXTS + 1)]
    loaded = load_arrays(write(PackedArrays(Pair(texts, 1)))).left
    assert isinstance(loaded, TextList)
    assert list(loaded) == texts
    again = load_arrays(write(PackedArrays(Pair(loaded, 1)))).left
    assert list(again) == texts
    with pytest.raises(IndexError):
        loaded[len(texts)]
    assert pack(loaded).offsets.tolist() == loaded.texts.offsets.tolist()


def test_what_is_no_group_is_refused() -> None:
    with pytest.raises(TypeError, match="set cannot be packed"):
        PackedArrays(Pair({1, 2}, 1))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"limit"', '"limits"', "has other fields now"),
        ("Group", "Gone", "has other fields now"),
        ("tests.snapshot", "os.sss.ssspath", "is no group of this package"),
        ('"tuple"', '"tulpe"', "describes nothing"),
    ],
)
def test_a_group_that_has_changed_is_refused(old: str, new: str, said: str) -> None:
    content = write(PackedArrays(GROUP, KNOWN))
    length = int.from_bytes(content[:8], "little")
    header = content[8 : 8 + length].decode().rstrip().replace(old, new)
    assert json.loads(header)
    # in the same length, since arrays are counted from its end
    changed = content[:8] + header.encode().ljust(length)[:length] + content[8 + length :]
    with pytest.raises(ValueError, match=said):
        load_arrays(changed, KNOWN)
