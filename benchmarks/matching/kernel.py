"""The kernel of `keyed` alone, next to a bare one that takes nothing but intervals of small codes.

Both start from the codes of events in arrays and write int32 positions into an array that is there
already, on one thread, in processor time. So what the rest of the language costs shows: types,
NULL, programs, patterns, removed queries, parts. Reading and encoding events is left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
import numpy.typing as npt

from benchmarks.harness.experiment import Answer, Contestant, Experiment, Fact, Round, Unit
from benchmarks.matching.scan import checksum
from benchmarks.workloads import Conjunctions, IntegerEvents, generate_begen
from benchmarks.workloads.begen import BegenSpec

EVENTS, MIN_EVENTS = 2_000, 100
KEYED, BARE = "Headgate keyed", "bare kernel"

Matched = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]
Match = Callable[[], Matched]


@contextmanager
def prepare(size: int, scale: float, seed: int) -> Iterator[Round]:
    """Prepare queries of the BE-Tree paper's workload; the scale shrinks queries and events."""
    from benchmarks.rivals.bare import BareIndex

    count, events = max(100, round(size * scale)), max(MIN_EVENTS, round(EVENTS * min(1.0, scale)))
    # compiles
    small = generate_begen(200, BegenSpec(), seed=seed)
    keyed_match(small, small.events(10, seed=seed))
    BareIndex(small)
    queries = generate_begen(count, BegenSpec(), seed=seed)
    drawn = queries.events(events, seed=seed + 1)
    keyed, facts = keyed_match(queries, drawn)
    started = time.process_time()
    bare = BareIndex(queries)
    seconds = time.process_time() - started
    facts |= {
        f"{BARE} at {count:,}, seconds to build": round(seconds, 2),
        f"{BARE} at {count:,}, bytes a query": round(bare.bytes / count),
    }
    runs: dict[str, Match] = {KEYED: keyed, BARE: partial(bare.match, drawn)}
    contestants = tuple(
        Contestant(name, events, partial(summarize, run), run) for name, run in runs.items()
    )
    yield Round(count, contestants, lambda: facts)


def keyed_match(queries: Conjunctions, events: IntegerEvents) -> tuple[Match, dict[str, Fact]]:
    """Return a match by the kernel of `keyed`, and what it took to build the index from arrays."""
    from headgate.matching.encoding.event_columns import EventColumns
    from headgate.matching.keyed.arrays import Appended
    from headgate.matching.keyed.kernels.match import match
    from headgate.matching.keyed.parts import Part, Workspace
    from headgate.matching.keyed.segment import build_segment

    encoded = queries.encode()
    started = time.process_time()
    segment = build_segment(encoded, np.arange(len(encoded)), queries.schema)
    seconds = time.process_time() - started
    part, built = Part.from_segment(segment), segment.built
    (batch,) = events.table().combine_chunks().to_batches()
    codes = segment.encode_events(EventColumns(batch, len(events)))
    workspace = Workspace(segment, len(events))
    nothing = Appended(part.position, np.empty(0, np.int64), np.empty(0, np.int32))
    # grows until all matches fit, before anything is timed
    out = [np.empty(1 << 21, np.int32)]

    def run() -> Matched:
        while True:
            end = match(
                built.programs,
                built.clusters,
                built.grid,
                codes,
                0,
                len(events),
                workspace.scratch,
                part.living,
                nothing,
                out[0],
                workspace.offsets,
            )
            if end == len(events):
                return workspace.offsets, out[0][: workspace.offsets[-1]]
            out[0] = np.empty(2 * len(out[0]), np.int32)

    count = len(queries)
    return run, {
        f"{KEYED} at {count:,}, seconds to build": round(seconds, 2),
        f"{KEYED} at {count:,}, bytes a query": round(built.bytes / count),
    }


def summarize(run: Match) -> Answer:
    """Return how many pairs match, and a sum that depends on every one of them."""
    offsets, positions = run()
    return checksum((np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)), positions))


KEYED_KERNEL = Experiment(
    name="keyed-kernel",
    title="From codes to positions, on the BE-Tree paper's workload, on one thread",
    sizes=(100_000, 1_000_000),
    size_label="queries",
    unit=Unit("µs per event", "cost", 1e6),
    baseline=BARE,
    prepare=prepare,
    repeats=25,
    clock=time.process_time,
)
