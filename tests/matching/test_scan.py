"""The reference index on the inputs that break others."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import headgate as hg
from headgate.matching import ScanIndex
from headgate.schema import (
    BIGINT,
    DOUBLE,
    INT,
    STRING,
    Attribute,
    DecimalType,
    Stream,
)
from headgate.testing.contract import lists, query


def matched(stream: Stream, where: str, rows: object) -> list[bool]:
    """Which of the rows match a single condition."""
    return [
        bool(ids) for ids in lists(ScanIndex.build(stream, [query(stream, "q", where)]).match(rows))
    ]


def test_nan_is_a_value_in_arrow_and_null_in_pandas() -> None:
    """NaN is above every number; a pandas NaN is no number at all."""
    stream = Stream("s", (Attribute("d", DOUBLE),))
    values = [1.0, np.nan, np.inf, -0.0]
    assert matched(stream, "d > 1e308", pa.table({"d": values})) == [False, True, True, False]
    assert matched(stream, "d > 1e308", pd.DataFrame({"d": values})) == [False, False, True, False]
    assert matched(stream, "d IS NULL", pd.DataFrame({"d": values})) == [False, True, False, False]
    assert matched(stream, "d = 0", pa.table({"d": values})) == [False, False, False, True]


def test_mixed_numbers_compare_exactly() -> None:
    """BIGINT, DECIMAL and DOUBLE attributes compare as mathematical numbers."""
    stream = Stream(
        "s",
        (Attribute("b", BIGINT), Attribute("d", DOUBLE), Attribute("p", DecimalType(10, 2))),
    )
    rows = [
        {"b": 2**53 + 1, "d": 2.0**53, "p": Decimal("0.10")},
        {"b": 2**53, "d": 2.0**53, "p": Decimal("0.50")},
        {"b": 0, "d": 0.1, "p": Decimal("0.10")},
        {"b": 0, "d": 0.5, "p": Decimal("0.50")},
        {"b": None, "d": float("nan"), "p": None},
    ]
    assert matched(stream, "b = d", rows) == [False, True, False, False, False]
    assert matched(stream, "b > d", rows) == [True, False, False, False, False]
    assert matched(stream, "p < d", rows) == [True, True, True, False, False]
    assert matched(stream, "p = d", rows) == [False, False, False, True, False]


def test_blocks_do_not_show() -> None:
    """More rows than a block holds give the same answer, and so do patterns on them."""
    stream = Stream("s", (Attribute("a", INT), Attribute("t", STRING)))
    rows = pa.table(
        {"a": pa.array(range(70_000), pa.int32()), "t": [f"x{n}" for n in range(70_000)]}
    )
    assert sum(matched(stream, "a >= 32760 AND a < 32770", rows)) == 10
    assert sum(matched(stream, "t LIKE 'x1%9'", rows)) == sum(
        f"x{n}".startswith("x1") and f"x{n}".endswith("9") for n in range(70_000)
    )


def test_dead_rows_between_blocks() -> None:
    """Events that cannot be read keep their numbers, wherever they stand."""
    stream = Stream("s", (Attribute("a", INT),))
    rows: list[dict[str, object]] = [{"a": n} for n in range(70_000)]
    for bad in (0, 32_767, 32_768, 69_999):
        rows[bad] = {"a": "x"}
    index = ScanIndex.build(
        stream, [query(stream, "q", "a % 2 = 0".replace("a % 2 = 0", "a >= 0"))]
    )
    matches = index.match(rows)
    assert sorted(matches.errors) == [0, 32_767, 32_768, 69_999]
    assert [len(ids) for ids in lists(matches)] == [
        int(n not in matches.errors) for n in range(70_000)
    ]


def test_only_unreadable_events() -> None:
    """A batch in which nothing can be read has no matches and all the reasons."""
    stream = Stream("s", (Attribute("a", INT),))
    matches = ScanIndex.build(stream, [query(stream, "q", "a = 1")]).match([{"a": "x"}] * 3)
    assert lists(matches) == [[], [], []]
    assert len(matches.errors) == 3


def test_large_lists_and_long_trees() -> None:
    """IN with 5,000 values and a condition of 300,000 characters are matched as they stand."""
    stream = Stream("s", (Attribute("a", INT), Attribute("t", STRING)))
    listed = ", ".join(str(3 * n) for n in range(5_000))
    rows = [{"a": n, "t": f"v{n}"} for n in range(20)]
    assert matched(stream, f"a IN ({listed})", rows) == [n % 3 == 0 for n in range(20)]
    long = " OR ".join(f"(t = 'v{n}' AND a <> {n + 1})" for n in range(10_000))
    assert len(long) > 300_000
    assert matched(stream, long, rows) == [True] * 20


def test_unknown_kinds_get_a_hint() -> None:
    """A wrong index or stream is named, with what there is."""
    queries = hg.QuerySet(hg.Schema((Stream("s", (Attribute("a", INT),)),)))
    with pytest.raises(hg.HeadgateError, match="did you mean `scan`"):
        hg.build_index(queries, "skan")
    with pytest.raises(hg.HeadgateError, match="no stream `t`"):
        hg.build_index(queries, stream="t")
