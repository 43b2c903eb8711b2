"""An aggregate that the user has declared: what it takes and gives, and how it can be computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from headgate.schema.types import Timestamp, Type

Category = Literal["distributive", "algebraic", "holistic"]


@dataclass(frozen=True, slots=True)
class DeclaredAggregate:
    """CREATE AGGREGATE: Headgate knows of it what is declared, and does not compute it.

    With each new value, a *distributive* aggregate follows from its old result, as SUM does, an
    *algebraic* one from a synopsis of bounded size, as AVG from SUM and COUNT; a *holistic* one, as
    MEDIAN, may need all values. One that is not duplicate sensitive, as MAX, does not change when a
    value comes a second time. (Characterizing Memory Requirements for Queries over Continuous Data
    Streams, section 8.2.)
    """

    name: str
    argument: Type
    result: Type
    category: Category
    duplicate_sensitive: bool = True

    @property
    def zone(self) -> str:
        """The zone of its TIMESTAMPs; UTC where it has none."""
        zones = (t.zone for t in (self.argument, self.result) if isinstance(t, Timestamp))
        return next(zones, "UTC")
