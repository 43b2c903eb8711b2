"""Choose an index and build it, from queries in memory or from the arrays of a snapshot.

Spark's workers and local users get their indexes here, so that both get the same choice.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.errors import UsageError, did_you_mean
from headgate.matching.asc.options import AscOptions
from headgate.matching.auto import MAX_BITMAP_QUERIES, AutoIndex
from headgate.matching.matches import Numbers
from headgate.matching.protocol import Index
from headgate.matching.scan import ScanIndex
from headgate.predicate import collect_columns
from headgate.queries import Query, QuerySet
from headgate.schema import Stream

if TYPE_CHECKING:
    from headgate.snapshot import Snapshot

KINDS = ("auto", "scan", "keyed", "be_tree", "asc")

IndexOptions = Hashable
"""The options of a kind of index, which just that kind looks into."""


@dataclass(frozen=True, slots=True, eq=False)
class SnapshotIndex:
    """An index over the filters of a snapshot, and what else is known of these filters.

    `columns` are the attributes that they mention. `queries_at` returns those at some positions of
    the index; it makes objects of them only then, where the index was built from arrays.
    """

    index: Index
    columns: frozenset[str]
    queries_at: Callable[[Numbers], Sequence[Query]]


def build_index(
    queries: QuerySet,
    kind: str = "auto",
    *,
    stream: str | None = None,
    threads: int | None = None,
    options: AscOptions | None = None,
) -> Index:
    """Build an index over the filters of one stream; joins and aggregates are left out.

    Parameters
    ----------
    queries : QuerySet
        The queries, of which the index takes the filters on `stream`.
    kind : str
        "auto" for the best index for these queries, or one of "scan", "keyed", "be_tree", "asc".
    stream : str, optional
        The stream whose events are matched. May be left out if the schema has only one.
    threads : int, optional
        How many threads a match uses. By default as many as there are cores.
    options : AscOptions, optional
        How an index of kind "asc" adapts to the stream.

    Returns
    -------
    Index
        An index whose positions are those of the filters in the query set.

    Raises
    ------
    UsageError
        If there is no such kind or stream, or an option does not fit.

    Examples
    --------
    >>> import headgate as hg
    >>> queries = hg.read_queries("examples/trades/schema.sql", "examples/trades/queries.sql")
    >>> index = hg.build_index(queries, "keyed", stream="trades", threads=1)
    >>> index.match([{"symbol": "AAPL", "side": "buy", "qty": 5000}, {"symbol": "MSFT"}]).total
    5
    """
    _check_usage(kind, threads, options)
    # joins and aggregates need state, and run in `headgate.stateful`
    chosen = queries.schema.stream(stream)
    index = _build(chosen, queries.filters(chosen.name), kind, options)
    return _use_threads(index, threads)


def build_index_from_snapshot(
    snapshot: Snapshot,
    kind: str = "auto",
    *,
    stream: str | None = None,
    threads: int | None = None,
    options: IndexOptions | None = None,
) -> SnapshotIndex:
    """Build the index of `build_index` from a snapshot, where possible from its arrays.

    The kind is the one that the same queries get in memory. A keyed index comes from the arrays: it
    needs no object for any query, and the base that versions of a set share is built once on a
    machine.
    """
    _check_usage(kind, threads, options)
    chosen = snapshot.schema.stream(stream)
    # "auto" puts only so many filters into bitmaps: more become keyed, and need not be decoded
    too_many = len(snapshot.find_filters(chosen)) > MAX_BITMAP_QUERIES
    if kind == "keyed" or (kind == "auto" and too_many):
        return _build_keyed(snapshot, chosen, threads)
    filters = snapshot.filters(chosen)
    index = _build(chosen, filters, kind, options)
    if isinstance(index, AutoIndex) and index.is_keyed:
        return _build_keyed(snapshot, chosen, threads)
    names = frozenset(column.name for query in filters for column in collect_columns(query.where))
    return SnapshotIndex(
        _use_threads(index, threads), names, lambda numbers: [filters[n] for n in numbers.tolist()]
    )


def _build_keyed(snapshot: Snapshot, stream: Stream, threads: int | None) -> SnapshotIndex:
    from headgate.matching.keyed.index import build_from_snapshot

    keyed = build_from_snapshot(snapshot, stream)
    return SnapshotIndex(_use_threads(keyed, threads), frozenset(keyed.columns), keyed.queries_at)


def get_index_class(kind: str) -> type[Index]:
    """Return the class of a kind of index, imported only now: kernels bring Numba with them.

    Raises
    ------
    UsageError
        If there is no such kind.
    """
    if kind == "keyed":
        from headgate.matching.keyed.index import KeyedIndex

        return KeyedIndex
    if kind == "be_tree":
        from headgate.matching.be_tree.index import BeTreeIndex

        return BeTreeIndex
    if kind == "asc":
        from headgate.matching.asc.index import AscIndex

        return AscIndex
    if kind not in KINDS:
        raise UsageError(f"no index `{kind}`; {did_you_mean(kind, KINDS)}")
    return AutoIndex if kind == "auto" else ScanIndex


def _build(
    stream: Stream, filters: Sequence[Query], kind: str, options: IndexOptions | None
) -> Index:
    if isinstance(options, AscOptions):
        from headgate.matching.asc.index import AscIndex

        return AscIndex.build(stream, filters, options)
    return get_index_class(kind).build(stream, filters)


def _check_usage(kind: str, threads: int | None, options: IndexOptions | None) -> None:
    if threads is not None and threads < 1:
        raise UsageError(f"{threads} threads match nothing; ask for at least 1")
    if options is not None and not isinstance(options, AscOptions):
        raise UsageError(f"`options` are AscOptions, not {type(options).__name__}")
    if options is not None and kind != "asc":
        raise UsageError(f'these options are for an index of kind "asc", not "{kind}"')


def _use_threads(index: Index, threads: int | None) -> Index:
    if threads is not None:
        index.threads = threads
    return index
