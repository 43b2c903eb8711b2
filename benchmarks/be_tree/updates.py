"""What an insertion and a deletion cost (section 4.5), cuts included.

Changes come in bursts, and are in the tree after each: asking where a query is filed sees to that.
(A match would do so too, but reading an event of 400 attributes takes far longer than a change.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice

from benchmarks.be_tree.contestants import BE_TREE
from benchmarks.be_tree.sweep import scaled
from benchmarks.be_tree.workloads import synthetic
from benchmarks.experiment import Answer, Contestant, Experiment, Round, Unit
from headgate.matching import Index
from headgate.queries import Query

BURSTS, REPEATED = (1, 100, 1_000), 10


@contextmanager
def prepare(size: int, scale: float, seed: int) -> Iterator[Round]:
    """As many queries as `size` says, scaled, and some that come and go."""
    count, changes = scaled(size, scale), REPEATED * sum(BURSTS)
    queries = synthetic()(0, count + 2 * changes, seed)
    index = BE_TREE.build(queries.stream, queries.part(0, count + changes).encoded())
    going = iter(queries.part(count, count + changes).queries())
    coming = iter(queries.part(count + changes, count + 2 * changes).queries())
    contestants: list[Contestant] = []
    for burst in BURSTS:
        mine = [list(islice(some, REPEATED * burst)) for some in (coming, going)]
        run = partial(_in_bursts, burst=burst, index=index)
        contestants += _pair(f"{{}} by {burst:,}", index, mine, run)
    yield Round(count, tuple(contestants))


def _pair(
    name: str, index: Index, queries: Sequence[Sequence[Query]], run: Callable[..., None]
) -> Iterator[Contestant]:
    """Insert some queries and delete others; each turn is undone, untimed."""
    for what, some in zip(("insert", "delete"), queries, strict=True):
        insert = partial(run, [partial(index.insert, one) for one in some])
        delete = partial(run, [partial(index.remove, one.id) for one in some])
        there, back = (insert, delete) if what == "insert" else (delete, insert)
        yield Contestant(
            name.format(what), len(some), partial(_agreed, index, there, back), there, back
        )


def _agreed(index: Index, there: Callable[[], None], back: Callable[[], None]) -> Answer:
    """As many queries as before, when all is undone."""
    before = len(index)
    there()
    changed = len(index) != before
    back()
    return (changed, len(index) == before)


def _in_bursts(changes: Sequence[Callable[[], object]], burst: int, index: Index) -> None:
    for start in range(0, len(changes), burst):
        for change in changes[start : start + burst]:
            change()
        index.locate("q0")


UPDATES = Experiment(
    name="be-tree-updates",
    title="BE-Tree: what a change costs, in bursts",
    sizes=(10_000, 100_000),
    size_label="queries",
    unit=Unit("µs per change", "cost", 1e6),
    baseline="insert by 1",
    prepare=prepare,
    repeats=3,
)
