"""`headgate share`: how queries share the streams of a network, and what that saves."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.output import Format, FormatOption, SchemaOption, StreamOption, progress
from headgate.cli.share_compared import Compared, compared_object, show_compared
from headgate.cli.share_decision import decision_object, show_decision
from headgate.cli.share_plan import plan_object, show_plan
from headgate.errors import NetworkError, UsageError, did_you_mean
from headgate.events.json_text import as_json
from headgate.plots.figures import check_plot
from headgate.queries import Query
from headgate.sharing.alternatives import Decision
from headgate.sharing.content import Method
from headgate.sharing.improve import total
from headgate.sharing.network_file import Arrival, Described, read_network
from headgate.sharing.optimum import MOST, optimum
from headgate.sharing.plan import plan_of
from headgate.sharing.planner import Planner, Strategy, costs

EVERY: tuple[tuple[Strategy, Method], ...] = (
    ("ship", "exact"),
    ("filter", "exact"),
    ("share", "exact"),
    ("widen", "exact"),
    ("widen", "hsr"),
    ("widen", "hcr"),
)


class StrategyName(StrEnum):
    """What a planner calls strategies."""

    ship = "ship"
    filter = "filter"
    share = "share"
    widen = "widen"


class MethodName(StrEnum):
    """What a planner calls methods."""

    exact = "exact"
    hsr = "hsr"
    hcr = "hcr"


def share(
    network: Annotated[
        Path | None,
        typer.Argument(
            metavar="NETWORK", help="A .toml file: docs/sharing.md.", show_default=False
        ),
    ] = None,
    strategy: Annotated[
        StrategyName | None,
        typer.Option(help="Instead of the file's: how far sharing goes.", show_default=False),
    ] = None,
    method: Annotated[
        MethodName | None,
        typer.Option(help="Instead of the file's: how streams are widened.", show_default=False),
    ] = None,
    rounds: Annotated[
        int,
        typer.Option(
            "--improve",
            metavar="N",
            min=0,
            help="Let all queries choose anew when all are there, up to N times.",
        ),
    ] = 0,
    rearrange: Annotated[
        bool,
        typer.Option(
            "--rearrange",
            help="Plan those that are there in the end anew, whatever order they came in.",
        ),
    ] = False,
    compare: Annotated[
        bool, typer.Option("--compare", help="All strategies side by side, and no plan.")
    ] = False,
    explain: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="Of one query, what else it could have got.", show_default=False
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw it as .png, .svg or .pdf.", show_default=False),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            "--advise",
            metavar="FILE",
            help="No network: which of these queries should share a stream?",
            show_default=False,
        ),
    ] = None,
    sample: Annotated[
        Path | None,
        typer.Option(metavar="EVENTS", help="For --advise: some events.", show_default=False),
    ] = None,
    schema: SchemaOption = None,
    stream: StreamOption = None,
    format: FormatOption = Format.table,
) -> None:
    """Plan how queries share streams in a network, with the traffic on every link.

    Before is filtering at the source for each query alone, after is with what is shared. A query
    that no way has room for is an error, with exit code 3.

    With `--advise`, the same without a network: which of many jobs could read a shared stream
    instead of the source, and what reading does that save?

    Examples:

        headgate share network.toml --plot network.png

        headgate share network.toml --compare

        headgate share network.toml --strategy share --explain my_query

        headgate share --advise queries.sql --sample events.parquet -s schema.sql
    """
    if queries is not None:
        others = (network, strategy, method, explain, plot)
        if compare or rearrange or rounds or any(one is not None for one in others):
            raise UsageError("--advise goes with --sample, -s, --stream and --format only")
        if sample is None:
            raise UsageError("--advise needs --sample, a file of some events of the stream")
        from headgate.cli.advise import advise

        advise(queries, sample, schema, stream, format)
        return
    if network is None:
        raise UsageError("which network? Give a .toml file, or queries to --advise on")
    if sample is not None or schema or stream:
        raise UsageError("--sample, -s and --stream are for --advise; a network file has its own")
    if compare and (explain is not None or plot is not None or strategy or method):
        raise UsageError("--compare is about all strategies, and --explain, --plot about one plan")
    if plot is not None:
        check_plot(plot)
    described = read_network(network)
    if compare:
        found = _compared(described, rounds, rearrange)
        if format is Format.json:
            typer.echo(as_json(compared_object(found)))
        else:
            show_compared(found)
        return
    planner = _planned(
        described,
        strategy.value if strategy else described.strategy,
        method.value if method else described.method,
        rounds,
        rearrange,
    )
    if plot is not None:
        from headgate.plots.network.plot import plot_plan

        plot_plan(plan_of(planner), plot)
    if explain is not None:
        decision = _decision(explain, planner, described)
        if format is Format.json:
            typer.echo(as_json(decision_object(decision)))
        else:
            show_decision(decision)
        return
    before = _alone(described)
    if format is Format.json:
        typer.echo(as_json(plan_object(planner, before)))
    else:
        show_plan(planner, before)


def _planned(
    described: Described, strategy: Strategy, method: Method, rounds: int, rearrange: bool
) -> Planner:
    steps = (1 + max(rounds, described.improve)) * len(described.changes)
    with progress("planning", steps) as advance:
        return described.planner(strategy, method, advance, rearrange=rearrange, improve=rounds)


def _alone(described: Described) -> Planner | NetworkError:
    """The plan without sharing, or why there is none."""
    try:
        return _planned(described, "filter", "exact", 0, rearrange=False)
    except NetworkError as error:
        return error


def _compared(described: Described, rounds: int, rearrange: bool) -> list[Compared]:
    found: list[Compared] = []
    asked: list[tuple[Query, str]] = []
    for strategy, method in EVERY:
        try:
            planner = _planned(described, strategy, method, rounds, rearrange)
            found.append(Compared(strategy, method, *costs(planner), total(planner)))
        except NetworkError as error:
            found.append(Compared(strategy, method, refused=str(error)))
            continue
        asked = [(wanted.query, wanted.target) for wanted, _ in planner.registered.values()]
    if _are_few(asked):
        least = optimum(described.network, described.published, asked, load=described.load)
        found.append(Compared("optimum", "exact", total=least))
    return found


def _are_few(asked: list[tuple[Query, str]]) -> bool:
    """Can the optimum be found for so many queries of one stream?"""
    by_stream = Counter(query.stream_name for query, _ in asked)
    return bool(asked) and max(by_stream.values()) <= MOST


def _decision(query_id: str, planner: Planner, described: Described) -> Decision:
    found = planner.decisions.get(query_id)
    if found is not None:
        return found
    came = {change.query.id for change in described.changes if isinstance(change, Arrival)}
    if query_id in came:
        raise UsageError(f"query `{query_id}` has left, so there is no decision to explain")
    raise UsageError(f"no query `{query_id}`; {did_you_mean(query_id, planner.decisions)}")
