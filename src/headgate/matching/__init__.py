"""An index answers "which queries want these events?" One protocol, many indexes, one reference.

To add an index, write a class that satisfies `protocol.Index`, add it to `KINDS`, and the contract
tests run it against `scan`.
"""

from __future__ import annotations

from headgate.errors import UsageError, did_you_mean
from headgate.matching.auto import AutoIndex
from headgate.matching.matches import Matches
from headgate.matching.protocol import Index, Placement
from headgate.matching.scan import ScanIndex
from headgate.queries import QuerySet

KINDS = ("auto", "scan", "keyed", "be_tree", "asc")

__all__ = ["KINDS", "Index", "Matches", "Placement", "ScanIndex", "build_index", "kind_of_index"]


def build_index(
    queries: QuerySet, kind: str = "auto", *, stream: str | None = None, threads: int | None = None
) -> Index:
    """An index over the filters of one stream; joins and aggregates are left out.

    `kind` is "auto" for the best there is, or the name of an index. `stream` may be left out where
    the schema has only one. A match uses as many `threads` as there are cores, or as many as said.
    """
    if threads is not None and threads < 1:
        raise UsageError(f"{threads} threads match nothing; ask for at least 1")
    chosen = queries.schema.stream(stream)
    found = kind_of_index(kind).build(chosen, queries.filters(chosen.name))
    if threads is not None:
        found.threads = threads
    return found


def kind_of_index(name: str) -> type[Index]:
    """The class of that name; imported only now, because kernels bring Numba with them."""
    if name == "keyed":
        from headgate.matching.keyed.index import KeyedIndex

        return KeyedIndex
    if name == "be_tree":
        from headgate.matching.be_tree.index import BeTreeIndex

        return BeTreeIndex
    if name == "asc":
        from headgate.matching.asc.index import AscIndex

        return AscIndex
    if name not in KINDS:
        raise UsageError(f"no index `{name}`; {did_you_mean(name, KINDS)}")
    return AutoIndex if name == "auto" else ScanIndex
