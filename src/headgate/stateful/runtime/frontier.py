"""The rows at the ends of buckets, for many buckets at once (`synopses.extremes` one by one)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.predicate import Column
from headgate.schema import Timestamp
from headgate.stateful.analysis.synopses.extremes import Ends, References
from headgate.stateful.runtime.grouping import Grouping, Numbers
from headgate.stateful.runtime.lines import Line, on_one_line

_NULL = np.iinfo(np.int64).min


def frontier(
    values: Mapping[Column, pa.Array[Any]],
    rows: Numbers,
    groups: Grouping,
    ends: Ends,
    zone: Timestamp,
) -> Numbers:
    """Of some rows, whose buckets all have these ends, those that are to be kept."""
    found = []
    for side, highs in ((ends.highs, True), (ends.lows, False)):
        if side.columns:
            found.append(_best(values, rows, groups.of[rows], side, zone, highs=highs))
    if not found:
        return groups.first[np.unique(groups.of[rows])]
    return np.concatenate(found)


def _best(
    values: Mapping[Column, pa.Array[Any]],
    rows: Numbers,
    buckets: Numbers,
    side: References,
    zone: Timestamp,
    *,
    highs: bool,
) -> Numbers:
    """The rows in which the least of the columns is greatest, or the greatest is least.

    A column that is NULL is below all others, and so is a row where nothing else is left.
    """
    lines = on_one_line([(c, values[c].take(rows)) for c in side.columns], zone)
    codes = _below_values(lines)
    place = codes.min(axis=0) if highs else codes.max(axis=0)
    score = place if highs else np.where(place == _NULL, _NULL, -place)
    best = np.full(int(buckets.max()) + 1, _NULL)
    np.maximum.at(best, buckets, score)
    kept = np.flatnonzero(score == best[buckets])
    ways = _ways(side, codes[:, kept] == place[kept])
    return rows[kept[_needed(buckets[kept], ways)]]


def _below_values(lines: Sequence[Line]) -> Numbers:
    """The codes of each line, with NULL below them all."""
    codes = np.stack([line.codes for line in lines])
    if codes.min(initial=0) == _NULL:  # the least BIGINT is the only value with that code
        codes = np.unique(codes, return_inverse=True)[1].reshape(codes.shape)
    for number, line in enumerate(lines):
        if line.valid is not None:
            codes[number] = np.where(line.valid, codes[number], _NULL)
    return codes


def _ways(side: References, attaining: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """With which partners a row joins strictly: one of the columns that attain the end does."""
    strict = np.array(list(side.strict.values()), np.bool_)  # columns × partners
    found: npt.NDArray[np.bool_] = np.any(attaining.T[:, :, None] & strict[None], axis=1)
    return found


def _needed(buckets: Numbers, ways: npt.NDArray[np.bool_]) -> Numbers:
    """Of rows with the same end one for each way, without ways that are stricter than another."""
    patterns, codes = np.unique(ways, axis=0, return_inverse=True)
    codes = codes.reshape(-1)
    key = buckets * len(patterns) + codes
    first: Numbers = np.unique(key, return_index=True)[1]
    if len(patterns) == 1:
        return first
    within: npt.NDArray[np.bool_] = np.all(patterns[:, None] <= patterns[None], axis=2)
    np.fill_diagonal(within, False)
    there = np.zeros((int(buckets.max()) + 1, len(patterns)), np.bool_)
    there[buckets[first], codes[first]] = True
    beaten = there @ within  # a pattern of the bucket is better than this one
    needed: Numbers = first[~beaten[buckets[first], codes[first]]]
    return needed
