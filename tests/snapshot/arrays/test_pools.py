"""Texts and cuts: the pools that hold the constants."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.predicate import values_where
from headgate.schema import BIGINT, DOUBLE, DecimalType, Type
from headgate.snapshot.arrays.operands import (
    NUMBERS,
    TEXTS,
    WIDE,
    CutPools,
    decode_cuts,
    pool_of,
)
from headgate.snapshot.arrays.texts import pack, unpack
from tests.snapshot.arrays.objects import TYPES, texts


@given(st.lists(texts), st.integers(0, 4), st.integers(0, 9))
def test_strings_come_back_also_by_range(strings: list[str], start: int, stop: int) -> None:
    packed = pack(strings)
    assert unpack(packed) == strings
    if start <= stop <= len(strings):
        assert unpack(packed, start, stop) == strings[start:stop]


@given(st.lists(texts))
def test_bytes_are_ordered_as_the_strings_are(strings: list[str]) -> None:
    packed = [bytes(value.as_py() or b"") for value in pack(strings).arrow()]
    assert [packed.index(result) for result in sorted(packed)] == [
        strings.index(string) for string in sorted(strings)
    ]


@pytest.mark.parametrize("type_", TYPES, ids=lambda type_: type_.sql)
def test_every_cut_of_a_type_fits_its_pool(type_: Type) -> None:
    """The greatest and the least cut; an end beyond them is infinite, and no cut."""
    low, high = type_.minimum, type_.maximum
    cuts: list[Any] = ["\0", "z"]
    if isinstance(low, int) and isinstance(high, int):
        cuts = [low + 1, high]
        assert values_where(type_, "<=", type_.value(high)).is_everything
        assert values_where(type_, ">", type_.value(high)).is_empty
    pools = CutPools()
    assert pools.add(type_, cuts) == (0, 2)
    assert pools.add(type_, cuts) == (2, 4)
    assert decode_cuts(pools.arrays())[pool_of(type_)] == cuts + cuts


def test_only_what_does_not_fit_64_bits_is_wide() -> None:
    pools = {type_.sql: pool_of(type_) for type_ in TYPES}
    assert [sql for sql, pool in pools.items() if pool == WIDE] == [
        "DECIMAL(19, 19)",
        "DECIMAL(38, 10)",
    ]
    assert [sql for sql, pool in pools.items() if pool == TEXTS] == ["STRING"]
    assert pools["BIGINT"] == pools["DOUBLE"] == NUMBERS
    for type_ in (BIGINT, DOUBLE, DecimalType(18, 0)):
        assert isinstance(type_.maximum, int)
        assert type_.maximum < 2**63


@given(st.lists(st.integers(1 - 10**38, 10**38 - 1), min_size=2, max_size=2))
def test_halves_are_ordered_as_the_numbers_are(numbers: list[int]) -> None:
    pools = CutPools()
    pools.add(DecimalType(38, 0), numbers)
    cuts = pools.arrays()
    halves = list(zip(cuts.wide_high.tolist(), cuts.wide_low.tolist(), strict=True))
    assert (halves[0] < halves[1]) == (numbers[0] < numbers[1])
