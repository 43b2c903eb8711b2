"""What a run did, when it has ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from headgate.errors import SnapshotError
from headgate.spark.streaming.log import Counts
from headgate.spark.streaming.sinks import Memory, Sink
from headgate.spark.streaming.tally import Tally
from headgate.spark.streaming.versions import Followed

TOP = 5  # queries that a result names as busiest, and as silent


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """What a run did; `total` counts all runs of the same state.

    `silent` are the queries of the last version that matched nothing in this run. `matches`, `dead`
    and, by the id of the query, `answers` are the rows of a memory sink.
    """

    tally: Tally
    total: Counts
    version: int
    queries: int
    busiest: list[tuple[str, int]]
    silent: int
    silent_ids: list[str]
    places: dict[str, str]
    matches: pa.Table | None = None
    dead: pa.Table | None = None
    answers: dict[str, pa.Table] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        counts, seconds = self.tally.counts, max(self.tally.seconds, 0.001)
        return {
            **_counted(counts),
            "batches": self.tally.batches,
            "seconds": round(seconds, 3),
            "events_per_second": round(counts.events / seconds),
            "matches_per_second": round(counts.matches / seconds),
            "version": self.version,
            "queries": self.queries,
            "busiest": [{"id": name, "matches": hits} for name, hits in self.busiest],
            "silent": self.silent,
            "continuous": {
                query_id: progress.as_json() for query_id, progress in self.tally.continuous.items()
            },
            "links": {name: one.as_json() for name, one in self.tally.links.items()},
            "unknown": self.tally.unknown,
            "ended_by": self.tally.ended_by,
            "all_runs": _counted(self.total),
            "output": self.places,
        }


def _counted(counts: Counts) -> dict[str, int]:
    told = asdict(counts)
    return {
        "events": counts.events,
        **{k: told[k] for k in ("matches", "answers", "dead", "blank")},
    }


def hits_of(tally: Tally, queries: Followed) -> Counter[str]:
    """How often each query was matched, under whichever version."""
    hits = Counter[str]()
    for version, seen in tally.hits.items():
        with suppress(SnapshotError):  # an old version may have been deleted meanwhile
            known = queries.ids(version)
            places = np.flatnonzero(seen[: len(known)]).tolist()
            hits.update({known[at]: int(seen[at]) for at in places})
    return hits


def result_of(
    tally: Tally,
    total: Counts,
    version: int,
    ids: Sequence[str],
    hits: Counter[str],
    sink: Sink,
) -> Result:
    """What a run that has ended did; `ids` are those of the queries that it ended with."""
    silent = [query_id for query_id in ids if not hits[query_id]]
    memory = sink if isinstance(sink, Memory) else None
    return Result(
        tally=tally,
        total=total,
        version=version,
        queries=len(ids),
        busiest=[pair for pair in hits.most_common(TOP) if pair[1]],
        silent=len(silent),
        silent_ids=silent[:TOP],
        places={kind: str(path) for kind, path in sink.places().items()},
        matches=None if memory is None else memory.table("matches"),
        dead=None if memory is None else memory.table("dead"),
        answers={} if memory is None else memory.answers(),
    )
