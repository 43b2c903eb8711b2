"""What `headgate check` prints, writes and plots about the memory of a query."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from headgate.cli.output import escape, open_error_console
from headgate.errors import UsageError
from headgate.events.json_text import format_json
from headgate.findings.checks import Finding
from headgate.predicate.answer import Answer
from headgate.sql import render_query

if TYPE_CHECKING:
    from headgate.stateful.analysis.witness.witness import Witness

MAX_SHOWN_SUGGESTIONS = 4
MAX_NAME_LENGTH = 200
MAX_CONTINUATIONS = 5


def describe_bound(finding: Finding) -> str:
    """Return the bound of a stateful query that runs in bounded memory; else an empty text."""
    verdict = finding.memory
    if verdict is None or verdict.bounded is not Answer.YES or finding.satisfiable is Answer.NO:
        return ""
    return f"bounded memory: {verdict.compute_memory_limit() or 'how much is not worked out'}"


def describe_memory(finding: Finding) -> Iterator[str]:
    """Yield what each stream keeps, or what to add to a query that needs unbounded memory."""
    verdict = finding.memory
    if verdict is None or finding.satisfiable is Answer.NO:
        return
    # A query that is never TRUE stores nothing, and was left out above.
    for synopsis in verdict.describe_synopses():
        yield f"  {synopsis}"
    if verdict.bounded is Answer.YES:
        return
    suggestions = verdict.find_suggestions()
    for suggestion in suggestions[:MAX_SHOWN_SUGGESTIONS]:
        yield "  suggestion: " + ", and ".join(suggestion.additions)
    if len(suggestions) > MAX_SHOWN_SUGGESTIONS:
        yield f"  and {len(suggestions) - MAX_SHOWN_SUGGESTIONS:,} more; --format json lists them"


def write_witnesses(findings: list[Finding], directory: Path, size: int) -> None:
    """Write a directory for every unbounded query, with rows that show why, as JSON lines."""
    unbounded = [f for f in findings if f.bounded is Answer.NO]
    out = open_error_console()
    if not unbounded:
        out.print("[yellow]note:[/] no query is unbounded, so there are no streams to write")
    for finding in unbounded:
        assert finding.memory is not None
        # None where no witness can be built, or where the types have too few values for it.
        witness = finding.memory.build_witness(size)
        if witness is None:
            is_shown = finding.memory.analysis.has_witness
            why = "its types have no room for so many rows" if is_shown else "none could be built"
            out.print(f"[yellow]note:[/] {escape(finding.id)}: no streams are written; {why}")
            continue
        place = directory / _make_file_name(finding.id)
        _write_witness(witness, place)
        out.print(
            f"{escape(finding.id)}: {size:,} rows to be remembered are in {escape(str(place))}"
        )


WITNESS_README = """\
`{query}` needs unbounded memory; query.sql has it.

Let any of the {size:,} rows of {file} arrive. Whoever remembers the same after two different
selections of them answers wrongly after one of the two: let row k (counted from 0) be the last that
only one of them has. In continuations.jsonl the line of row k has what may follow; after one of
these the answers differ, if they did not differ before. (With OR or <> in the condition it may be
the line of another row.)
"""


def _write_witness(witness: Witness, place: Path) -> None:
    """Write the rows as a file of their stream, and for each what makes it matter."""
    rows = f"{_make_file_name(witness.stream)}.jsonl"
    readme = WITNESS_README.format(query=witness.query.id, size=len(witness.rows), file=rows)
    try:
        place.mkdir(parents=True, exist_ok=True)
        (place / rows).write_text("".join(format_json(dict(row)) + "\n" for row in witness.rows))
        (place / "query.sql").write_text(render_query(witness.query) + ";\n")
        (place / "README.md").write_text(readme)
        with (place / "continuations.jsonl").open("w") as file:
            for kept in range(len(witness.rows)):
                file.write(
                    format_json({"row": kept, "then": _list_continuations(witness, kept)}) + "\n"
                )
    except OSError as error:
        raise UsageError(f"{place}: the streams cannot be written: {error.strerror}") from error


def _make_file_name(name: str) -> str:
    """Return a name for a file or directory that cannot lead to another directory.

    >>> _make_file_name("a/b"), _make_file_name("..")
    ('a%2Fb', '%2E%2E')
    """
    quoted = quote(name, safe="")
    # A hash keeps long names apart that begin alike.
    if len(quoted) > MAX_NAME_LENGTH:
        quoted = (
            f"{quoted[: MAX_NAME_LENGTH - 20]}-{blake2b(name.encode(), digest_size=8).hexdigest()}"
        )
    return quoted.replace(".", "%2E") if quoted.startswith(".") else quoted


def _list_continuations(witness: Witness, kept: int) -> list[list[dict[str, object]]]:
    return [
        [{"stream": stream, "row": dict(row)} for stream, row in following]
        for following in islice(witness.continuations(kept), MAX_CONTINUATIONS)
    ]


def plot_query(findings: list[Finding], plot: Path) -> None:
    """Plot the comparisons of the only stateful query."""
    remembering = [finding for finding in findings if finding.memory is not None]
    if len(remembering) != 1:
        which = ", ".join(f.id for f in remembering[:5]) or "none"
        raise UsageError(
            f"--plot draws one join, DISTINCT or aggregate; there are: {which}; choose by --id"
        )
    from headgate.plots.memory.plot import plot_comparisons

    verdict = remembering[0].memory
    assert verdict is not None
    plot_comparisons(verdict, plot)
    open_error_console().print(f"the comparisons are in {escape(str(plot))}")
