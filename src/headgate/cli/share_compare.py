"""`headgate share compare`: what each strategy of a planner costs, next to the others."""

from __future__ import annotations

from typing import Any

from headgate.cli.output import (
    Format,
    FormatOption,
    escape,
    make_table,
    print_json,
    print_table,
    show_progress,
)
from headgate.cli.share_plan import ImproveOption, NetworkArgument, RearrangeOption, count_steps
from headgate.sharing.network_file import read_network
from headgate.sharing.planning import OPTIMUM, STRATEGIES, StrategyCost, compare_strategies

BASE_STRATEGY = "filter"  # what others are compared with

MEANINGS = {
    "ship": "the whole stream to every query",
    "filter": "filtered at the source, for each query alone",
    "share": "as filter, and streams that hold a query are tapped",
    "widen": "as share, and streams are widened to hold more queries",
    OPTIMUM: "the least that any plan costs, bandwidth aside",
}


def compare(
    network: NetworkArgument,
    improve: ImproveOption = 0,
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
    file = read_network(network)
    # Progress counts registrations, of which each strategy does as many.
    steps = len(STRATEGIES) * count_steps(file, improve)
    with show_progress("planning", steps) as advance:
        costs = compare_strategies(file, rearrange=rearrange, improve=improve, progress=advance)
    if format is Format.json:
        print_json(_costs_to_json(costs))
    else:
        _print_costs(costs)


def _costs_to_json(costs: list[StrategyCost]) -> dict[str, Any]:
    return {
        "strategies": [
            {
                "strategy": cost.strategy,
                "method": cost.method,
                "traffic": cost.traffic if cost.is_planned else None,
                "rows_read": cost.load if cost.is_planned else None,
                "total": None if cost.refused else cost.total,
                "refused": cost.refused or None,
            }
            for cost in costs
        ]
    }


def _print_costs(costs: list[StrategyCost]) -> None:
    numbers = ("traffic", "of filter", "rows read/s", "total")
    table = make_table("strategy", *numbers, "", right=numbers)
    # The traffic of the strategy that the others are shown in per cent of.
    base = next((cost.traffic for cost in costs if cost.strategy == BASE_STRATEGY), 0.0)
    for cost in costs:
        is_widened = cost.strategy == "widen"
        name = f"widen, {cost.method}" if is_widened else cost.strategy
        if cost.refused:
            table.add_row(name, "", "", "", "", escape(cost.refused))
            continue
        # Where filtering alone has no plan, there is nothing to compare with.
        part = f"{cost.traffic / base:.0%}" if base else ""
        # The optimum is a bound on the total; it has no plan whose traffic could be shown.
        figures = (
            (f"{cost.traffic:,.0f}", part, f"{cost.load:,.0f}") if cost.is_planned else ("",) * 3
        )
        table.add_row(name, *figures, f"{cost.total:,.0f}", MEANINGS[cost.strategy])
    print_table(table)
