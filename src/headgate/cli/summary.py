"""What a job did, told when it has ended: a table of facts, and what to try next."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from headgate.cli.output import console, counted, escape

if TYPE_CHECKING:
    from headgate.spark.job.commit.log import Counts
    from headgate.spark.job.config import Pipeline
    from headgate.spark.job.progress import LinkTraffic, QueryProgress, RunResult, RunStats


SHOWN_QUERIES = 5
SHOWN_LINKS = 10


def summarise(pipeline: Pipeline, result: RunResult) -> None:
    """Print it, for a person."""
    out = console()
    facts = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, text in _facts(result):
        facts.add_row(name, text)
    out.print(f"\n[bold]{escape(pipeline.name)}[/]  ended by {escape(result.stats.ended_by)}\n")
    out.print(facts)
    steps = list(_next_steps(pipeline, result))
    if steps:
        out.print("\n[bold]to try next[/]")
        for what, command in steps:
            out.print(f"  {what}\n    [cyan]{escape(command)}[/]", soft_wrap=True)


def _facts(result: RunResult) -> Iterator[tuple[str, str]]:
    tally, counts = result.stats, result.stats.counts
    seconds = max(tally.seconds, 0.001)
    batches = f"in {counted(tally.batches, 'batch')} and {seconds:,.1f} s"
    yield "events", f"{counts.events:,} {batches}: [bold]{counts.events / seconds:,.0f} events/s[/]"
    against = f"against {counted(result.queries, 'query')}, version {result.version}"
    rate = f"[bold]{counts.matches / seconds:,.0f} matches/s[/]"
    if tally.links:
        yield "answers", f"{counts.answers:,} {against}"
        yield "links", "\n".join(escape(line) for line in link_lines(tally.links))
    elif result.queries or not tally.continuous:
        yield "matches", f"{counts.matches:,} {against}: {rate}"
    samples = "".join(f"\n[dim]{escape(text)}[/]" for text in tally.samples)
    yield "dead letters", f"{counts.dead:,}{samples}" if counts.dead else "none"
    if counts.blank:
        yield "blank lines", f"{counts.blank:,}, skipped"
    if tally.unknown:
        yield "undeclared", f"{_ranked(list(tally.unknown.items()))}, ignored"
    if result.busiest:
        yield "busiest", _ranked(result.busiest)
    if result.silent:
        more = ", …" if result.silent > len(result.silent_ids) else ""
        silent = f"{counted(result.silent, 'query')} matched nothing: "
        yield "silent", escape(f"{silent}{', '.join(result.silent_ids)}{more}")
    if tally.continuous:
        told = "\n".join(escape(line) for line in stored_lines(tally.continuous))
        yield "continuous", told
    if result.total != counts:
        total = result.total
        yield (
            "all runs",
            f"{counted(total.events, 'event')}, {_given(total, tally)}, {total.dead:,} dead",
        )
    if result.places:
        yield "output", "\n".join(escape(_short(place)) for place in result.places.values())


def _given(counts: Counts, tally: RunStats) -> str:
    if tally.links:
        return counted(counts.answers, "answer")
    return counted(counts.matches, "match")


def _next_steps(pipeline: Pipeline, result: RunResult) -> Iterator[tuple[str, str]]:
    """What is worth a look now, and the command for it."""
    for what, folder in _tables(result) if pipeline.sink.kind == "parquet" else ():
        code = f"import pyarrow.parquet as pq; print(pq.read_table('{folder}').to_pandas())"
        yield f"look at {what}", f'{_short(sys.executable)} -c "{code}"'
    files = " ".join(f"-q {_short(file)}" for file in pipeline.queries.files)
    if result.silent and files:
        yield (
            "see what a silent query asks",
            f"{_headgate()} explain {files} {result.silent_ids[0]}",
        )
    if pipeline.queries.published is not None:
        place = _short(pipeline.queries.published)
        command = f"{_headgate()} publish -q FILE --to {place}"
        yield "change the queries, also while it runs", command
    if pipeline.sink.path is not None:
        yield (
            "run it again: it goes on where it ended. To begin anew",
            f"rm -r {_short(pipeline.sink.path)}",
        )


def _tables(result: RunResult) -> Iterator[tuple[str, str]]:
    """The matches, and the answers of the first query that gave any."""
    from headgate.spark.job.commit.output import ANSWERS, UNBOUNDED, encode_folder
    from headgate.spark.job.progress import UnboundedProgress

    if "matches" in result.places:
        yield "the matches", _short(result.places["matches"])
    if "traffic" in result.places:
        yield "the traffic", _short(result.places["traffic"])
        if result.busiest:
            answers = Path(result.places[ANSWERS]).parent / encode_folder(result.busiest[0][0])
            yield f"the answers of {result.busiest[0][0]}", _short(answers)
    for query_id, one in result.stats.continuous.items():
        parent = UNBOUNDED if isinstance(one, UnboundedProgress) else ANSWERS
        if one.rows and parent in result.places:
            place = Path(result.places[parent]).parent / encode_folder(query_id, parent)
            yield f"the answers of {query_id}", _short(place)
            return


def stored_lines(continuous: Mapping[str, QueryProgress]) -> Iterator[str]:
    """Of each continuous query, the rows that it gave, and what it stores against its bound."""
    from headgate.spark.job.progress import UnboundedProgress
    from headgate.stateful.analysis.synopses.sizes import readable

    for query_id, one in list(continuous.items())[:SHOWN_QUERIES]:
        given = f"{query_id}: {counted(one.rows, 'answer')}"
        if isinstance(one, UnboundedProgress):
            yield f"{given}, Spark keeps {one.state_rows:,} of at most {one.most_state_rows:,} rows"
            continue
        rows = f"{given}, stores {counted(one.values, 'value')}"
        if one.most_values is None or one.most_bytes is None:
            yield f"{rows} in {counted(one.bytes, 'byte')}"
        else:
            most = f"{readable(one.most_values, 'value')} in {readable(one.most_bytes, 'byte')}"
            yield f"{rows} in {counted(one.bytes, 'byte')}, of at most {most}"
    more = len(continuous) - SHOWN_QUERIES
    if more > 0:
        yield f"and {counted(more, 'query')} more"


def link_lines(links: Mapping[str, LinkTraffic]) -> Iterator[str]:
    """What went over the busiest links, and what the plan expected of as many events."""
    ranked = sorted(links.items(), key=lambda pair: -pair[1].bytes)
    for name, one in ranked[:SHOWN_LINKS]:
        moved = f"{name}: {counted(one.rows, 'row')}, {counted(one.bytes, 'byte')}"
        expected = one.expected
        if expected is None:
            yield moved
        else:
            yield f"{moved}, {expected.low:,.0f} to {expected.high:,.0f} expected"
    more = len(links) - SHOWN_LINKS
    if more > 0:
        yield f"and {counted(more, 'link')} more"


def _ranked(counts: list[tuple[str, int]]) -> str:
    return escape(", ".join(f"{name} ({count:,})" for name, count in counts))


def _headgate() -> str:
    """The command as it can be called from here."""
    return "headgate" if shutil.which("headgate") else f"{_short(sys.executable)} -m headgate"


def _short(place: str | Path) -> str:
    """A path as seen from here, if it is below."""
    relative = os.path.relpath(place)
    return str(place) if relative.startswith("..") else relative
