"""`evaluate` has the meaning that the text says."""

from __future__ import annotations

import pytest
from hypothesis import given

from headgate.predicate import evaluate
from headgate.sql import parse_where
from tests.boundaries import STREAM, TYPES, Row
from tests.corpus import SHARDS, cases
from tests.oracles.naive import meaning, naive
from tests.strategies import rows, wheres


@pytest.mark.parametrize("shard", SHARDS)
def test_oracle_evaluate(shard: int) -> None:
    """Every clause has, on every row, the truth value that the naive oracle reads in its text."""
    seen = set()
    for case in cases(shard):
        oracle = meaning(case.text, TYPES)
        for row in case.rows:
            expected = oracle(row)
            seen.add(expected)
            assert evaluate(case.predicate, row) is expected, (case.text, row)
    assert seen == {True, False, None}


@given(wheres(), rows())
def test_oracle_evaluate_shrinking(text: str, row: Row) -> None:
    """The same, by hypothesis, which finds the smallest clause that is wrong."""
    assert evaluate(parse_where(text, STREAM), row) is naive(text, row, TYPES)


@pytest.mark.parametrize(
    "text, row, truth",
    [
        ("volume = 9.007199254740992E15", {"volume": 2**53 + 1}, False),
        ("volume = ratio", {"volume": 2**53 + 1, "ratio": 2.0**53}, False),
        ("ratio = 9007199254740993", {"ratio": 2.0**53}, False),
        ("ratio = 9007199254740993.0", {"ratio": 2.0**53}, True),
        ("ratio = 0.1", {"ratio": 0.1}, True),
        ("qty > 3.5", {"qty": 4}, True),
        ("qty NOT IN (1, NULL)", {"qty": 2}, None),
        ("qty NOT IN (1, NULL)", {"qty": 1}, False),
        ("qty BETWEEN 5 AND 3", {"qty": 4}, False),
        ("qty BETWEEN NULL AND 3", {"qty": 4}, False),
        ("ratio > 1e308", {"ratio": float("nan")}, True),
        ("ratio = score", {"ratio": float("nan"), "score": float("nan")}, True),
        ("ratio = 0.0", {"ratio": -0.0}, True),
        ("day = seen", {"day": None, "seen": None}, None),
        (r"side LIKE 'a\\%'", {"side": "a%"}, True),
        (r"side LIKE 'a\%'", {"side": "ab"}, False),
        ("side LIKE '_'", {"side": "𝄞"}, True),
        ("side < '𝄞'", {"side": "\uffff"}, True),
        ("side LIKE 'a%a'", {"side": "a"}, False),
        ("side ILIKE 'Ä%'", {"side": "äpfel"}, True),
        ("side ILIKE '%SS%'", {"side": "straße"}, False),
        ("side ILIKE 'σας'", {"side": "ΣΑΣ"}, True),
        ("COALESCE(qty > 3, TRUE)", {"qty": None}, True),
        ("(qty > 3) IS NOT FALSE", {"qty": None}, True),
    ],
)
def test_contract(text: str, row: Row, truth: bool | None) -> None:
    """The corners of the contract, one by one, for the product and for the oracle alike."""
    assert evaluate(parse_where(text, STREAM), row) is truth
    assert naive(text, row, TYPES) is truth
