"""How often events match, as the reference index says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headgate.matching import ScanIndex
from headgate.queries import Query
from headgate.schema import Stream

TOLERANCE = 1.3


def rate(stream: Stream, queries: Sequence[Query], events: pa.Table) -> float:
    """The share of pairs of a query and an event that match."""
    matches = ScanIndex.build(stream, queries).match(events)
    return matches.total / (len(queries) * events.num_rows)


def share_of_events(stream: Stream, queries: Sequence[Query], events: pa.Table) -> float:
    """The share of events that match a query at least."""
    matches = ScanIndex.build(stream, queries).match(events)
    return float(np.mean(np.diff(matches.offsets) > 0))


def about(target: float, actual: float) -> bool:
    """Is the actual share within the tolerance of its target?"""
    return target / TOLERANCE < actual < target * TOLERANCE
