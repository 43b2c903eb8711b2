"""Laws of three-valued logic that need no oracle."""

from __future__ import annotations

import pytest

from headgate.predicate import evaluate
from headgate.sql import parse_where
from tests.boundaries import STREAM
from tests.corpus import SHARDS, cases


@pytest.mark.parametrize("shard", SHARDS[:2])
def test_three_way_partition(shard: int) -> None:
    """For every row exactly one of p, NOT (p) and (p) IS NULL is TRUE."""
    for case in cases(shard, 250):
        thirds = [
            parse_where(text.format(case.text), STREAM)
            for text in ("{}", "NOT ({})", "({}) IS NULL")
        ]
        for row in case.rows:
            truths = [evaluate(third, row) for third in thirds]
            assert truths.count(True) == 1, (case.text, row, truths)


@pytest.mark.parametrize("shard", SHARDS[2:])
def test_and_narrows_or_widens(shard: int) -> None:
    """AND never adds a match, and OR never removes one."""
    known = cases(shard, 500)
    for one, other in zip(known, known, strict=True):
        both = parse_where(f"({one.text}) AND ({other.text})", STREAM)
        either = parse_where(f"({one.text}) OR ({other.text})", STREAM)
        for row in one.rows + other.rows:
            matches = evaluate(one.predicate, row) is True
            assert matches or evaluate(both, row) is not True, (one.text, other.text, row)
            assert not matches or evaluate(either, row) is True, (one.text, other.text, row)
