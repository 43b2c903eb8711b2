"""JSON lines: what is an event, where its attributes stand, and what becomes of everything else."""

from __future__ import annotations

import sys

import pytest

from headgate.errors import UsageError
from headgate.events import DeadLetter, parse_json_lines
from headgate.events.batch import MAX_RECORD
from headgate.events.json_lines import MAX_DEPTH
from headgate.schema import INT, STRING
from tests.events.helpers import parse, reasons, rows, stream, values

ONE = stream(v=INT)

LINES = [
    ('{"v": 1', "broken JSON: Expecting ',' delimiter at character 8"),
    ("{'v': 1}", "broken JSON: "),
    ("v", "broken JSON: Expecting value at character 1"),
    ('{"v": 1}{"v": 2}', "more than one document on the line"),
    ('{"v": 1} {"v": 2}', "more than one document on the line"),
    ('{"v": 1},', "broken JSON: ',' after the end of the document"),
    ('[{"v": 1}]', "an array, not an object"),
    ("3", "3, not an object"),
    ('"v"', "'v', not an object"),
    ("null", "null, not an object"),
    (b'{"v": "\xff"}', "not UTF-8: byte 8 is 0xff"),
    (b'{"v": "\xed\xa0\x80"}', "not UTF-8: byte 8 is 0xed"),
    ('{"v": "\t"}', "broken JSON: Invalid control character at character 8"),
    ("\u00a0{}", "broken JSON: Expecting value at character 1"),
    ('{"v": 01}', "broken JSON: "),
    ('{"v": +1}', "broken JSON: "),
]


@pytest.mark.parametrize(("line", "reason"), LINES)
def test_line_that_is_no_event(line: str | bytes, reason: str) -> None:
    """Whatever is not one object becomes one dead letter, and its neighbours stay events."""
    batch = parse(ONE, '{"v": 1}', line, '{"v": 2}')
    assert reasons(batch)[0].startswith(reason)
    assert len(batch.dead) == 1
    assert values(batch) == [1, 2]
    assert batch.events.tolist() == [0, 2]


def test_dead_letter_says_where_and_what() -> None:
    """Lines count from 1 and include blank ones; events count from 0 and do not."""
    batch = parse_json_lines(
        [b'{"v": 1}\r\n', b" \t\r\n", b"oops\r\n", b'{"v": 2}\n'],
        ONE,
        source="events.jsonl",
        first_line=11,
        first_event=5,
    )
    reason = "broken JSON: Expecting value at character 1"
    assert batch.dead == (DeadLetter("events.jsonl", 13, reason, "oops", 6),)
    assert batch.events.tolist() == [5, 7]
    assert (batch.blank, batch.total) == (1, 4)


def test_keys_ignore_case_and_extra_keys_are_ignored() -> None:
    """A key is an attribute's in any case; a column has the declared name."""
    batch = parse(stream(Price=INT), '{"PRICE": 1, "x": {"y": []}}', '{"price": 2}', '{"Price": 3}')
    assert rows(batch) == [{"Price": 1}, {"Price": 2}, {"Price": 3}]


@pytest.mark.parametrize(
    "line",
    ['{"v": 1, "v": 2}', '{"v": 1, "V": 2}', '{"v": null, "V": null}', '{"V": 1, "V": 1}'],
)
def test_attribute_given_twice(line: str) -> None:
    """An attribute with two values has none that could be trusted."""
    assert reasons(parse(ONE, line)) == ["attribute `v` given twice"]


def test_repeated_keys_that_nobody_uses_do_no_harm() -> None:
    """Only attributes in use are looked at."""
    assert values(parse(ONE, '{"v": 1, "w": 1, "w": 2, "o": {"v": 1, "v": 2}}')) == [1]


