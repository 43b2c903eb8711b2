"""Time to build and size, dynamic and batch, with bitmaps and without (Tables VII and VIII)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice

from benchmarks.be_tree.contestants import AUTO, BE_TREE, Kind, be_tree
from benchmarks.be_tree.macro import order
from benchmarks.be_tree.sweep import Make, scale_count
from benchmarks.be_tree.workloads import ZIPF, names, synthetic, texts
from benchmarks.harness.experiment import Answer, Contestant, Experiment, Fact, Round, Unit
from benchmarks.workloads import Conjunctions
from headgate.matching import Index
from headgate.queries import Query

DYNAMIC = be_tree("BE-Tree, no bitmap", evaluation="direct")
BATCH = be_tree("BE-Tree batch, no bitmap", construction="batch", evaluation="direct")
BITMAP = be_tree("BE-Tree batch, bitmap", construction="batch", evaluation="bitmap")
KINDS = (DYNAMIC, BATCH, BITMAP, AUTO)
DATA: dict[str, tuple[str, tuple[int, ...], Make]] = {
    "": ("uniform", (20_000, 100_000), synthetic()),
    "-zipf": ("by Zipf’s law", (20_000, 100_000), synthetic(zipf=ZIPF)),
    "-names": ("names of cities", (10_000, 50_000), names),
    "-texts": ("texts of 64 letters", (4_000, 16_000), texts),
}


def experiment(suffix: str, subject: str, sizes: tuple[int, ...], make: Make) -> Experiment:
    """Prepare contestants that build from arrays, until the first event can be matched."""

    @contextmanager
    def prepare(size: int, scale: float, seed: int) -> Iterator[Round]:
        count = scale_count(size, scale)
        queries = make(size, count, seed)
        contestants = tuple(_make_building(kind, queries) for kind in KINDS)
        yield Round(count, contestants, lambda: dict(_sizes(queries, count)))

    return Experiment(
        name=f"be-tree-build{suffix}",
        title=f"BE-Tree paper: time to build, {subject}",
        sizes=sizes,
        size_label="queries",
        unit=Unit("µs per query", "cost", 1e6),
        baseline=DYNAMIC.name,
        prepare=prepare,
        repeats=3,
        claims=(order("section 8.7.1, Tables VII and VIII", (DYNAMIC, BATCH, BITMAP)),),
    )


def _make_building(kind: Kind, queries: Conjunctions) -> Contestant:
    encoded = queries.encode()
    event = queries.events(1, seed=1).table()

    def run() -> int:
        return kind.build(queries.stream, encoded).match(event).total

    return Contestant(kind.name, len(queries), answer=lambda: (run(),), run=run)


def _sizes(queries: Conjunctions, count: int) -> Iterator[tuple[str, Fact]]:
    encoded = queries.encode()
    for kind in KINDS:
        size = kind.build(queries.stream, encoded).describe()["bytes"]
        yield f"{kind.name} at {count:,}, bytes a query", round(size / count)


CONSTRUCTION = tuple(experiment(suffix, *setup) for suffix, setup in DATA.items())


# What an insertion and a deletion cost (section 4.5), cuts included.
#
# Changes come in bursts, and are in the tree after each: asking where a query is filed sees to
# that. (A match would do so too, but reading an event of 400 attributes takes far longer than a
# change.)

BURSTS, REPEATED = (1, 100, 1_000), 10


@contextmanager
def prepare(size: int, scale: float, seed: int) -> Iterator[Round]:
    """Prepare as many queries as `size` says, scaled, and some that come and go."""
    count, changes = scale_count(size, scale), REPEATED * sum(BURSTS)
    queries = synthetic()(0, count + 2 * changes, seed)
    index = BE_TREE.build(queries.stream, queries.part(0, count + changes).encode())
    going = iter(queries.part(count, count + changes).queries())
    coming = iter(queries.part(count + changes, count + 2 * changes).queries())
    contestants: list[Contestant] = []
    for burst in BURSTS:
        changing = [list(islice(some, REPEATED * burst)) for some in (coming, going)]
        run = partial(_in_bursts, burst=burst, index=index)
        contestants += _pair(f"{{}} by {burst:,}", index, changing, run)
    yield Round(count, tuple(contestants))


def _pair(
    name: str, index: Index, queries: Sequence[Sequence[Query]], run: Callable[..., None]
) -> Iterator[Contestant]:
    """Insert some queries and delete others; each turn is undone, untimed."""
    for action, some in zip(("insert", "delete"), queries, strict=True):
        # The queries to delete are in the index at first, those to insert are not.
        insert = partial(run, [partial(index.insert, query) for query in some])
        delete = partial(run, [partial(index.remove, query.id) for query in some])
        change, undo = (insert, delete) if action == "insert" else (delete, insert)
        yield Contestant(
            name.format(action),
            len(some),
            partial(_summarise_agreement, index, change, undo),
            change,
            undo,
        )


def _summarise_agreement(
    index: Index, change: Callable[[], None], undo: Callable[[], None]
) -> Answer:
    """Return as many queries as before, when all is undone."""
    before = len(index)
    change()
    changed = len(index) != before
    undo()
    return (changed, len(index) == before)


def _in_bursts(changes: Sequence[Callable[[], object]], burst: int, index: Index) -> None:
    for start in range(0, len(changes), burst):
        for change in changes[start : start + burst]:
            change()
        # Any query will do: looking one up makes the index apply what is pending.
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
