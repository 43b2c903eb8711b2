"""`headgate share plan`: how the queries of a network share its streams, and what that saves."""

from __future__ import annotations

import math
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.tree import Tree

from headgate._display import format_count
from headgate.cli.output import (
    Format,
    FormatOption,
    escape,
    format_id,
    make_table,
    open_console,
    print_json,
    print_table,
    show_progress,
)
from headgate.errors import NetworkError, UsageError, did_you_mean, shorten
from headgate.plots.figures import check_plot_path
from headgate.sharing.decisions import Alternative, Decision
from headgate.sharing.network_file import Arrival, NetworkFile, read_network
from headgate.sharing.plan import Plan, make_plan
from headgate.sharing.planner import Planner, compute_costs
from headgate.sharing.planning import plan_network
from headgate.sharing.sampled_stream import Estimate
from headgate.sharing.shared_streams import SharedStream, list_shared_streams
from headgate.sql import render_predicate

MAX_SHOWN = 40  # streams, queries, links
MAX_NAMED_QUERIES = 4  # queries of a stream
MAX_CONDITION_LENGTH = 160  # letters of a condition

Before = Planner | NetworkError

NetworkArgument = Annotated[
    Path, typer.Argument(metavar="NETWORK", help="A .toml file: docs/reference/network.md.")
]
ImproveOption = Annotated[
    int,
    typer.Option(
        "--improve",
        metavar="N",
        min=0,
        help="Once all queries are registered, let each choose again, up to N times.",
    ),
]
RearrangeOption = Annotated[
    bool,
    typer.Option(
        "--rearrange", help="Ignore the order in which queries came, and plan them again."
    ),
]


class StrategyName(StrEnum):
    """The strategies of a planner."""

    ship = "ship"
    filter = "filter"
    share = "share"
    widen = "widen"


class MethodName(StrEnum):
    """The methods by which a planner widens streams."""

    exact = "exact"
    hsr = "hsr"
    hcr = "hcr"


def plan(
    network: NetworkArgument,
    strategy: Annotated[
        StrategyName | None,
        typer.Option(
            help="How far sharing goes, instead of what the file says.", show_default=False
        ),
    ] = None,
    method: Annotated[
        MethodName | None,
        typer.Option(
            help="How streams are widened, instead of what the file says.", show_default=False
        ),
    ] = None,
    improve: ImproveOption = 0,
    rearrange: RearrangeOption = False,
    explain: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Show the alternatives of one query, with their costs.",
            show_default=False,
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw it as .png, .svg or .pdf.", show_default=False),
    ] = None,
    format: FormatOption = Format.table,
) -> None:
    """Plan how queries share the streams of a network, with the traffic on every link.

    *Before* is filtering at the source for each query separately, *after* is with shared streams.
    A query for which no route has enough bandwidth is an error, with exit code 3.

    Examples:

        headgate share plan network.toml

        headgate share plan network.toml --plot network.png

        headgate share plan network.toml --strategy share --explain my_query
    """
    if plot is not None:
        check_plot_path(plot)
    file = read_network(network)
    with show_progress("planning", count_steps(file, improve)) as advance:
        planner = plan_network(
            file,
            strategy=strategy.value if strategy else None,
            method=method.value if method else None,
            rearrange=rearrange,
            improve=improve,
            progress=advance,
        )
    if plot is not None:
        from headgate.plots.network import plot_plan

        plot_plan(make_plan(planner), plot)
    # One query is explained by its decision alone, without the plan that has none shared.
    if explain is not None:
        decision = _find_decision(explain, planner, file)
        if format is Format.json:
            print_json(decision_to_json(decision))
        else:
            _print_decision(decision)
        return
    # Sharing may make possible what bandwidth forbids otherwise, so an error here is a result.
    before = _plan_without_sharing(file)
    if format is Format.json:
        print_json(_plan_to_json(planner, before))
    else:
        _print_plan(planner, before)


def count_steps(file: NetworkFile, improve: int) -> int:
    """Return how many registrations a plan of a network file takes at most."""
    return (1 + max(improve, file.improve)) * len(file.changes)


def _plan_without_sharing(file: NetworkFile) -> Before:
    """Return the plan without sharing, or the error that says why there is none."""
    try:
        with show_progress("planning without sharing", count_steps(file, 0)) as advance:
            return plan_network(file, strategy="filter", method="exact", progress=advance)
    except NetworkError as error:
        return error


def _find_decision(query_id: str, planner: Planner, file: NetworkFile) -> Decision:
    decision = planner.decisions.get(query_id)
    if decision is not None:
        return decision
    # A query that has left is not the same as one that never was there.
    came = {change.query.id for change in file.changes if isinstance(change, Arrival)}
    if query_id in came:
        raise UsageError(
            f"query `{query_id}` has left the network, so there is no decision to explain"
        )
    raise UsageError(f"no query `{query_id}`; {did_you_mean(query_id, planner.decisions)}")


