"""`headgate explain`: what a query means, and why it matched an event or did not."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.tree import Tree

from headgate._display import format_count
from headgate.cli.output import (
    ALL_WELL,
    FINDINGS,
    Format,
    FormatOption,
    QueriesOption,
    SchemaOption,
    StreamOption,
    escape,
    load_queries,
    load_query,
    open_console,
    open_error_console,
    print_json,
    print_labelled,
    print_load_errors,
    select_stream,
)
from headgate.errors import EventError, UsageError, did_you_mean, shorten
from headgate.events import parse_json_lines, read_event_at
from headgate.events.file_access import is_typed
from headgate.findings import Explanation
from headgate.findings import explain as explain_query
from headgate.findings.explanation import TRUTH_WORDS
from headgate.matching import Index, Placement, build_index, get_index_class
from headgate.predicate import Row, collect_columns
from headgate.queries import Query, QuerySet
from headgate.schema import Schema, Stream
from headgate.snapshot import open_current

MAX_TREE_DEPTH, MAX_TREE_WIDTH = 4, 3  # of a tree, so that what is drawn can be read
MAX_SHOWN_PARTS = 12  # of an AND or OR
MAX_SHOWN_VALUE = 200  # characters
MAX_SHOWN_SQL = 4_000  # characters
EVENT_HINT = "give one JSON object, such as '{\"qty\": 5}'"
CONSTANT_CONDITIONS = {"TRUE": "always", "FALSE": "never"}  # as people say it
ConditionLabel = tuple[int, str, bool | None, str]
"""The depth, text and truth of a part of a condition, and what it read."""

COLOURS = {True: "green", False: "red", None: "yellow"}


def explain(
    id: Annotated[
        str | None,
        typer.Argument(metavar="ID", help="The query's id; --tree needs none.", show_default=False),
    ] = None,
    queries: QueriesOption = None,
    schema: SchemaOption = None,
    published: Annotated[
        Path | None,
        typer.Option(
            "--published",
            metavar="DIR",
            help="Take the query from the current version that was published to DIR.",
            show_default=False,
        ),
    ] = None,
    stream: StreamOption = None,
    event: Annotated[
        str | None,
        typer.Option(
            "--event", metavar="JSON", help="An event, as a JSON object.", show_default=False
        ),
    ] = None,
    events: Annotated[
        Path | None,
        typer.Option(
            "--events",
            metavar="FILE",
            help="A file of events: JSON lines, CSV or Parquet; with --line.",
            show_default=False,
        ),
    ] = None,
    line: Annotated[
        int | None,
        typer.Option(
            "--line",
            metavar="N",
            min=1,
            help="The line of the event, from 1; in Parquet its row.",
            show_default=False,
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--index",
            metavar="KIND",
            help="Build an index of all queries, and show where this one is: auto, scan, keyed, "
            "be_tree or asc.",
            show_default=False,
        ),
    ] = None,
    tree: Annotated[
        bool, typer.Option("--tree", help="Draw the tree; with --index be_tree.")
    ] = False,
    format: FormatOption = Format.table,
) -> None:
    """Explain what a query means; with an event, why it matched or did not, atom by atom.

    With an event, it also names a small change, of at most two attributes, that flips the answer,
    and the exit code is 0 for a match and 1 for none. The event is given as JSON, or by the file
    and line where it stands.

    Only this query is read, so that it is quick among very many. With `--index` all are, to build
    an index and show for which events it evaluates the query. With `--tree`, it also draws the
    BE-Tree that holds all queries of the stream, and where this one is.

    Examples:

        headgate explain -q queries.sql big_buys

        headgate explain -q queries.sql big_buys --event '{"side": "buy", "qty": 5}'

        headgate explain -q queries.sql big_buys --events trades.jsonl --line 7

        headgate explain --published published big_buys

        headgate explain -q queries.sql big_buys --index auto

        headgate explain -q queries.sql big_buys --index be_tree --tree

        headgate explain -q queries.sql --stream trades --index be_tree --tree
    """
    _check_usage(id, event, kind, tree)
    _check_event_options(id, event, events, line)
    if published is not None and (queries or schema):
        raise UsageError("which queries? Give either files with -q, or --published DIR")
    query: Query | None
    index: Index | None = None
    if id is not None and kind is None:
        # An index needs all queries; without one, the others need not be read.
        query = _load_query(id, queries, schema, published)
        _choose_stream(query, query.schema, stream)
    else:
        query_set = _load_queries(queries, schema, published)
        # A query that is missing may be among the refused ones, so these are shown then.
        if id is None or id not in query_set:
            print_load_errors(query_set.report)
        query = None if id is None else query_set[id]
        stream_name = _choose_stream(query, query_set.schema, stream)
        # Only a filter is kept by an index; a join or an aggregate is explained without one.
        is_indexed = query is None or query.kind == "filter"
        if tree and not is_indexed:
            raise UsageError(f"`{id}` is not a filter, so no tree holds it; leave out --tree")
        if is_indexed:
            index = build_index(query_set, kind or "auto", stream=stream_name)
    row, source = None, {}
    if query is not None and event is not None:
        row = _parse_event(query, event)
    elif query is not None and events is not None and line is not None:
        row = _read_event(query, events, line)
        source = {"source": {"file": str(events), "line": line}}
    placement = index.locate(query.id) if query and index else None
    explanation = explain_query(query, row, placement) if query else None
    if format is Format.json:
        fields = (explanation.as_json() if explanation else {}) | source
        fields |= {"order": order} if (order := _get_order(index)) else {}
        print_json(fields | (_tree_to_json(index) if tree and index else {}))
    else:
        if explanation:
            _print_explanation(explanation, index, f"{events}:{line}" if source else "")
        if tree and index:
            _print_tree(index, id, placement)
    # Only an event can fail to match: without one, explaining always succeeds.
    no_match = explanation is not None and row is not None and not explanation.is_match
    raise typer.Exit(FINDINGS if no_match else ALL_WELL)


def _load_query(
    id: str, queries: list[Path] | None, schema: list[Path] | None, published: Path | None
) -> Query:
    """Return one query, from files or from the current version of a directory."""
    return (
        load_query(id, queries, schema) if published is None else open_current(published).query(id)
    )


def _load_queries(
    queries: list[Path] | None, schema: list[Path] | None, published: Path | None
) -> QuerySet:
    """Return all queries of files, or of the current version of a directory."""
    return (
        load_queries(queries, schema) if published is None else open_current(published).query_set()
    )


def _check_usage(id: str | None, event: str | None, kind: str | None, tree: bool) -> None:
    # Checked before any file is read.
    if kind is not None:
        get_index_class(kind)  # an error if there is no such kind
    if tree and kind != "be_tree":
        raise UsageError("--tree draws a BE-Tree; add --index be_tree")
    if id is None and not tree:
        raise UsageError("which query? Give its ID, or --index be_tree --tree for all of them")
    if id is None and event is not None:
        raise UsageError("--event is for one query; give its ID")


def _check_event_options(
    id: str | None, event: str | None, events: Path | None, line: int | None
) -> None:
    if (events is None) != (line is None):
        raise UsageError(
            "which event of the file? Give its line: --line N"
            if line is None
            else "--line is about a file of events; give it with --events FILE"
        )
    if events is not None and event is not None:
        raise UsageError("which event? Give either --event or --events with --line")
    if events is not None and id is None:
        raise UsageError("--events is for one query; give its ID")


def _choose_stream(query: Query | None, schema: Schema, named: str | None) -> str:
    """Return the stream whose queries are indexed: that of the query, or the named one."""
    if query is None:
        return select_stream(schema, named).name
    # --stream is not needed with an ID, but must not contradict it.
    read = [source.stream.name for source in query.sources]
    if named is not None and named.lower() not in [name.lower() for name in read]:
        raise UsageError(
            f"`{query.id}` reads {' and '.join(read)}, not {named}; leave out --stream"
        )
    return query.stream_name


def _parse_event(query: Query, event: str) -> Row:
    """Return the event as typed values, under the names that the query uses."""
    stream = _get_only_stream(query)
    _warn_of_unknown_keys(event, stream)
    # Only attributes that the condition reads are parsed; others may be missing or malformed.
    used = [column.name for column in collect_columns(query.where)]
    # Bytes of the command line that are not UTF-8 arrive as lone surrogates, which do not encode.
    text = event.encode(errors="replace")
    batch = parse_json_lines([text], stream, source="--event", columns=used)
    if batch.dead:
        reason = batch.dead[0].reason
        # A reason that begins with an attribute is about its value; any other is about the text.
        hint = "" if reason.startswith("`") else f"; {EVENT_HINT}"
        raise EventError(f"--event: {reason}{hint}")
    if len(batch.events) != 1:
        raise EventError(f"--event is empty; {EVENT_HINT}")
    rows: list[dict[str, Any]] = batch.table.to_pylist()
    return rows[0] if rows else {}


def _read_event(query: Query, events: Path, line: int) -> Row:
    """Return the event at a line of a file as typed values."""
    stream = _get_only_stream(query)
    used = [column.name for column in collect_columns(query.where)]
    # As in `headgate match`: of Parquet only used columns are read.
    only = used if is_typed(events) else None
    batch = read_event_at(events, stream, line, columns=only)
    if batch.dead:
        # CHECK counts only for attributes that queries read, and this one may read fewer.
        reason = batch.dead[0].reason
        batch = read_event_at(events, stream.keep_checks_on(used), line, columns=only)
        if batch.dead:
            raise EventError(
                f"{events}:{line}: a dead letter, which no query gets to see: "
                f"{batch.dead[0].reason}"
            )
        note = f"{events}:{line}: a dead letter where queries read more attributes: {reason}"
        open_error_console().print(f"[yellow]note:[/] {escape(note)}")
    if batch.unknown:
        names = ", ".join(f"`{name}`" for name in batch.unknown)
        note = f"not in stream {stream.name}, so ignored: {names}"
        open_error_console().print(f"[yellow]note:[/] {escape(note)}")
    rows: list[dict[str, Any]] = batch.table.to_pylist()
    return rows[0] if rows else {}


def _get_only_stream(query: Query) -> Stream:
    if len(query.sources) > 1:
        raise UsageError(
            f"`{query.id}` joins streams, so that no single event decides it; leave out the event"
        )
    return query.sources[0].stream


def _warn_of_unknown_keys(event: str, stream: Stream) -> None:
    """Print a note for each key that the stream does not know: it is most likely mistyped."""
    try:
        event_object = json.loads(event)
    except (ValueError, RecursionError):
        return  # the parser of events says it better
    names = {name.lower() for name in stream.names}
    # A nested attribute `a.b` is declared by its path, and stands in the event under `a`.
    names |= {name.split(".")[0] for name in names}
    for key in event_object if isinstance(event_object, dict) else ():
        if key.lower() not in names:
            hint = did_you_mean(key, stream.names)
            note = f"no attribute `{key}` in stream {stream.name}, so it is ignored; {hint}"
            open_error_console().print(f"[yellow]note:[/] {escape(note)}")


def _get_order(index: Index | None) -> Sequence[str]:
    """Return the order in which an adaptive index evaluates; nothing for any other index."""
    return index.describe().get("order", ()) if index is not None else ()


def _print_explanation(explanation: Explanation, index: Index | None, source: str) -> None:
    out = open_console()
    plan = explanation.as_json()
    out.print(f"[bold]{escape(plan['id'])}[/]  ({plan['kind']}, version {plan['version']})")
    print_labelled("  ", escape(_cut_sql(plan["sql"])))
    true_when = CONSTANT_CONDITIONS.get(plan["true_when"], plan["true_when"])
    print_labelled("TRUE when  ", escape(_cut_sql(true_when)))
    if plan["metadata"] is not None:
        print_labelled("metadata   ", escape(plan["metadata"]))
    print_labelled("reads      ", escape(", ".join(plan["attributes"])) or "nothing")
    if explanation.placement is not None and index is not None:
        print_labelled("index      ", escape(_describe_placement(explanation.placement)))
        # Only the index that was chosen automatically has a reason for the choice.
        if reason := index.describe().get("chosen_because"):
            print_labelled("           ", escape(f"chosen because {reason}"))
    if order := _get_order(index):
        print_labelled("order      ", f"{escape(', '.join(order))}; it adapts to the events")
    if explanation.row is None:
        return
    if source:
        print_labelled("event      ", escape(source))
    out.print()
    out.print(_build_condition_tree(explanation))
    out.print()
    out.print("[bold green]it matches[/]" if explanation.is_match else "[bold red]no match[/]")
    out.print(escape(explanation.describe_flip()))


def _cut_sql(text: str) -> str:
    """Return a text that can be read, of which there may be hundreds of thousands of letters."""
    if len(text) <= MAX_SHOWN_SQL:
        return text
    return f"{text[:MAX_SHOWN_SQL]} … ({len(text):,} characters; --format json has all)"


def _describe_placement(placement: Placement) -> str:
    """Return where an index keeps the query, and for which events it is evaluated."""
    text = f"{placement.index}: {placement.how}"
    if placement.share is not None:
        text += f", about {100 * placement.share:.2g} % of them"
    return "\n  ".join([text, *placement.conditions])


def _build_condition_tree(explanation: Explanation) -> Tree:
    """Return the condition as a tree, each node with its truth.

    Of many parts, those that decide are shown, and how many more there are. What an attribute holds
    is said once, as it may be long.
    """
    lines: list[tuple[int, str]] = []
    said: set[str] = set()
    for depth, text, truth, read in _select_labels(explanation.list_labels()):
        label = f"[{COLOURS[truth]}]{TRUTH_WORDS[truth]}[/]  {escape(text)}"
        is_new = bool(read) and read not in said
        said.add(read)
        lines.append(
            (depth, label + (f"  [dim]({escape(shorten(read, 200))})[/]" if is_new else ""))
        )
    return _nest_labels(lines)


def _select_labels(labels: Sequence[ConditionLabel]) -> Iterator[ConditionLabel]:
    """Yield the first of many parts of an AND or OR, those first that are as it is."""
    depth, _, truth, _ = labels[0]
    yield labels[0]
    # Each part is a node and all that is deeper, up to the next one of its depth.
    starts = [at for at, label in enumerate(labels) if label[0] == depth + 1]
    parts = [labels[a:b] for a, b in pairwise([*starts, len(labels)])]
    hidden: Counter[bool | None] = Counter()
    if len(parts) > MAX_SHOWN_PARTS:
        # An OR is TRUE by its TRUE parts, an AND is FALSE by its FALSE ones.
        ordered = sorted(range(len(parts)), key=lambda at: parts[at][0][2] is not truth)
        shown = set(ordered[:MAX_SHOWN_PARTS])
        hidden.update(part[0][2] for at, part in enumerate(parts) if at not in shown)
        parts = [part for at, part in enumerate(parts) if at in shown]
    for part in parts:
        yield from _select_labels(part)
    for value, count in hidden.items():
        yield depth + 1, f"… and {format_count(count, 'more part')}", value, ""


def _nest_labels(lines: Iterable[tuple[int, str]]) -> Tree:
    """Return labels as a tree, each with its depth; the first is the root."""
    stack: list[Tree] = []
    for depth, label in lines:
        node = Tree(label) if depth == 0 else stack[depth - 1].add(label)
        # `stack[d]` is the latest node of depth d, the parent of what follows at d + 1.
        stack[depth:] = [node]
    return stack[0]


def _outline_tree(index: Index) -> list[tuple[int, str]]:
    from headgate.matching.be_tree.index import BeTreeIndex

    assert isinstance(index, BeTreeIndex)
    return index.draw(deepest=MAX_TREE_DEPTH, widest=MAX_TREE_WIDTH)


def _tree_to_json(index: Index) -> dict[str, Any]:
    lines = [{"depth": depth, "text": text} for depth, text in _outline_tree(index)]
    return {"tree": lines, "index": index.describe()}


def _print_tree(index: Index, id: str | None, placement: Placement | None) -> None:
    out = open_console()
    shape = index.describe()
    # `leaves` counts the buckets that hold expressions; others only lead to partitions.
    nodes = [format_count(shape[f"{noun}s"], noun) for noun in ("partition", "bucket")]
    nodes.append(f"{shape['leaves']:,} of the buckets with expressions")
    if id is not None:
        out.print()
    expressions = format_count(shape["expressions"], "expression")
    out.print(f"[bold]BE-Tree[/]    {format_count(shape['queries'], 'query')} as {expressions}")
    if shape["scanned"]:
        out.print(f"scanned    {format_count(shape['scanned'], 'query')}, too wide for the tree")
    out.print(f"height     {shape['height']}, on average {shape['average_height']}")
    out.print(f"nodes      {', '.join(nodes)}")
    out.print()
    out.print(
        _nest_labels(
            _mark_leaves(_outline_tree(index), id or "", placement.conditions if placement else ())
        )
    )


def _mark_leaves(
    drawing: Iterable[tuple[int, str]], id: str, leaves: Collection[str]
) -> Iterator[tuple[int, str]]:
    """Yield the lines of a drawing, where the query's own leaves are marked by its id.

    Buckets and partitions take turns, and the path to a leaf names its buckets.
    """
    trail: list[str] = []
    for depth, text in drawing:
        # `trail[d]` is the latest label of depth d; buckets are at even depths.
        trail[depth:] = [text.partition(" [leaf: ")[0]]
        is_own = depth % 2 == 0 and " → ".join(trail[::2]) in leaves
        yield depth, escape(text) + (f"  [bold green]← {escape(id)}[/]" if is_own else "")
