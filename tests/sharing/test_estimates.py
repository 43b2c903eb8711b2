"""What is said of a stream from a sample: shares with their error, and bytes."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from headgate.errors import NetworkError
from headgate.schema import BIGINT, DATE, DOUBLE, INT, STRING, Attribute, DecimalType, Stream
from headgate.sharing.sampled_stream import (
    SampledStream,
    count_bits,
    estimate_share,
    measure_bytes,
    pack_bits,
    unite_bits,
)
from tests.boundaries import STREAM
from tests.sharing.cases import rows


@pytest.mark.parametrize("size", [100, 1_000, 4_096])
@pytest.mark.parametrize("share", [0.002, 0.01, 0.05, 0.3, 0.5, 0.99])
def test_coverage(size: int, share: float) -> None:
    """The true share lies within the ends in about 99 of 100 samples, by binomial weights.

    Wilson's interval is right on average over shares; for one near 0 or 1 it may be some less.
    """
    inside = 0.0
    for result in range(size + 1):
        estimate = estimate_share(result, size)
        if estimate.low <= share <= estimate.high:
            inside += math.exp(_log_binomial(size, result, share))
    assert inside >= (0.985 if size * min(share, 1 - share) >= 10 else 0.95)


def _log_binomial(size: int, result: int, share: float) -> float:
    ways = math.lgamma(size + 1) - math.lgamma(result + 1) - math.lgamma(size - result + 1)
    return ways + result * math.log(share) + (size - result) * math.log1p(-share)


@pytest.mark.parametrize("size", [1, 2, 63, 64, 1_000])
def test_ends(size: int) -> None:
    """Ends are in order, lie from 0 to 1, and where a sample has none or all, are that."""
    for result in range(0, size + 1, max(1, size // 50)):
        one = estimate_share(result, size)
        assert 0 <= one.low <= one.value <= one.high <= 1
        assert one.value == result / size
    assert estimate_share(0, size).low == 0
    assert estimate_share(size, size).high == 1


def test_bits() -> None:
    """A set of rows keeps its size through packing and union."""
    random = np.random.default_rng(1)
    for size in (1, 63, 64, 65, 200):
        one, other = random.random((2, size)) < 0.3
        assert count_bits(pack_bits(one)) == one.sum()
        both = unite_bits([pack_bits(one), pack_bits(other)], -(-size // 64))
        assert count_bits(both) == (one | other).sum()
    assert count_bits(unite_bits([], 3)) == 0


def test_bytes() -> None:
    """By type; a text by its letters in UTF-8; NULL as a value without letters."""
    stream = Stream(
        "s",
        (
            Attribute("a", INT),
            Attribute("b", BIGINT),
            Attribute("c", DOUBLE),
            Attribute("d", DATE),
            Attribute("e", DecimalType(10, 2)),
            Attribute("f", STRING),
        ),
    )
    row = {"a": 1, "b": 2**53 + 1, "c": math.nan, "d": None, "e": Decimal("1.25"), "f": "𝄞ä"}
    table = pa.Table.from_pylist([row, dict.fromkeys(row)], schema=_schema(stream))
    assert measure_bytes(table, stream, stream.names) == 2 * (4 + 8 + 8 + 4 + 16 + 4) + 6
    assert measure_bytes(table, stream, []) == 0
    assert SampledStream(stream, 1.0, table).measure_width(stream.names) == 44 + 3
    given = SampledStream(stream, 1.0, table, row_bytes=94.0)
    assert given.measure_width(stream.names) == pytest.approx(94)
    assert given.measure_width(["a"]) == pytest.approx(8)


def _schema(stream: Stream) -> pa.Schema:
    return pa.schema([(attribute.name, attribute.type.arrow) for attribute in stream])


@pytest.mark.parametrize("rate", [-1.0, math.nan, math.inf])
def test_rate(rate: float) -> None:
    """A rate is from 0 on."""
    with pytest.raises(NetworkError, match="the rate of stream trades is"):
        SampledStream(STREAM, rate, rows(0))


def test_empty() -> None:
    """Nothing can be said from no rows."""
    with pytest.raises(NetworkError, match="the sample of stream trades has no rows"):
        SampledStream(STREAM, 1.0, rows(0).slice(0, 0))