def decision_to_json(decision: Decision) -> dict[str, Any]:
    """Return a decision as JSON."""
    return {
        "id": decision.query,
        "target": decision.target,
        "chosen": _alternative_to_json(decision.chosen),
        "others": [_alternative_to_json(other) for other in decision.others],
    }


def _alternative_to_json(alternative: Alternative) -> dict[str, Any]:
    return {
        "kind": alternative.kind,
        "of": list(alternative.serves),
        "from": alternative.from_node,
        "node": alternative.node,
        "route": list(alternative.route),
        "traffic": alternative.traffic,
        "rows_read": alternative.load,
        "total": alternative.total,
        "refused": alternative.refused or None,
    }


def _print_decision(decision: Decision) -> None:
    """Print the alternatives that a query had, with their costs."""
    numbers = ("traffic", "rows read/s", "total")
    title = f"{escape(decision.query)}, for {escape(decision.target)}"
    table = make_table("", title, *numbers, right=numbers)
    for alternative in (decision.chosen, *decision.others):
        # Refused alternatives stay in the table: they say why a cheaper one was not taken.
        refused = alternative.refused
        mark = "✓" if alternative is decision.chosen else "✗" if refused else " "
        reason = f"\n  {escape(refused)}" if refused else ""
        costs = (alternative.traffic, alternative.load, alternative.total)
        table.add_row(
            mark, f"{escape(str(alternative))}{reason}", *(f"{cost:+,.0f}" for cost in costs)
        )
    print_table(table)


def _plan_to_json(planner: Planner, before: Before) -> dict[str, Any]:
    """Return all that the tables show, uncut."""
    plan, network = make_plan(planner), planner.network
    unshared = None if isinstance(before, NetworkError) else make_plan(before)
    return {
        "strategy": planner.strategy,
        "method": planner.method,
        "queries": [decision_to_json(decision) for decision in plan.decisions],
        "streams": [_stream_to_json(stream) for stream in list_shared_streams(plan)],
        "links": [
            {
                "ends": list(link.ends),
                "cost": link.cost,
                "bandwidth": link.bandwidth if math.isfinite(link.bandwidth) else None,
                "before": None if unshared is None else _estimate_to_json(unshared.traffic[number]),
                "after": _estimate_to_json(plan.traffic[number]),
            }
            for number, link in enumerate(network.links)
        ],
        "before": None if isinstance(before, NetworkError) else _costs_to_json(before),
        "after": _costs_to_json(planner),
        "refused_before": str(before) if isinstance(before, NetworkError) else None,
    }


def _stream_to_json(stream: SharedStream) -> dict[str, Any]:
    return {
        "number": stream.number,
        "of": stream.taken_from,
        "stream": stream.stream,
        "nodes": list(stream.nodes),
        "where": None if stream.where is None else render_predicate(stream.where),
        "columns": list(stream.columns),
        "members": list(stream.members),
        "serves": list(stream.serves),
        "results": list(stream.results),
        "rows": _estimate_to_json(stream.rows),
        "row_bytes": stream.row_bytes,
        "bytes": _estimate_to_json(stream.bytes),
    }


def _estimate_to_json(estimate: Estimate) -> dict[str, float]:
    return {"low": estimate.low, "value": estimate.value, "high": estimate.high}


def _costs_to_json(planner: Planner) -> dict[str, float]:
    traffic, read = compute_costs(planner)
    return {"traffic": traffic, "rows_read": read}


def _print_plan(planner: Planner, before: Before) -> None:
    """Print streams as a tree, decisions, links, and totals."""
    out, plan = open_console(), make_plan(planner)
    for tree in _build_trees(list_shared_streams(plan)):
        out.print(tree)
    out.print()
    _print_decisions(plan)
    out.print()
    if isinstance(before, NetworkError):
        out.print(f"[yellow]without sharing:[/] {escape(str(before))}")
    _print_links(planner, plan, before)
    out.print(_summarize(planner, before))


def _build_trees(streams: tuple[SharedStream, ...]) -> list[Tree]:
    """Return a tree for each source; streams beyond those that are shown are counted."""
    # By number of the stream; each is listed after the one that it is taken from.
    trees: dict[int, Tree] = {}
    for stream in streams[:MAX_SHOWN]:
        label = _label_stream(stream)
        if stream.taken_from is None:
            trees[stream.number] = Tree(label)
        else:
            trees[stream.number] = trees[stream.taken_from].add(label)
    roots = [trees[stream.number] for stream in streams[:MAX_SHOWN] if stream.is_source]
    if len(streams) > MAX_SHOWN:
        roots[-1].add(
            f"… and {format_count(len(streams) - MAX_SHOWN, 'stream')} more; --format json has them"
        )
    return roots


