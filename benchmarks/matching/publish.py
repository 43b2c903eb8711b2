"""Publishing one changed query: as a change, and as a whole set, against comparing objects.

The rules are those of `workloads.rules`. Each contestant has a directory of its own in which all
rules are published, and in every turn one of them gets another condition. Opening the current
version, and looking into the new one, is on the clock. *Compare objects* is the obvious way to find
the change, and the first half of how sets were published before: every query of the current version
is decoded, and compared with the one of its id.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.harness.experiment import Answer, Contestant, Experiment, Fact, Round, Unit
from benchmarks.workloads import generate_where_clauses, make_rule_stream
from headgate.queries import Change, Query, QuerySet, Source
from headgate.schema import Schema
from headgate.snapshot import open_current, publish
from headgate.sql import WhereReader

QUERIES = 1_000_000
MIN_QUERIES = 100


@contextmanager
def prepare(size: int, scale: float, seed: int) -> Iterator[Round]:
    """Prepare a published set for each contestant."""
    queries = _generate(max(MIN_QUERIES, round(size * scale)), seed)
    with TemporaryDirectory(prefix="headgate-bench-") as directory:
        roots = {name: Path(directory, name) for name in ("change", "set", "objects")}
        for root in roots.values():
            publish(queries, root)
        contestants = (
            _contestant("Publish a change", queries, roots["change"], _publish_change),
            _contestant("Publish the whole set", queries, roots["set"], _publish_set),
            _contestant("Compare objects", queries, roots["objects"], _compare_objects),
        )
        yield Round(len(queries), contestants, lambda: _facts(roots["change"]))


def _generate(size: int, seed: int) -> QuerySet:
    stream = make_rule_stream()
    reader, sources = WhereReader(stream), (Source(stream, stream.name),)
    gc.disable()
    try:
        clauses = enumerate(generate_where_clauses(size, seed=seed))
        queries = (Query(f"r{number}", sources, reader.read(where)) for number, where in clauses)
        return QuerySet(Schema((stream,)), queries)
    finally:
        gc.enable()


Publish = Callable[[QuerySet, Query, Path], None]


def _contestant(name: str, queries: QuerySet, root: Path, run: Publish) -> Contestant:
    turns = count()
    listed = list(queries)

    def change_one() -> None:
        # in every turn another query gets the condition of the one behind it
        turn = next(turns) % (len(listed) - 1)
        run(queries, replace(listed[turn], where=listed[turn + 1].where), root)

    def answer() -> Answer:
        change_one()
        return (len(listed),)

    return Contestant(name, 1, answer=answer, run=change_one)


def _publish_change(_: QuerySet, changed: Query, root: Path) -> None:
    assert publish(Change(updated=(changed,)), root).query(changed.id) == changed


def _publish_set(queries: QuerySet, changed: Query, root: Path) -> None:
    listed = (changed if query.id == changed.id else query for query in queries)
    assert publish(QuerySet(queries.schema, listed), root).query(changed.id) == changed


def _compare_objects(queries: QuerySet, changed: Query, root: Path) -> None:
    before = open_current(root).query_set()
    listed = (changed if query.id == changed.id else query for query in queries)
    newer = QuerySet(queries.schema, listed)
    different = [query.id for query in newer if before[query.id] != query]
    assert different == [changed.id]


def _facts(root: Path) -> dict[str, Fact]:
    segments = open_current(root).manifest.segments
    return {"Segments behind all changes": len(segments)}


PUBLISH_CHANGE = Experiment(
    name="publish-change",
    title="Publishing one changed query",
    sizes=(10_000, 100_000, QUERIES),
    size_label="queries",
    unit=Unit("ms per publication", "cost", 1e3),
    baseline="Compare objects",
    prepare=prepare,
    repeats=3,
)
