"""What a planner chooses among: strategies, methods, and the alternatives of each query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Strategy = Literal["ship", "filter", "share", "widen"]
"""How far sharing goes: each strategy may do what those before it may, and one thing more."""
Method = Literal["exact", "hsr", "hcr"]
"""How a stream is widened: by just the rows of the query, or by the paper's HSR or HCR."""
Kind = Literal["ship", "new", "tap", "widen"]

DEFAULT_LOAD_COST = 0.01  # of a row that a filter reads, where a byte on a link costs 1


@dataclass(frozen=True, slots=True)
class Alternative:
    """A stream to tap or widen, or a new one, and the route from there to the target.

    The stream is known by the queries that it `serves` so far: the first ones by id, and how many
    `more_served`. `node` is where the query's own rows are filtered out, `from_node` where the part
    to be widened begins. `traffic` is in bytes per second times the cost of a byte on each link,
    `load` in rows per second that filters read; `total` adds both, load by its weight. `refused`
    says why the alternative is impossible.
    """

    kind: Kind
    node: str
    from_node: str
    serves: tuple[str, ...]
    route: tuple[str, ...]
    traffic: float
    load: float
    total: float
    refused: str = ""
    more_served: int = 0

    @property
    def stream(self) -> str:
        """The stream, by the queries that it serves so far."""
        if not self.serves:
            return "the source"
        first, others = f"the stream of {self.serves[0]}", len(self.serves) - 1 + self.more_served
        return f"{first} and {others:,} more" if others else first

    def __str__(self) -> str:
        route = " → ".join(self.route)
        if self.kind == "ship":
            return f"the whole stream, by {route}"
        if self.kind == "new":
            return f"a new stream, filtered at {self.node}, by {route}"
        if self.kind == "tap":
            return f"taps {self.stream} at {self.node}, by {route}"
        return f"widens {self.stream} from {self.from_node} to {self.node}, by {route}"


@dataclass(frozen=True, slots=True)
class Decision:
    """The alternative chosen for a query, and the others, cheapest first."""

    query: str
    target: str
    chosen: Alternative
    others: tuple[Alternative, ...]
