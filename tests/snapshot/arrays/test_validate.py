"""Arrays that nothing wrong was found in can be decoded, whatever was done to them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.queries import Query
from headgate.schema import Schema
from headgate.snapshot.arrays import EncodedQueries, decode_queries, encode_queries, find_flaw
from headgate.snapshot.arrays.atoms import COMPARE, MATCHES, WITHIN
from headgate.snapshot.arrays.texts import pack, unpack
from headgate.snapshot.arrays.trees import Trees
from headgate.snapshot.arrays.validate import MAX_DEPTH, find_text_flaw
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
    assert find_flaw(changed(name, np.concatenate((values, zero))), SCHEMA) is not None
    if len(values):
        assert find_flaw(changed(name, values[:-1]), SCHEMA) is not None


def place_of(kind: int) -> int:
    """The first atom of a kind."""
    return int(np.argmax(ENCODED.atoms.kind == kind))


A_MATCH, A_COMPARISON, A_WITHIN = place_of(MATCHES), place_of(COMPARE), place_of(WITHIN)
IS_NOT_ALLOWED = "which its kind does not allow"


@pytest.mark.parametrize(
    ("name", "place", "value", "message"),
    [
        ("stream", 0, 2, "is 2, which is out of range"),
        ("frame", 0, -1, "is -1, which is out of range"),
        ("stream", 0, 1, "is 1, and its frame names another stream"),
        ("has_metadata", 0, 2, "is 2, which is out of range"),
        ("has_metadata", 2, 0, "is 0, but there is a text"),
        ("ids.data", 0, 0xFF, "is not UTF-8"),
        ("ids.offsets", 1, 9, "is 9, and the next one is less"),
        ("trees.offsets", 0, 1, " does not lead from 0 to "),
        ("trees.offsets", 1, 0, "is 0, as is the next one"),
        ("trees.program", 0, 9999, "is 9999, but there is no such atom"),
        ("trees.program", 0, -3, "is -3, which means nothing"),
        ("trees.program", 0, -16, "is -16, which is an AND or OR of nothing"),
        ("trees.program", 0, -1, "is -1, which takes more values than there are"),
        ("trees.program", 4, -20, "the program of query 1 does not leave one value"),
        ("atoms.kind", 1, 9, "is 9, which is out of range"),
        ("atoms.column", 1, 99, f"is 99, {IS_NOT_ALLOWED}"),
        ("atoms.column", 0, 1, f"is 1, {IS_NOT_ALLOWED}"),
        ("atoms.second", 1, 0, f"is 0, {IS_NOT_ALLOWED}"),
        ("atoms.code", A_COMPARISON, 6, f"is 6, {IS_NOT_ALLOWED}"),
        ("atoms.negated", A_WITHIN, 1, f"is 1, {IS_NOT_ALLOWED}"),
        ("atoms.starts_inside", A_MATCH, 1, f"is 1, {IS_NOT_ALLOWED}"),
        ("atoms.start", A_WITHIN, -1, f"is -1, {IS_NOT_ALLOWED}"),
        ("atoms.end", A_WITHIN, 99, "do not divide atoms.cuts.numbers among the atoms"),
        ("atoms.end", A_MATCH, 99, "is 99, but a pattern is one"),
        ("atoms.column", A_MATCH, 0, "is 0, but a pattern needs a STRING"),
        ("atoms.columns.attribute", 0, 10, "is 10, which is out of range"),
        ("atoms.patterns.kind", 0, 3, "is 3, which is out of range"),
        ("atoms.patterns.escape.data", 0, ord("a"), "is no pattern"),
        ("atoms.cuts.numbers", 0, 2**40, "lies outside the type of its column"),
        ("atoms.cuts.wide_high", 0, 2**63 - 1, "lies outside the type of its column"),
    ],
)
def test_the_flaw_is_named(name: str, place: int, value: int, message: str) -> None:
    values = ARRAYS[name].copy()
    values[place] = value
    result = find_flaw(changed(name, values), SCHEMA)
    assert result is not None
    assert result.startswith(name.removesuffix(".escape.data")) or "atoms.end do not" in result
    assert message in result


@pytest.mark.parametrize("stream", [0, 1])
def test_a_column_of_another_stream_is_detected(stream: int) -> None:
    """On either side of a comparison."""
    columns = ARRAYS["atoms.columns.stream"].copy()
    side = "atoms.second" if stream else "atoms.column"
    attributes = ARRAYS["atoms.columns.attribute"].copy()
    column = ARRAYS[side][place_of(COMPARE)]
    columns[column], attributes[column] = 1, 1
    arrays = {**ARRAYS, "atoms.columns.stream": columns, "atoms.columns.attribute": attributes}
    result = find_flaw(assemble_arrays(ENCODED, arrays), SCHEMA)
    assert result is not None
    assert "an atom on a column that its query does not read" in result


def encode(*wheres: str) -> tuple[EncodedQueries, Schema]:
    """Filters on `trades`."""
    script = declared()
    text = "".join(
        f"CREATE QUERY q{n} AS SELECT * FROM trades WHERE {w};" for n, w in enumerate(wheres)
    )
    return encode_queries(
        [q for q in script.read(text) if isinstance(q, Query)], script.schema
    ), script.schema


@pytest.mark.parametrize(
    ("where", "name"),
    [
        ("qty IN (10, 20, 30)", "numbers"),
        ("ratio BETWEEN -1.5 AND 2", "numbers"),
        ("wide BETWEEN -1 AND 3", "wide_high"),
        ("side BETWEEN 'a' AND 'b'", "texts"),
    ],
)
def test_cuts_that_do_not_ascend_are_detected(where: str, name: str) -> None:
    encoded, schema = encode(where)
    cuts = encoded.atoms.cuts
    if name == "texts":
        replaced = replace(cuts, texts=pack(unpack(cuts.texts)[::-1]))
    else:
        reverse = {
            field: getattr(cuts, field)[::-1] for field in ("numbers", "wide_high", "wide_low")
        }
        replaced = replace(cuts, **reverse)
    flawed = replace(encoded, atoms=replace(encoded.atoms, cuts=replaced))
    assert find_flaw(encoded, schema) is None
    assert find_flaw(flawed, schema) == f"atoms.cuts.{name}[1] is not above the cut before it"


def test_equal_cuts_are_detected() -> None:
    encoded, schema = encode("qty IN (10, 20)")
    encoded.atoms.cuts.numbers[1] = 10
    assert find_flaw(encoded, schema) == "atoms.cuts.numbers[1] is not above the cut before it"


def test_an_atom_that_stands_twice_is_detected() -> None:
    """An index keeps the patterns of a column by number, and would keep the last of two."""
    encoded, schema = encode("side LIKE 'a%'", "side LIKE 'b%'")
    encoded.atoms.start[1], encoded.atoms.end[1] = 0, 1
    assert find_flaw(encoded, schema) == "atoms has an atom twice"


def test_a_frame_with_a_condition_is_detected() -> None:
    encoded, schema = encode("qty > 1")
    frames = pack(["SELECT * FROM trades WHERE qty = 3"])
    flaw = find_flaw(replace(encoded, frames=frames), schema)
    assert flaw == "frames[0] has a WHERE, which stands in trees"
    flaw = find_flaw(replace(encoded, frames=pack(["SELECT"])), schema)
    assert flaw is not None
    assert flaw.startswith("frames: not all are queries of the schema")


def test_a_condition_that_is_too_deep_is_detected() -> None:
    encoded, schema = encode("qty > 1")
    for depth, expected in ((MAX_DEPTH, False), (MAX_DEPTH + 1, True)):
        program = np.array([0, *[-1] * depth], np.int32)
        trees = Trees(np.array([0, len(program)]), program)
        flaw = find_flaw(replace(encoded, trees=trees), schema)
        assert (flaw is not None) == expected


def test_many_operators_may_stand_in_a_condition() -> None:
    side_by_side = " OR ".join(f"(qty = {n} AND ok)" for n in range(2 * MAX_DEPTH))
    encoded, schema = encode(side_by_side)
    assert find_flaw(encoded, schema) is None


def test_a_schema_that_is_not_its_own_is_detected() -> None:
    flaw = find_flaw(ENCODED, Schema())
    assert flaw == "atoms.columns.stream[0] is 0, which is out of range"


def test_a_string_that_is_cut_inside_a_character_is_detected() -> None:
    values = ARRAYS["atoms.cuts.texts.offsets"]
    texts = ENCODED.atoms.cuts.texts
    inside = int(np.flatnonzero((texts.data & 0xC0) == 0x80)[0])
    moved = np.where(values == values[values > inside][0], inside, values)
    flaw = find_text_flaw("cuts", type(texts)(moved, texts.data))
    assert flaw == f"cuts.offsets[3] is {inside}, which is inside a character"
