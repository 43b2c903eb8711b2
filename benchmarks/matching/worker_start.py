"""How long a worker takes from a snapshot to its first matches, and what it holds for itself.

The queries are those of the paper on BE-Tree. A worker opens the snapshot, gets its index and
matches 100 events, with compiled kernels; the time is that of the processor, without the start of
Python and its imports.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from benchmarks.harness.experiment import Answer, Contestant, Experiment, Fact, Round, Unit
from benchmarks.harness.process import Process
from benchmarks.matching.starting_workers import CACHE
from benchmarks.workloads import generate_begen
from headgate.queries import Change
from headgate.snapshot import EncodedSet, publish
from headgate.user_cache import open_user_cache

WORKERS = "benchmarks.matching.starting_workers"
EVENTS, SMALL, ADDED = 100, 200, 10


@contextmanager
def prepare(size: int, scale: float, seed: int) -> Iterator[Round]:
    """Publish the queries, and a version with ten more; no copies are left when it is over."""
    count = max(SMALL, round(size * scale))
    with TemporaryDirectory(prefix="headgate-bench-") as directory:
        paths = write_files(Path(directory), count, seed)
        try:
            yield Round(
                count,
                (
                    _contestant("alone", paths, is_shared=False),
                    _contestant("first on the machine", paths, is_shared=True, is_first=True),
                    _contestant("beside others", paths, is_shared=True),
                ),
                lambda: _facts(paths, count),
            )
        finally:
            forget()


def write_files(root: Path, count: int, seed: int) -> tuple[str, ...]:
    """Return a snapshot, the version after it, a small one, and events."""
    queries = generate_begen(count + ADDED, seed=seed)
    published = []
    for name, size in (("all", count), ("small", SMALL)):
        encoded = EncodedSet(queries.schema, queries.part(0, size).encode())
        published.append(str(publish(encoded, root / name).directory))
    added = Change(added=tuple(queries.part(count, count + ADDED).queries()))
    changed = publish(added, root / "all").directory
    events = root / "events.arrow"
    table = queries.events(EVENTS, seed=seed).table()
    with pa.OSFile(str(events), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return published[0], str(changed), published[1], str(events)


def _contestant(
    name: str, paths: tuple[str, ...], *, is_shared: bool, is_first: bool = False
) -> Contestant:
    def start() -> Process:
        if is_first:
            forget()
        return Process(WORKERS, "start_worker", *paths, str(int(is_shared)))

    def answer() -> Answer:
        with start() as worker:
            worker("run")
            return tuple(worker("answer"))

    def run() -> object:
        with start() as worker:
            return worker("run")

    return Contestant(name, 1, answer=answer, run=run)


def _facts(paths: tuple[str, ...], count: int) -> dict[str, Fact]:
    facts: dict[str, Fact] = {}
    for shared, name in (("0", "alone"), ("1", "beside another")):
        of = f"{name}, {count:,} queries"
        with (
            Process(WORKERS, "start_worker", *paths, shared) as other,
            Process(WORKERS, "start_worker", *paths, shared) as worker,
        ):
            other("run")
            worker("run")
            facts[f"Memory of its own of a worker {of}, MB"] = worker("private")
            first, second = worker("take_change"), worker("take_change")
            facts[f"A version with {ADDED} more, {of}, s"] = round(first, 3)
            facts[f"The same once more, {of}, s"] = round(second, 3)
    return facts


def forget() -> None:
    """Delete the copies that the workers have made."""
    directory = open_user_cache(CACHE)
    if directory is not None:
        shutil.rmtree(directory, ignore_errors=True)


WORKER_START = Experiment(
    name="worker-start",
    title="A worker from a snapshot to its first matches, kernels compiled",
    sizes=(100_000, 1_000_000),
    size_label="queries",
    unit=Unit("seconds", "cost", 1.0, counted=True),
    baseline="alone",
    prepare=prepare,
    repeats=3,
)
