"""A sample of a stream, drawn from a file of its events."""

from __future__ import annotations

from os import PathLike

import numpy as np
import pyarrow as pa

from headgate.errors import EventError
from headgate.events.files import read_events
from headgate.schema import Stream

MAX_SAMPLE_ROWS = 10_000  # rows
SAMPLE_SEED = 1


def read_sample(
    path: str | PathLike[str],
    stream: Stream,
    max_rows: int = MAX_SAMPLE_ROWS,
    seed: int = SAMPLE_SEED,
) -> pa.Table:
    """At most so many rows, each as likely as any other, and the same ones whenever it is asked.

    What is no event of the stream is left out; a file that has none is an EventError.
    """
    random = np.random.default_rng(seed)
    kept = pa.table({a.name: pa.array([], a.type.arrow) for a in stream})
    keys = np.empty(0)
    dead = ""
    for batch in read_events(path, stream):
        dead = dead or next((letter.reason for letter in batch.dead), "")
        rows = pa.Table.from_batches([batch.table])
        if not rows.num_rows:
            continue
        kept = pa.concat_tables([kept, rows.cast(kept.schema)]) if kept.num_rows else rows
        keys = np.concatenate((keys, random.random(rows.num_rows)))
        if len(keys) > max_rows:
            chosen = np.sort(np.argpartition(keys, max_rows)[:max_rows])
            kept, keys = kept.take(chosen), keys[chosen]
    if not kept.num_rows:
        why = f"; the first line that is none: {dead}" if dead else ""
        raise EventError(f"{path}: no event of stream {stream.name} to draw a sample from{why}")
    return kept
