"""Arrays that nothing wrong was found in can be decoded, whatever was done to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.schema import Schema
from headgate.snapshot.arrays import EncodedQueries, decode_queries, encode_queries, find_flaw
from headgate.snapshot.arrays.validate import find_text_flaw
from headgate.snapshot.files import assemble_arrays, flatten_arrays
from tests.snapshot.arrays.test_queries import declared, written

SCHEMA = declared().schema
ENCODED = encode_queries(written(declared()), SCHEMA)
ARRAYS = flatten_arrays(ENCODED)
FILLED = sorted(name for name, values in ARRAYS.items() if len(values))


def changed(name: str, values: np.ndarray[Any, Any]) -> EncodedQueries:
    return assemble_arrays(ENCODED, {**ARRAYS, name: values})


def test_what_was_encoded_has_no_flaw() -> None:
    assert find_flaw(ENCODED, SCHEMA) is None


@given(st.sampled_from(FILLED), st.data())
def test_an_overwritten_entry_is_detected_or_does_no_harm(name: str, data: st.DataObject) -> None:
    values = ARRAYS[name].copy()
    limits = np.iinfo(values.dtype)
    extremes = [limits.min, limits.max, 0, 1, 2, 5, 200]
    place = data.draw(st.integers(0, len(values) - 1))
    values[place] = data.draw(
        st.sampled_from([e for e in extremes if limits.min <= e <= limits.max])
        | st.integers(int(limits.min), int(limits.max))
    )
    encoded = changed(name, values)
    if find_flaw(encoded, SCHEMA) is None:
        assert len(list(decode_queries(encoded, SCHEMA))) == len(ENCODED)


@pytest.mark.parametrize("name", sorted(ARRAYS))
def test_an_array_that_is_too_short_or_too_long_is_detected(name: str) -> None:
    values = ARRAYS[name]
    zero = np.zeros(1, values.dtype)
    assert find_flaw(changed(name, np.concatenate((values, zero))), SCHEMA) is not None or (
        name == "atoms.cuts.numbers"  # a number that no atom uses
    )
    if len(values):
        assert find_flaw(changed(name, values[:-1]), SCHEMA) is not None


@pytest.mark.parametrize(
    ("name", "place", "value", "message"),
    [
        ("stream", 0, 2, "stream: a number is out of range"),
        ("frame", 0, -1, "frame: a number is out of range"),
        ("atoms.columns.stream", 0, 1, "a query mentions a column of another stream"),
        ("stream", 0, 1, "a query and its frame name different streams"),
        ("ids.data", 0, 0xFF, "ids are not UTF-8"),
        ("ids.offsets", 0, 1, "the offsets of ids do not span them"),
        ("ids.offsets", 1, 9, "the offsets of ids go backwards"),
        ("trees.offsets", 1, 0, "a program is empty"),
        ("trees.program", 0, 9999, "a program names an atom that does not exist"),
        ("trees.program", 0, -3, "a program has an unknown entry"),
        ("trees.program", 0, -1, "a program does not leave one value"),
        ("trees.program", 4, -20, "a program does not leave one value"),
        ("atoms.kind", 1, 9, "kind: a number is out of range"),
        ("atoms.code", 1, 9, "form of a set: a number is out of range"),
        ("atoms.column", 1, 99, "column: a number is out of range"),
        ("atoms.column", 0, 1, "an atom has more columns than its kind"),
        ("atoms.second", 1, 0, "an atom has more columns than its kind"),
        ("atoms.end", 1, 99, "an atom's range lies outside its pool"),
        ("atoms.start", 1, -1, "an atom's range lies outside its pool"),
        ("atoms.columns.attribute", 0, 10, "attribute: a number is out of range"),
        ("frames.data", 0, 0x20, "a frame is not a query of the schema"),
    ],
)
def test_the_flaw_is_named(name: str, place: int, value: int, message: str) -> None:
    values = ARRAYS[name].copy()
    values[place] = value
    result = find_flaw(changed(name, values), SCHEMA)
    assert result is not None
    assert result.startswith(message)


def test_a_schema_that_is_not_its_own_is_detected() -> None:
    assert find_flaw(ENCODED, Schema()) == "stream of a column: a number is out of range"


def test_a_string_that_is_cut_inside_a_character_is_detected() -> None:
    values = ARRAYS["atoms.cuts.texts.offsets"]
    texts = ENCODED.atoms.cuts.texts
    inside = int(np.flatnonzero((texts.data & 0xC0) == 0x80)[0])
    moved = np.where(values == values[values > inside][0], inside, values)
    assert (
        find_text_flaw("cuts", type(texts)(moved, texts.data)) == "cuts are cut inside a character"
    )
