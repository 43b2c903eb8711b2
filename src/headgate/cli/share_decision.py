"""What `headgate share --explain` shows: the alternatives that a query had, with their costs."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from headgate.cli.output import console, escape
from headgate.sharing.alternatives import Alternative, Decision


def decision_object(decision: Decision) -> dict[str, Any]:
    return {
        "id": decision.query,
        "target": decision.target,
        "chosen": alternative_object(decision.chosen),
        "others": [alternative_object(one) for one in decision.others],
    }


def alternative_object(one: Alternative) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "of": list(one.serves),
        "from": one.from_node,
        "node": one.node,
        "route": list(one.route),
        "traffic": one.traffic,
        "rows_read": one.load,
        "total": one.total,
        "refused": one.refused or None,
    }


def show_decision(decision: Decision) -> None:
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("")
    table.add_column(f"{escape(decision.query)}, for {escape(decision.target)}")
    for name in ("traffic", "rows read/s", "total"):
        table.add_column(name, justify="right")
    for one in (decision.chosen, *decision.others):
        mark = "✓" if one is decision.chosen else "✗" if one.refused else " "
        why = f"\n  {escape(one.refused)}" if one.refused else ""
        numbers = (f"{cost:+,.0f}" for cost in (one.traffic, one.load, one.total))
        table.add_row(mark, f"{escape(str(one))}{why}", *numbers)
    console().print(table)
