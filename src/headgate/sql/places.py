"""Where the parts of a query stand in the file that it was read from."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from headgate.errors import Position
from headgate.predicate import Atom, Column
from headgate.sql.cursor import Extent
from headgate.sql.query import Origin, Query
from headgate.sql.select import bind_query


@dataclass(frozen=True, slots=True)
class Place:
    """A piece of a statement as it was written, and where it begins."""

    text: str
    position: Position


@dataclass(frozen=True, slots=True)
class Places:
    """The places of a query's parts; all empty for a query that was not read from a statement.

    `conditions` has every atom of WHERE, in its order, with the test that says it; a test that says
    two, such as `a BETWEEN b AND c`, stands twice. `outputs` are by name, `sources` by alias.
    """

    conditions: tuple[tuple[Atom, Place], ...] = ()
    outputs: Mapping[str, Place] = field(default_factory=dict)
    groups: Mapping[Column, Place] = field(default_factory=dict)
    sources: Mapping[str, Place] = field(default_factory=dict)


def find_places(query: Query) -> Places:
    """Return where the parts of a query stand, by reading its statement again.

    >>> from headgate.sql import Script
    >>> from headgate.schema import Schema
    >>> script = Script(Schema())
    >>> _, query = script.read('''CREATE STREAM s (a INT);
    ... CREATE QUERY q AS SELECT DISTINCT a
    ... FROM last_rows(s, 9) WHERE a > 3''', "x.sql")
    >>> place = find_places(query).sources["s"]
    >>> place.text, str(place.position)
    ('last_rows(s, 9)', 'x.sql:3:6')
    """
    origin = query.origin
    if origin is None:
        return Places()
    bound = bind_query(origin.text, query.schema)
    place = _make_locator(origin)
    # A column may stand twice in GROUP BY; its first place is reported.
    groups: dict[Column, Place] = {}
    for column, extent in bound.groups:
        groups.setdefault(column, place(extent))
    outputs = zip(bound.query.outputs, bound.outputs, strict=True)
    sources = zip(bound.query.sources, bound.sources, strict=True)
    return Places(
        tuple((atom, place(test.extent)) for test in bound.tests for atom in test.atoms),
        {output.name: place(extent) for output, extent in outputs},
        groups,
        {source.alias: place(extent) for source, extent in sources},
    )


def _make_locator(origin: Origin) -> Callable[[Extent], Place]:
    """Return a function from offsets to places; lines are counted once for thousands of tests."""
    text = origin.text
    # Offsets at which lines begin; a search among them gives the line of an offset.
    lines = [0, *(match.end() for match in re.finditer("\n", text))]

    def place(extent: Extent) -> Place:
        start, end = extent
        line = bisect_right(lines, start)
        inside = Position(None, line, start - lines[line - 1] + 1)
        return Place(text[start:end], inside.after(origin.position))

    return place
