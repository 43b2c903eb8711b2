"""Loading a million WHERE clauses: Headgate's whole read, against sqlglot's parsing alone.

The rules are those of `workloads.rules`: 3 to 7 predicates over 400 attributes. sqlglot would take
minutes for a million, so it is timed on a sample, and all are compared per statement.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.harness.experiment import Contestant, Experiment, Fact, Round, Unit
from benchmarks.harness.process import Process
from benchmarks.workloads import generate_where_clauses, make_rule_stream
from headgate.errors import UsageError
from headgate.schema import Schema
from headgate.sql import render_schema

STATEMENTS = 1_000_000
SAMPLE = 20_000
MIN_STATEMENTS = 100
READERS = "benchmarks.matching.readers"


@contextmanager
def prepare(size: int, scale: float, seed: int) -> Iterator[Round]:
    """Prepare files of rules, and a process for each contestant."""
    count = max(MIN_STATEMENTS, round(size * scale))
    sampled = min(count, SAMPLE)
    with TemporaryDirectory(prefix="headgate-bench-") as directory:
        schema, rules, sample = write_rules(Path(directory), count, sampled, seed)
        # A process each: sqlglot can be compiled in one and plain in another.
        with (
            Process(READERS, "headgate_reads", schema, sample, rules) as headgate,
            Process(READERS, "sqlglot_parses", schema, sample, pure="sqlglot") as plain,
            Process(READERS, "sqlglot_parses", schema, sample) as compiled,
        ):
            _check_sqlglot(plain, compiled)
            note = f"parse only, sample of {sampled:,}"
            yield Round(
                count,
                (
                    _contestant("Headgate", headgate, count, "the whole load", reset=True),
                    _contestant("sqlglot", plain, sampled, note),
                    _contestant("sqlglot[c]", compiled, sampled, note),
                ),
                lambda: _facts(headgate, count),
            )


def write_rules(directory: Path, count: int, sampled: int, seed: int) -> tuple[Path, Path, Path]:
    """Return the schema, all rules, and the first of them as the sample."""
    schema = directory / "schema.sql"
    schema.write_text(render_schema(Schema((make_rule_stream(),))), encoding="utf-8")
    rules, sample = directory / "rules.jsonl", directory / "sample.jsonl"
    with rules.open("w", encoding="utf-8") as all_rules, sample.open("w", encoding="utf-8") as few:
        for number, where in enumerate(generate_where_clauses(count, seed=seed)):
            line = json.dumps({"id": f"r{number}", "stream": "events", "where": where}) + "\n"
            all_rules.write(line)
            if number < sampled:
                few.write(line)
    return schema, rules, sample


def _contestant(
    name: str, process: Process, work: int, note: str, *, reset: bool = False
) -> Contestant:
    return Contestant(
        name,
        work,
        answer=lambda: tuple(process("answer")),
        run=lambda: process("run"),
        reset=lambda: process("reset") if reset else None,
        note=note,
    )


def _check_sqlglot(plain: Process, compiled: Process) -> None:
    """Raise unless the two are what their names say."""
    if plain("is_compiled"):
        raise UsageError("sqlglot has no Python sources here; install it from its wheel")
    if not compiled("is_compiled"):
        raise UsageError("sqlglot is not compiled here; pip install 'sqlglot[c]'")


def _facts(headgate: Process, count: int) -> dict[str, Fact]:
    return {
        f"Peak memory of Headgate's load of {count:,}, MB": headgate("peak"),
        "Statements of the sample that need no sqlglot, %": round(headgate("fast_percent"), 2),
    }


LOAD = Experiment(
    name="load",
    title="Loading WHERE clauses: 3 to 7 predicates, 400 attributes",
    sizes=(STATEMENTS,),
    size_label="statements",
    unit=Unit("µs per statement", "cost", 1e6),
    baseline="sqlglot",
    prepare=prepare,
    repeats=3,
)
