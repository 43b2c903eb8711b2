"""`headgate share compare`: what each strategy of a planner costs, side by side."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import typer
from rich.table import Table

from headgate.cli.output import Format, FormatOption, escape, open_console
from headgate.cli.share_plan import ImproveOption, NetworkArgument, RearrangeOption, make_planner
from headgate.errors import NetworkError
from headgate.events.json_text import as_json
from headgate.queries import Query
from headgate.sharing.content import Method
from headgate.sharing.improve import compute_total_cost
from headgate.sharing.network_file import NetworkFile, read_network
from headgate.sharing.optimum import MAX_OPTIMUM_QUERIES, compute_optimum
from headgate.sharing.planner import Strategy, compute_costs

STRATEGIES: tuple[tuple[Strategy, Method], ...] = (
    ("ship", "exact"),
    ("filter", "exact"),
    ("share", "exact"),
    ("widen", "exact"),
    ("widen", "hsr"),
    ("widen", "hcr"),
)
BASE_STRATEGY = "filter"  # what others are compared with
OPTIMUM = "optimum"

MEANINGS = {
    "ship": "the whole stream to every query",
    "filter": "filtered at the source, for each query alone",
    "share": "and streams that hold a query are tapped",
    "widen": "and streams are widened",
    OPTIMUM: "the least that any plan costs, bandwidth aside",
}


@dataclass(frozen=True, slots=True)
class StrategyCost:
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


def compare(
    network: NetworkArgument,
    rounds: ImproveOption = 0,
    rearrange: RearrangeOption = False,
    format: FormatOption = Format.table,
) -> None:
    """Compare what a network costs by each strategy, and by the best plan that there is.

    The best plan is computed where no stream has more than eight queries. A strategy that has no
    room for some query is shown with the reason.

    Examples:

        headgate share compare network.toml

        headgate share compare network.toml --improve 2 --format json
    """
    strategy_costs = _compare_strategies(read_network(network), rounds, rearrange)
    if format is Format.json:
        typer.echo(as_json(_costs_to_json(strategy_costs)))
    else:
        _print_costs(strategy_costs)


def _compare_strategies(described: NetworkFile, rounds: int, rearrange: bool) -> list[StrategyCost]:
    compared: list[StrategyCost] = []
    registered: list[tuple[Query, str]] = []
    for strategy, method in STRATEGIES:
        try:
            planner = make_planner(described, strategy, method, rounds, rearrange)
        except NetworkError as error:
            compared.append(StrategyCost(strategy, method, refused=str(error)))
            continue
        compared.append(
            StrategyCost(strategy, method, *compute_costs(planner), compute_total_cost(planner))
        )
        registered = [(wanted.query, wanted.target) for wanted, _ in planner.registered.values()]
    if _has_optimum(registered):
        least = compute_optimum(
            described.network, described.published, registered, load=described.load
        )
        compared.append(StrategyCost("optimum", "exact", total=least))
    return compared


def _has_optimum(registered: list[tuple[Query, str]]) -> bool:
    """Are there few enough queries of each stream to find the optimum?"""
    by_stream = Counter(query.stream_name for query, _ in registered)
    return bool(registered) and max(by_stream.values()) <= MAX_OPTIMUM_QUERIES


def _costs_to_json(found: list[StrategyCost]) -> dict[str, Any]:
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


def _print_costs(found: list[StrategyCost]) -> None:
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("strategy")
    for name in ("traffic", "of filter", "rows read/s", "total"):
        table.add_column(name, justify="right")
    table.add_column("")
    base = next((one.traffic for one in found if one.strategy == BASE_STRATEGY), 0.0)
    for one in found:
        is_widened = one.strategy == "widen"
        name = f"widen, {one.method}" if is_widened else one.strategy
        if one.refused:
            table.add_row(name, "", "", "", "", escape(one.refused))
            continue
        part = f"{one.traffic / base:.0%}" if base else ""
        known = (f"{one.traffic:,.0f}", part, f"{one.load:,.0f}") if one.is_planned else ("",) * 3
        table.add_row(name, *known, f"{one.total:,.0f}", MEANINGS[one.strategy])
    open_console().print(table)
