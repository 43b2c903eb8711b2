"""Where an index keeps a query, and when an event leads to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Filing:
    """`how` says it in words. Where a key leads to the query, one of `conditions` must hold for it
    to match, and `share` is the share of events that is expected to meet them."""

    index: str
    how: str
    conditions: tuple[str, ...] = ()
    share: float | None = None

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"index": self.index, "how": self.how}
        if self.conditions:
            found["conditions"] = list(self.conditions)
        if self.share is not None:
            found["share"] = float(f"{self.share:.2g}")
        return found
