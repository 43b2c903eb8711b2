"""Which queries may contain which: those that match all rows that were taken from the others.

An ordinary index finds them, without looking at pairs that have nothing in common.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from headgate.implication.order.classes import Class, Classes
from headgate.implication.order.inside import in_all
from headgate.implication.order.products import Numbers
from headgate.implication.order.rows import Row, Rows
from headgate.matching import kind_of_index
from headgate.predicate import columns, evaluate
from headgate.query import Query, Source
from headgate.schema import Stream

BATCH = 1 << 11  # rows
MATCHED_ROWS = 2  # of a product; the others are for pairs that are left
TRIED_ROWS = 4
MOST_FREE = 24  # columns


def rows_of(found: Classes, stream: Stream) -> Rows:
    """Rows that tell unions apart: where these mention few columns, all have values in some."""
    used = dict.fromkeys(column for one in found.unions for column in columns(one.held))
    return Rows(stream, found.attributes, list(used) if len(used) <= MOST_FREE else [])


def candidates(
    inner: Sequence[Class], outer: Sequence[Class], rows: Rows, stream: Stream, most: int
) -> Iterator[tuple[Numbers, Numbers]]:
    """Pairs of places in `inner` and `outer`: all in which the second contains the first, and more.

    A query of `inner` of which no row is known is in none. Past `most` matches of a row and a query
    it raises TooMany.
    """
    source = (Source(stream.name, stream.name),)
    queries = [Query(str(at), source, one.held) for at, one in enumerate(outer)]
    index = kind_of_index("auto").build(stream, queries)
    batch: list[Row] = []
    owners: list[int] = []
    for at, one in enumerate(inner):
        taken = rows.of(one)[: MATCHED_ROWS if one.is_product else None]
        batch += taken
        owners += [at] * len(taken)
        if batch and (len(batch) >= BATCH or at + 1 == len(inner)):
            matches = index.match(batch)
            if matches.errors:
                good = [number for number in range(len(batch)) if number not in matches.errors]
                owners = [owners[number] for number in good]
                matches = index.match([batch[number] for number in good])
            most -= matches.total
            if most < 0:
                raise TooMany
            yield in_all(np.array(owners, np.int64), matches.offsets, matches.positions, len(outer))
            batch, owners = [], []


class TooMany(Exception):
    """There are more candidates than may be looked at."""


def refuted(p: Class, q: Class, rows: Rows) -> bool:
    """Is one of the rows of p, as they are or with one value changed, none of q?"""
    known = rows.of(p)
    mentioned = dict.fromkeys((column.key for column in columns(q.held)), None)
    if any(evaluate(q.held, mentioned | row) is not True for row in known):
        return True
    if not q.is_product or p.is_product:
        return False
    mentioned |= dict.fromkeys((column.key for column in columns(p.held)), None)
    for column, side in q.hull.sides.items():
        for value in rows.outside(column, p.hull.sides.get(column), side):
            for row in known[:TRIED_ROWS]:
                if evaluate(p.held, mentioned | row | {column.key: value}) is True:
                    return True
    return False
