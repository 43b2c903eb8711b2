"""The summary of a job that has ended: a table of facts, and what to try next."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from headgate.cli.output import escape, format_count, open_console

if TYPE_CHECKING:
    from headgate.spark.job.commit.log import Counts
    from headgate.spark.job.config import Pipeline
    from headgate.spark.job.progress import LinkTraffic, QueryProgress, RunResult, RunStats


MAX_SHOWN_QUERIES = 5
MAX_SHOWN_LINKS = 10


def print_summary(pipeline: Pipeline, result: RunResult) -> None:
    """Print the summary of a job."""
    out = open_console()
    facts = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, text in _list_facts(result):
        facts.add_row(name, text)
    out.print(f"\n[bold]{escape(pipeline.name)}[/]  ended by {escape(result.stats.ended_by)}\n")
    out.print(facts)
    steps = list(_suggest_steps(pipeline, result))
    if steps:
        out.print("\n[bold]to try next[/]")
        for what, command in steps:
            out.print(f"  {what}\n    [cyan]{escape(command)}[/]", soft_wrap=True)


def _list_facts(result: RunResult) -> Iterator[tuple[str, str]]:
    tally, counts = result.stats, result.stats.counts
    # A rate needs a time that is not 0.
    seconds = max(tally.seconds, 0.001)
    batches = f"in {format_count(tally.batches, 'batch')} and {seconds:,.1f} s"
    yield "events", f"{counts.events:,} {batches}: [bold]{counts.events / seconds:,.0f} events/s[/]"
    against = f"against {format_count(result.queries, 'query')}, version {result.version}"
    rate = f"[bold]{counts.matches / seconds:,.0f} matches/s[/]"
    # A network plan has links and answers; a job of continuous queries alone has no matches.
    if tally.links:
        yield "answers", f"{counts.answers:,} {against}"
        yield "links", "\n".join(escape(line) for line in describe_links(tally.links))
    elif result.queries or not tally.continuous:
        yield "matches", f"{counts.matches:,} {against}: {rate}"
    samples = "".join(f"\n[dim]{escape(text)}[/]" for text in tally.samples)
    yield "dead letters", f"{counts.dead:,}{samples}" if counts.dead else "none"
    if counts.blank:
        yield "blank lines", f"{counts.blank:,}, skipped"
    if tally.unknown:
        yield "undeclared", f"{_format_ranking(list(tally.unknown.items()))}, ignored"
    if result.busiest:
        yield "busiest", _format_ranking(result.busiest)
    if result.silent:
        more = ", …" if result.silent > len(result.silent_ids) else ""
        silent = f"{format_count(result.silent, 'query')} matched nothing: "
        yield "silent", escape(f"{silent}{', '.join(result.silent_ids)}{more}")
    if tally.continuous:
        stored = "\n".join(escape(line) for line in describe_stored_rows(tally.continuous))
        yield "continuous", stored
    # The totals of all runs differ from those of this one if it continued an earlier run.
    if result.total != counts:
        total = result.total
        events, output = format_count(total.events, "event"), _describe_output(total, tally)
        yield "all runs", f"{events}, {output}, {total.dead:,} dead"
    if result.places:
        yield "output", "\n".join(escape(_shorten_path(place)) for place in result.places.values())


def _describe_output(counts: Counts, tally: RunStats) -> str:
    if tally.links:
        return format_count(counts.answers, "answer")
    return format_count(counts.matches, "match")


def _suggest_steps(pipeline: Pipeline, result: RunResult) -> Iterator[tuple[str, str]]:
    """Yield what is worth a look now, with the command for it."""
    for what, folder in _list_tables(result) if pipeline.sink.kind == "parquet" else ():
        code = f"import pyarrow.parquet as pq; print(pq.read_table('{folder}').to_pandas())"
        yield f"look at {what}", f'{_shorten_path(sys.executable)} -c "{code}"'
    # Commands are complete, with paths from here, so that they can be pasted.
    files = " ".join(f"-q {_shorten_path(file)}" for file in pipeline.queries.files)
    if result.silent and files:
        yield (
            "see what a silent query asks",
            f"{_find_command()} explain {files} {result.silent_ids[0]}",
        )
    if pipeline.queries.published is not None:
        place = _shorten_path(pipeline.queries.published)
        command = f"{_find_command()} publish -q FILE --to {place}"
        yield "change the queries, also while it runs", command
    if pipeline.sink.path is not None:
        yield (
            "run it again: it continues where it ended. To start over",
            f"rm -r {_shorten_path(pipeline.sink.path)}",
        )


def _list_tables(result: RunResult) -> Iterator[tuple[str, str]]:
    """Yield the tables of matches, and of the first query that has answers."""
    from headgate.spark.job.commit.output import ANSWERS, UNBOUNDED, encode_folder
    from headgate.spark.job.progress import UnboundedProgress

    if "matches" in result.places:
        yield "the matches", _shorten_path(result.places["matches"])
    if "traffic" in result.places:
        yield "the traffic", _shorten_path(result.places["traffic"])
        if result.busiest:
            answers = Path(result.places[ANSWERS]).parent / encode_folder(result.busiest[0][0])
            yield f"the answers of {result.busiest[0][0]}", _shorten_path(answers)
    # The first query that has answers serves as the example.
    for query_id, one in result.stats.continuous.items():
        parent = UNBOUNDED if isinstance(one, UnboundedProgress) else ANSWERS
        if one.rows and parent in result.places:
            place = Path(result.places[parent]).parent / encode_folder(query_id, parent)
            yield f"the answers of {query_id}", _shorten_path(place)
            return


def describe_stored_rows(continuous: Mapping[str, QueryProgress]) -> Iterator[str]:
    """Yield the answers of each continuous query, and what it stores against its bound."""
    from headgate.spark.job.progress import UnboundedProgress
    from headgate.stateful.analysis.synopses.sizes import readable

    for query_id, one in list(continuous.items())[:MAX_SHOWN_QUERIES]:
        given = f"{query_id}: {format_count(one.rows, 'answer')}"
        if isinstance(one, UnboundedProgress):
            yield f"{given}, Spark keeps {one.state_rows:,} of at most {one.most_state_rows:,} rows"
            continue
        rows = f"{given}, stores {format_count(one.values, 'value')}"
        if one.most_values is None or one.most_bytes is None:
            yield f"{rows} in {format_count(one.bytes, 'byte')}"
        else:
            most = f"{readable(one.most_values, 'value')} in {readable(one.most_bytes, 'byte')}"
            yield f"{rows} in {format_count(one.bytes, 'byte')}, of at most {most}"
    more = len(continuous) - MAX_SHOWN_QUERIES
    if more > 0:
        yield f"and {format_count(more, 'query')} more"


def describe_links(links: Mapping[str, LinkTraffic]) -> Iterator[str]:
    """Yield the traffic on the busiest links, and what the plan expected of as many events."""
    ranked = sorted(links.items(), key=lambda pair: -pair[1].bytes)
    for name, one in ranked[:MAX_SHOWN_LINKS]:
        moved = f"{name}: {format_count(one.rows, 'row')}, {format_count(one.bytes, 'byte')}"
        expected = one.expected
        if expected is None:
            yield moved
        else:
            yield f"{moved}, {expected.low:,.0f} to {expected.high:,.0f} expected"
    more = len(links) - MAX_SHOWN_LINKS
    if more > 0:
        yield f"and {format_count(more, 'link')} more"


def _format_ranking(counts: list[tuple[str, int]]) -> str:
    return escape(", ".join(f"{name} ({count:,})" for name, count in counts))


def _find_command() -> str:
    """Return the command as it can be called from here."""
    return (
        "headgate" if shutil.which("headgate") else f"{_shorten_path(sys.executable)} -m headgate"
    )


def _shorten_path(place: str | Path) -> str:
    """Return a path relative to the current directory, if it is below."""
    relative = os.path.relpath(place)
    return str(place) if relative.startswith("..") else relative