def test_nested_attributes() -> None:
    """A dotted attribute is found in objects and under the flat key, in any case."""
    declared = stream(a__b=INT, a__c__d=INT, e=INT)
    batch = parse(
        declared,
        '{"a": {"b": 1, "c": {"d": 2, "x": 0}}, "e": 3}',
        '{"A": {"B": 1}, "a.c.D": 2}',
        '{"a": null}',
        '{"a": {"c": null}}',
        "{}",
    )
    assert [tuple(row.values()) for row in rows(batch)] == [
        (1, 2, 3),
        (1, 2, None),
        (None, None, None),
        (None, None, None),
        (None, None, None),
    ]
    assert batch.table.schema.names == ["a.b", "a.c.d", "e"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"a": 3}', "`a` is 3, not an object"),
        ('{"a": [{"b": 1}]}', "`a` is an array, not an object"),
        ('{"a": {"b": 1}, "a.b": 1}', "attribute `a.b` given twice"),
        ('{"a": {"b": 1}, "A": {}}', "attribute `a` given twice"),
        ('{"a": {"b": 1}, "a": {}}', "attribute `a` given twice"),
        ('{"a": {"b": 1, "B": 1}}', "attribute `a.b` given twice"),
        ('{"a": {"b": 1, "b": 1}}', "attribute `a.b` given twice"),
        ('{"a": {"b": {"c": 1}}}', "`a.b` is an object, which is not an INT"),
    ],
)
def test_nested_attribute_in_doubt(line: str, reason: str) -> None:
    """A path that leads nowhere, or to two places, makes a dead letter."""
    assert reasons(parse(stream(a__b=INT), line)) == [reason]


def test_path_that_begins_with_an_attribute_is_flat() -> None:
    """`a.b` beside an attribute `a` can only be the flat key."""
    batch = parse(stream(a=STRING, a__b=INT), '{"a": "x", "a.b": 1}')
    assert rows(batch) == [{"a": "x", "a.b": 1}]


def test_byte_order_mark_is_skipped_at_the_start_only() -> None:
    """A BOM belongs to the file, not to its first event."""
    assert values(parse(ONE, b'\xef\xbb\xbf{"v": 1}')) == [1]
    assert parse(ONE, b"\xef\xbb\xbf\n").blank == 1
    assert len(parse(ONE, "{}", b'\xef\xbb\xbf{"v": 1}').dead) == 1


@pytest.mark.parametrize("deep", ["[" * 100_000, '{"a":' * 100_000, '{"v": ' + "[" * 100_000])
def test_deep_nesting_is_a_dead_letter(deep: str) -> None:
    """Depth is bounded by a number, not by the stack."""
    assert reasons(parse(ONE, deep)) == [f"nested more than {MAX_DEPTH} deep"]


def test_depth_does_not_depend_on_the_caller() -> None:
    """The deepest line that is allowed is read from a deep stack too."""
    inner = MAX_DEPTH - 1
    line = '{"v": 1, "w": ' + "[" * inner + '"[[[{{{"' + "]" * inner + ', "x": "\\"[["}'

    def at_depth(depth: int) -> list[int]:
        return at_depth(depth - 1) if depth else values(parse(ONE, line))

    assert at_depth(sys.getrecursionlimit() // 3) == [1]
    too_deep = '{"w": ' + "[" * (inner + 1) + "]" * (inner + 1) + "}"
    assert reasons(parse(ONE, too_deep)) == [f"nested more than {MAX_DEPTH} deep"]


def test_brackets_in_strings_are_not_depth() -> None:
    """Only structure nests."""
    assert values(parse(ONE, '{"v": 1, "w": "' + "[{" * 1_000 + '"}')) == [1]


def test_raw_text_is_capped() -> None:
    """A dead letter keeps the beginning of the event."""
    (letter,) = parse(ONE, '{"v": "' + "é" * 5_000 + '"}').dead
    assert len(letter.raw) == 1_000
    assert letter.raw.endswith("é…")
    assert len(letter.reason) < 120


def test_line_over_the_limit_is_not_parsed() -> None:
    """A line has a greatest length, without its end."""
    fitting = b'{"v": 1}'.ljust(MAX_RECORD)
    assert values(parse(ONE, fitting + b"\r\n")) == [1]
    assert reasons(parse(ONE, fitting + b" \n")) == ["longer than 16,777,216 bytes"]


def test_no_columns_still_count_rows() -> None:
    """A query that reads no attribute still wants every event."""
    batch = parse(ONE, '{"v": 1}', "", "{}", "x", columns=[])
    assert batch.events.tolist() == [0, 1]
    assert batch.total == 4
    assert batch.table.num_columns == 0


def test_columns_come_in_declared_order() -> None:
    """The order of the request does not matter, and an unknown name is refused with a hint."""
    declared = stream(a=INT, b=INT, c=INT)
    batch = parse(declared, '{"a": 1, "b": "x", "c": 3}', columns=["C", "a"])
    assert rows(batch) == [{"a": 1, "c": 3}]
    with pytest.raises(UsageError, match="no attribute `d`"):
        parse(declared, "{}", columns=["d"])


def test_empty_block() -> None:
    """No lines give an empty batch with the right columns."""
    batch = parse(ONE)
    assert (batch.total, batch.table.num_rows) == (0, 0)
    assert batch.table.schema.field("v").type == INT.arrow