def _label_stream(stream: SharedStream) -> str:
    path, rows = " → ".join(stream.nodes), stream.rows
    size = f"{_format_number(rows.value)} rows/s, {_format_number(stream.bytes.value)} bytes/s"
    if stream.is_source:
        return f"[bold]{escape(stream.stream)}[/]  {escape(path)}  {size}"
    names = " ∨ ".join(stream.members[:MAX_NAMED_QUERIES])
    if len(stream.members) > MAX_NAMED_QUERIES:
        names += f" ∨ {len(stream.members) - MAX_NAMED_QUERIES:,} more"
    # Rates are estimates from a sample: the value, and the range that it is in.
    interval = f"{_format_number(rows.low)} to {_format_number(rows.high)}"
    condition = (
        "all rows"
        if stream.where is None
        else shorten(render_predicate(stream.where), MAX_CONDITION_LENGTH)
    )
    # A tap reads a stream as it is; any other new stream filters or forwards the one above it.
    made = "tapped" if stream.is_tap else "filtered" if stream.where is not None else "forwarded"
    how = f"{made} at {stream.nodes[0]}" + (", widened" if stream.is_widened else "")
    return (
        f"[bold]{escape(names)}[/]  {escape(path)}  {size} ({interval} rows/s)\n"
        f"[dim]{escape(f'{how}: {condition}')}[/]"
    )


def _format_number(value: float) -> str:
    """Return a number with as many digits as are useful.

    >>> _format_number(12345.6), _format_number(5.43), _format_number(0.0567), _format_number(0.0)
    ('12,346', '5.4', '0.057', '0')
    """
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 1 else f"{value:.2g}"


def _print_decisions(plan: Plan) -> None:
    table = make_table("query", "target", "gets its rows by")
    for decision in plan.decisions[:MAX_SHOWN]:
        names = format_id(decision.query, 0.25), format_id(decision.target, 0.25)
        table.add_row(*names, escape(str(decision.chosen)))
    print_table(table)
    if len(plan.decisions) > MAX_SHOWN:
        open_console().print(
            f"… and {len(plan.decisions) - MAX_SHOWN:,} more; --format json lists them all"
        )


def _print_links(planner: Planner, plan: Plan, before: Before) -> None:
    """Print the bytes per second on each link that carries anything, the fullest first."""
    links = planner.network.links
    # By link, the traffic without sharing; zeros where there is no such plan.
    unshared = [0.0] * len(links)
    if isinstance(before, Planner):
        unshared = [traffic.value for traffic in make_plan(before).traffic]
    after = [traffic.value for traffic in plan.traffic]
    # By the larger of both, so that links that sharing relieved are seen too.
    order = sorted(range(len(links)), key=lambda at: -max(after[at], unshared[at]))
    used = [at for at in order if after[at] or unshared[at]]
    # The column is left out where no link has a limit.
    is_bounded = any(math.isfinite(link.bandwidth) for link in links)
    numbers = ("before", "after", *(["bandwidth"] if is_bounded else []))
    table = make_table("link", *numbers, right=numbers)
    for at in used[:MAX_SHOWN]:
        bandwidth = links[at].bandwidth
        shown = (
            [f"{after[at] / bandwidth:.0%}" if math.isfinite(bandwidth) else ""]
            if is_bounded
            else []
        )
        was = _format_number(unshared[at]) if isinstance(before, Planner) else "–"
        table.add_row(escape(str(links[at])), was, _format_number(after[at]), *shown)
    print_table(table)
    if len(used) > MAX_SHOWN:
        more = format_count(len(used) - MAX_SHOWN, "link")
        open_console().print(f"… and {more} more; --format json lists them all")


def _summarize(planner: Planner, before: Before) -> str:
    how = planner.strategy + (f", {planner.method}" if planner.strategy == "widen" else "")
    # Without a plan to compare with, only the totals of this one are shown.
    was = None if isinstance(before, NetworkError) else _compute_totals(before)
    parts = []
    for name, now in _compute_totals(planner).items():
        if was is None:
            parts.append(f"{name} {_format_number(now)}")
            continue
        # No percentage of nothing, and none where nothing changed.
        change = f" ({now / was[name] - 1:+.0%})" if was[name] not in (0, now) else ""
        parts.append(
            f"{name} {_format_number(was[name])} before, {_format_number(now)} after{change}"
        )
    return f"{format_count(len(planner.registered), 'query')} ({how})\n" + "\n".join(parts)


def _compute_totals(planner: Planner) -> dict[str, float]:
    """Return the totals of a plan; those between super-peers leave out what never differs."""
    network = planner.network
    traffic, read = compute_costs(planner)
    between = sum(
        used * link.cost
        for used, link in zip(planner.routes.used, network.links, strict=True)
        if not any(network.nodes[end].is_thin for end in link.ends)
    )
    return {"traffic": traffic, "traffic between super-peers": between, "rows read/s": read}
