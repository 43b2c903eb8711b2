"""`encode_present` is `encode_column` without the rows that are NULL."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from headgate.events.columns import encode_column, encode_present
from headgate.testing.generate import every_type, random_rows

STREAM = every_type()
ROWS = random_rows(Random(3), STREAM, 300)
TABLE = pa.RecordBatch.from_pylist(
    [dict(row) for row in ROWS], schema=pa.schema([(a.name, a.type.arrow) for a in STREAM])
)


@pytest.mark.parametrize("name", STREAM.names)
@pytest.mark.parametrize("part", [(0, 300), (1, 299), (7, 1), (13, 64), (300, 0)])
def test_agree_present(name: str, part: tuple[int, int]) -> None:
    """Of every type, also where a slice begins in the middle of a byte of Arrow's validity."""
    array = TABLE.column(name).slice(*part)
    type_ = STREAM[name].type
    for one in (array, array.drop_null()):
        rows, result = encode_present(one, type_)
        whole = encode_column(one, type_)
        values = [None if value is None else value for value in whole.values]
        assert rows.tolist() == [n for n, value in enumerate(values) if value is not None]
        assert result.valid is None
        assert list(map(repr, result.values)) == [repr(v) for v in values if v is not None]
