"""A row that is said not to be needed never takes part."""

from __future__ import annotations

import random

from headgate.errors import UsageError
from headgate.events import batch_from_rows
from headgate.predicate import Row
from headgate.queries import Query
from headgate.schema import Stream
from headgate.stateful.analysis.boundedness import analyse
from headgate.stateful.runtime.admission import has_windows
from headgate.stateful.runtime.program import Program, compile_program
from headgate.stateful.runtime.reduction import find_required_values
from tests.scale import at_least, case_count, seed
from tests.stateful.random_sql import rows, statements
from tests.stateful.runtime.events import events_of


def test_rows_that_are_not_needed_reduce_to_nothing() -> None:
    numbers = random.Random(seed(61))
    skipped = taken = 0
    for statement in statements(seed(62), case_count(150)):
        program = runnable(statement.query)
        if program is None:
            continue
        near = events_of(statement, numbers, 10)
        for name, row in (*near, *rows(statement, numbers, list(program.streams), 10)):
            stream = statement.schema.stream(name)
            if is_needed(program, stream, row):
                taken += 1
                continue
            skipped += 1
            reduced = program.reduce(name, batch_from_rows([row], stream))
            assert not any(len(each) for each in reduced.values()), (statement.text, row)
    assert skipped > at_least(100)
    assert taken > at_least(100)


def runnable(query: Query) -> Program | None:
    if query.kind == "filter" or has_windows(query) or analyse(query).bounded != "yes":
        return None
    try:
        return compile_program(query)
    except UsageError:
        return None


def is_needed(program: Program, stream: Stream, row: Row) -> bool:
    """By some occurrence of the stream."""
    for source in program.occurrences(stream.name):
        needs = find_required_values(program.plan, source)
        if all(
            need.null if row[name] is None else stream[name].type.ordinal(row[name]) in need.values
            for name, need in needs.items()
        ):
            return True
    return False
