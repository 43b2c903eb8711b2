"""`headgate explain`: what a query means, and why it matched an event or did not."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.tree import Tree

from headgate.cli.output import (
    ALL_WELL,
    FINDINGS,
    Format,
    FormatOption,
    QueriesOption,
    SchemaOption,
    console,
    escape,
    load,
    notes,
    show_refused,
)
from headgate.errors import EventError, UsageError, did_you_mean
from headgate.events import parse_json_lines
from headgate.events.json_text import as_json
from headgate.explain import Explanation
from headgate.explain import explain as explained
from headgate.matching import Filing, index
from headgate.predicate import Row, columns
from headgate.query import Query
from headgate.schema import Schema, Stream

MARKS = {True: "[green]✓ TRUE[/]", False: "[red]✗ FALSE[/]", None: "[yellow]? NULL[/]"}


def explain(
    id: Annotated[str, typer.Argument(metavar="ID", help="The query's id.", show_default=False)],
    queries: QueriesOption = None,
    schema: SchemaOption = None,
    event: Annotated[
        str | None, typer.Option("--event", metavar="JSON", help="An event.", show_default=False)
    ] = None,
    format: FormatOption = Format.table,
) -> None:
    """The plan of a query; with an event, why it matched or did not, atom by atom.

    It also names a small change, of at most two attributes, that flips the answer. With an event
    the exit code is 0 for a match and 1 for none.

    Examples:

        headgate explain -q queries.sql big_buys

        headgate explain -q queries.sql big_buys --event '{"side": "buy", "qty": 5}'
    """
    found = load(queries, schema)
    if id not in found:
        show_refused(found.report)
    query = found[id]
    row = None if event is None else _row(query, found.schema, event)
    filing = index(found, stream=query.stream).filing(id) if query.kind == "filter" else None
    explanation = explained(query, found.schema, row, filing)
    if format is Format.json:
        typer.echo(as_json(explanation.as_json()))
    else:
        _show(explanation)
    raise typer.Exit(ALL_WELL if row is None or explanation.matched else FINDINGS)


def _row(query: Query, schema: Schema, event: str) -> Row:
    """The event as typed values, under the names that the query uses."""
    if len(query.sources) > 1:
        raise UsageError(f"`{query.id}` joins streams; one event does not decide it")
    stream = schema.the_stream(query.stream)
    _warn_of_strangers(event, stream)
    used = [column.name for column in columns(query.where)]
    text = event.encode(errors="replace")
    batch = parse_json_lines([text], stream, source="--event", columns=used)
    if batch.dead:
        raise EventError(f"--event: {batch.dead[0].reason}")
    if len(batch.events) != 1:
        raise EventError("--event: a JSON object is expected")
    rows: list[dict[str, Any]] = batch.table.to_pylist()
    return rows[0] if rows else {}


def _warn_of_strangers(event: str, stream: Stream) -> None:
    """A key that the stream does not know is most likely mistyped."""
    try:
        found = json.loads(event)
    except (ValueError, RecursionError):
        return  # the parser of events says it better
    known = {name.lower() for name in stream.names}
    known |= {name.split(".")[0] for name in known}
    for key in found if isinstance(found, dict) else ():
        if key.lower() not in known:
            hint = did_you_mean(key, stream.names)
            notes().print(f"[yellow]note:[/] {escape(f'no attribute `{key}`; {hint}')}")


def _show(explanation: Explanation) -> None:
    out = console()
    plan = explanation.as_json()
    out.print(f"[bold]{escape(plan['id'])}[/]  ({plan['kind']}, version {plan['version']})")
    out.print(f"  {escape(plan['sql'])}")
    out.print(f"TRUE when  {escape(plan['true_when'])}")
    out.print(f"reads      {escape(', '.join(plan['attributes'])) or 'nothing'}")
    if explanation.filing is not None:
        out.print(f"found      {escape(_found(explanation.filing))}")
    if explanation.row is None:
        return
    out.print()
    out.print(_tree(explanation))
    out.print()
    out.print("[bold green]it matches[/]" if explanation.matched else "[bold red]no match[/]")
    out.print(_flip(explanation))


def _found(filing: Filing) -> str:
    """How an index finds the query."""
    text = f"by {filing.index}: {filing.how}"
    if filing.share is not None:
        text += f", about {100 * filing.share:.2g} % of them"
    return "\n             ".join([text, *filing.conditions])


def _tree(explanation: Explanation) -> Tree:
    """The condition as a tree, each node with its truth."""
    values = {a.condition: a.values for a in explanation.atoms}
    stack: list[Tree] = []
    for depth, text, truth in explanation.tree():
        seen = ", ".join(f"{k} = {_literal(v)}" for k, v in values.get(text, {}).items())
        label = f"{MARKS[truth]}  {escape(text)}" + (f"  [dim]({escape(seen)})[/]" if seen else "")
        node = Tree(label) if depth == 0 else stack[depth - 1].add(label)
        stack[depth:] = [node]
    return stack[0]


def _flip(explanation: Explanation) -> str:
    flip = explanation.flip
    if flip is None:
        return "no change of one or two attributes was found that flips this"
    changes = " and ".join(
        f"{key} were {_literal(new)} (it is {_literal(old)})"
        for key, (old, new) in flip.changes.items()
    )
    return f"it would {'match' if flip.matches else 'not match'} if {escape(changes)}"


def _literal(value: Any) -> str:
    return "NULL" if value is None else as_json(value)
