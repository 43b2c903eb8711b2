"""What `headgate share --compare` shows: what each strategy costs, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rich.table import Table

from headgate.cli.output import console, escape

BASE = "filter"  # what others are compared with
OPTIMUM = "optimum"

MEANINGS = {
    "ship": "the whole stream to every query",
    "filter": "filtered at the source, for each query alone",
    "share": "and streams that hold a query are tapped",
    "widen": "and streams are widened",
    OPTIMUM: "the least that any plan costs, bandwidth aside",
}


@dataclass(frozen=True, slots=True)
class Compared:
    """Traffic in bytes a second times cost, rows a second that are read, and both by weight."""

    strategy: str
    method: str
    traffic: float = 0.0
    load: float = 0.0
    total: float = 0.0
    refused: str = ""

    @property
    def is_planned(self) -> bool:
        """Of the optimum only the total is known."""
        return not self.refused and self.strategy != OPTIMUM


def compared_object(found: list[Compared]) -> dict[str, Any]:
    return {
        "strategies": [
            {
                "strategy": one.strategy,
                "method": one.method,
                "traffic": one.traffic if one.is_planned else None,
                "rows_read": one.load if one.is_planned else None,
                "total": None if one.refused else one.total,
                "refused": one.refused or None,
            }
            for one in found
        ]
    }


def show_compared(found: list[Compared]) -> None:
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("strategy")
    for name in ("traffic", "of filter", "rows read/s", "total"):
        table.add_column(name, justify="right")
    table.add_column("")
    base = next((one.traffic for one in found if one.strategy == BASE), 0.0)
    for one in found:
        is_widened = one.strategy == "widen"
        name = f"widen, {one.method}" if is_widened else one.strategy
        if one.refused:
            table.add_row(name, "", "", "", "", escape(one.refused))
            continue
        part = f"{one.traffic / base:.0%}" if base else ""
        known = (f"{one.traffic:,.0f}", part, f"{one.load:,.0f}") if one.is_planned else ("",) * 3
        table.add_row(name, *known, f"{one.total:,.0f}", MEANINGS[one.strategy])
    console().print(table)
