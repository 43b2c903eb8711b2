"""The ways in which a new query could get its rows, each with what it costs a second."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from headgate.sharing.content import Content
from headgate.sharing.tree import Hop

Kind = Literal["ship", "new", "tap", "widen"]


@dataclass(frozen=True, slots=True)
class Alternative:
    """A stream that is tapped or widened, or a new one, and the route from there to the target.

    The stream is known by whom it `serves` so far: the first few of them, and so many `more`.
    `node` is where the query's own rows are filtered out, `from_node` where what is widened begins.
    `traffic` is bytes a second times what a byte costs on each link, `load` rows a second that are
    read by filters; `total` is both, load by its weight. `refused` says why it cannot be.
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
        """The stream, by whom it serves so far."""
        if not self.serves:
            return "the source"
        first, others = f"the stream of {self.serves[0]}", len(self.serves) - 1 + self.more_served
        return f"{first} and {others:,} more" if others else first

    def __str__(self) -> str:
        way = " → ".join(self.route)
        if self.kind == "ship":
            return f"the whole stream, by {way}"
        if self.kind == "new":
            return f"a new stream, filtered at {self.node}, by {way}"
        if self.kind == "tap":
            return f"taps {self.stream} at {self.node}, by {way}"
        return f"widens {self.stream} from {self.from_node} to {self.node}, by {way}"


@dataclass(frozen=True, slots=True)
class Decision:
    """What was chosen for a query, and what else there was, cheapest first."""

    query: str
    target: str
    chosen: Alternative
    others: tuple[Alternative, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """An alternative with the hop at whose end it branches off, and what hops would carry then."""

    hop: Hop
    alternative: Alternative
    contents: tuple[tuple[Hop, Content], ...]
