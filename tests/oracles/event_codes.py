"""The codes of a typed batch, value by value: Python objects, their ordinals, and a binary search.

It shares nothing with the kernels, nor with the path that encodes a column at a time.
"""

from __future__ import annotations

from bisect import bisect_right

import pyarrow as pa

from headgate.matching.encoding.code_book import CodeBook

RowCodes = list[dict[int, int]]  # by row: the code of each column that is not NULL


def encode_by_value(book: CodeBook, table: pa.RecordBatch, first: int, rows: int) -> RowCodes:
    """Return the codes of some rows of a batch in which attributes have their names and types."""
    codes: RowCodes = [{} for _ in range(rows)]
    for number, regions in enumerate(book.regions):
        column = regions.column
        if column.name not in table.schema.names:
            continue
        cuts = [int(cut) if not isinstance(cut, str) else cut for cut in regions.cuts]
        for row, value in enumerate(table.column(column.name).slice(first, rows).to_pylist()):
            if value is not None:
                codes[row][number] = bisect_right(cuts, column.type.ordinal(value)) + 1
    return codes
