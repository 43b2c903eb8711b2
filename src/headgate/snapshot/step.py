"""A step leads from one set to another: what goes, what comes, and where it stands."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from headgate.queries import Query, QuerySet
from headgate.snapshot.order import longest_increasing


@dataclass(frozen=True, slots=True)
class Step:
    """Take out the queries in `gone`, then put those of `new` at `places` of the result."""

    gone: tuple[str, ...]
    new: tuple[Query, ...]
    places: tuple[int, ...]

    @property
    def size(self) -> int:
        return len(self.gone) + len(self.new)


def step_between(old: QuerySet, new: QuerySet) -> Step:
    """The least step from one set to the other, in its exact order.

    A query that is added, removed, or changed where it stands costs only itself. Of those that
    changed places as few as possible are taken out and put in again: all outside a longest
    subsequence that kept its order.
    """
    ranks = {query_id: rank for rank, query_id in enumerate(old.ids)}
    same = [
        (place, ranks[query.id])
        for place, query in enumerate(new)
        if query.id in ranks and old[query.id] == query
    ]
    places = [place for place, _ in same]
    kept_ranks = [rank for _, rank in same]
    if any(later < earlier for earlier, later in pairwise(kept_ranks)):
        stay = longest_increasing(kept_ranks)
        places = [places[i] for i in stay]
    kept = set(places)
    moved_in = [(place, query) for place, query in enumerate(new) if place not in kept]
    staying = {query.id for place, query in enumerate(new) if place in kept}
    return Step(
        gone=tuple(query_id for query_id in old.ids if query_id not in staying),
        new=tuple(query for _, query in moved_in),
        places=tuple(place for place, _ in moved_in),
    )
