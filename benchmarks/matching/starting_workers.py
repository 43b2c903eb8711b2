"""The workers of the experiment `worker-start`, each in a process of its own.

A worker imports what a worker of Spark imports, runs the kernels once on a small set, and then
loads a snapshot and matches its first events, which is timed on the clock of the processor.
"""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa

from benchmarks.harness.worker import Commands
from headgate.snapshot import machine_cache
from headgate.spark.worker import IndexConfig, LoadedQueries, load

CACHE = "bench-mapped"  # beside the cache of files that everyday use has mapped
UNSHARED = 1 << 62  # no file is as large
ROLLUP = Path("/proc/self/smaps_rollup")


def start_worker(snapshot: str, changed: str, small: str, events: str, shared: str) -> Commands:
    """Return the commands of a worker; unless `shared`, it keeps all arrays to itself."""
    machine_cache.DIRECTORY = CACHE
    index = IndexConfig("keyed")
    with pa.memory_map(events) as file:
        batch = pa.ipc.open_file(file).read_all()
    loaded: list[LoadedQueries] = []

    def warm_up() -> None:
        load(small, batch_stream, index).index.match(batch)

    def run() -> float:
        begin = time.process_time()
        loaded.append(load(snapshot, batch_stream, index))
        loaded[0].index.match(batch)
        return time.process_time() - begin

    def take_change() -> float:
        begin = time.process_time()
        loaded.append(load(changed, batch_stream, index))
        return time.process_time() - begin

    def answer() -> list[int]:
        matches = loaded[-1].index.match(batch)
        return [len(matches), matches.total, int(matches.positions.sum())]

    batch_stream = "events"
    warm_up()
    if not int(shared):
        machine_cache.MIN_MAPPED_BYTES = UNSHARED
    before = private_megabytes()
    return {
        "run": run,
        "answer": answer,
        "take_change": take_change,
        "private": lambda: private_megabytes() - before,
    }


def private_megabytes() -> int:
    """Return the memory of this process that it shares with no other; 0 where nobody knows."""
    if not ROLLUP.exists():
        return 0
    sizes = (line.split() for line in ROLLUP.read_text().splitlines()[1:])
    return sum(int(size) for name, size, *_ in sizes if name.startswith("Private_")) // 1024
