"""Explain a query: what it means and, with an event, the truth of every part.

A small change of the event that flips the answer is searched for within a budget. One attribute is
tried before two, so a change of two attributes is minimal: neither of its halves flips the answer
by itself. The values tried are the nearest one in each region between the constants of the query,
the values next to those of a compared attribute, examples of its patterns, and NULL; each change is
verified by evaluating the query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

from headgate._display import render_fields, render_table
from headgate.errors import EventError
from headgate.events import batch_from_rows
from headgate.events.json_lines import format_json
from headgate.matching import Placement
from headgate.predicate import (
    And,
    Atom,
    Column,
    Compare,
    Matches,
    Not,
    Operator,
    Or,
    Predicate,
    Row,
    Truth,
    Within,
    collect_columns,
    columns_of,
    evaluate,
    iter_atoms,
    to_monotone,
)
from headgate.predicate.narrowing import list_pattern_examples, values_within_bound
from headgate.predicate.tree import children
from headgate.queries import Aggregate, Query, compute_query_version, find_attribute
from headgate.schema import Attribute, Interval, Ordinal, String, Value
from headgate.schema.values import precedes
from headgate.sql import render_predicate, render_select

MAX_ATOM_EVALUATIONS = 500_000  # in one search, so that a long query is tried less often
MIN_TRIES = 20
TRUTH_WORDS = {True: "✓ TRUE", False: "✗ FALSE", None: "? NULL"}
OPERATORS: tuple[Operator, ...] = ("<", "=", ">")


@dataclass(frozen=True, slots=True)
class Flip:
    """New values for at most two attributes, and whether the query matches with them."""

    changes: Mapping[str, tuple[Value | None, Value | None]]
    matches: bool

    def as_json(self) -> dict[str, Any]:
        changes = {key: {"from": old, "to": new} for key, (old, new) in self.changes.items()}
        return {"changes": changes, "matches": self.matches}


def find_flip(query: Query, row: Row) -> Flip | None:
    """Return a change of one attribute, or else of two, that flips the answer, if any."""
    return _FlipSearch(query, dict(row)).find()


class _Exhausted(Exception):
    """The search has reached its budget."""


class _FlipSearch:
    """A search for the smallest change of one event that flips the answer of one query."""

    def __init__(self, query: Query, row: dict[str, Value | None]) -> None:
        self.query = query
        self.row = row
        self.columns = collect_columns(query.where)
        self.attributes = {c: find_attribute(query, c) for c in self.columns}
        self.matched = evaluate(query.where, row) is True
        # The atoms that read each column; `size` is how many atoms one evaluation costs.
        self.mentions: dict[Column, list[Atom]] = {column: [] for column in self.columns}
        size = 0
        for atom in iter_atoms(query.where):
            size += 1
            for column in columns_of(atom):
                self.mentions[column].append(atom)
        self.tries_left = max(MIN_TRIES, MAX_ATOM_EVALUATIONS // max(size, 1))

    def find(self) -> Flip | None:
        try:
            return self.find_single() or self.find_double()
        except _Exhausted:
            return None

    def find_single(self) -> Flip | None:
        """Return a change of one attribute, preferably not to NULL."""
        # The first change to NULL that flips, in case no other value does.
        to_null: dict[str, Value | None] = {}
        for column in self.columns:
            for value in self.list_candidates(column, self.row):
                if self.flips({column.key: value}):
                    if value is not None:
                        return self.make_flip({column.key: value})
                    to_null = to_null or {column.key: value}
        return self.make_flip(to_null) if to_null else None

    def find_double(self) -> Flip | None:
        """Return a change of two attributes; the second is chosen given the first."""
        # Candidates for the second depend on the first, to which it may be compared.
        for first, second in combinations(self.columns, 2):
            for value in self.list_candidates(first, self.row):
                changed = {**self.row, first.key: value}
                for second_value in self.list_candidates(second, changed):
                    changes = {first.key: value, second.key: second_value}
                    if self.flips(changes):
                        return self.make_flip(changes)
        return None

    def flips(self, changes: dict[str, Value | None]) -> bool:
        """Return whether changes flip the answer; raises _Exhausted past the budget."""
        self.tries_left -= 1
        if self.tries_left < 0:
            raise _Exhausted
        # FALSE and NULL are the same answer here: no match.
        return (evaluate(self.query.where, {**self.row, **changes}) is True) != self.matched

    def make_flip(self, changes: dict[str, Value | None]) -> Flip:
        moved = {key: (self.row.get(key), value) for key, value in changes.items()}
        return Flip(moved, not self.matched)

    def list_candidates(self, column: Column, row: Row) -> list[Value | None]:
        """Return the values worth trying for a column, none twice, NULL last."""
        attribute = self.attributes[column]
        current = row.get(column.key)
        # A set of ordinals that keeps its order: the nearest candidates stay first.
        at = None if current is None else column.type.ordinal(current)
        ordinals = dict.fromkeys(
            ordinal
            for ordinal in self.list_ordinals(column, row, at)
            if ordinal in attribute.domain and ordinal != at
        )
        values: list[Value | None] = [column.type.value(ordinal) for ordinal in ordinals]
        return [*values, None] if attribute.nullable and current is not None else values

    def list_ordinals(self, column: Column, row: Row, at: Ordinal | None) -> Iterator[Ordinal]:
        """Yield ordinals to try; some come twice, and some may lie outside the domain."""
        # Within a region between two cuts all conditions with constants have one truth, so its
        # nearest value stands for it.
        cuts = self.list_cuts(column)
        yield from _find_nearest_by_region(cuts, self.attributes[column], at)
        # At the ends of a region an attribute that is compared with it has most freedom.
        for cut in cuts:
            yield cut
            if isinstance(cut, int):
                yield cut - 1
        # Constants say nothing about comparisons of two attributes and about patterns.
        for atom in self.mentions[column]:
            if isinstance(atom, Compare):
                yield from self.list_near_comparison(column, atom, row, at)
            elif isinstance(atom, Matches):
                yield from list_pattern_examples(atom)

    def list_cuts(self, column: Column) -> list[Any]:
        """Return the ordinals at which a condition or a CHECK begins or ends, ascending."""
        within = [atom for atom in self.mentions[column] if isinstance(atom, Within)]
        cuts = {cut for atom in within for cut in atom.values.cuts}
        return sorted(cuts | set(self.attributes[column].domain.cuts))

    def list_near_comparison(
        self, column: Column, atom: Compare, row: Row, at: Ordinal | None
    ) -> Iterator[Ordinal]:
        """Yield the nearest values below, at and above that of the other side of a comparison."""
        other = atom.right if atom.left == column else atom.left
        value = row.get(other.key)
        # A comparison with NULL is NULL, whatever this column is.
        if value is None:
            return
        bound = other.type.ordinal(value)
        for op in OPERATORS:
            for interval in values_within_bound(column, op, bound, other).intervals:
                yield from _find_nearest(interval, self.attributes[column], at)


def _find_nearest_by_region(
    cuts: list[Any], attribute: Attribute, at: Ordinal | None
) -> list[Ordinal]:
    """Return the nearest value in each region between two cuts, the nearest first."""
    ends = [None, *cuts, None]
    regions = [Interval(low, high) for low, high in pairwise(ends)]
    nearest = [value for region in regions for value in _find_nearest(region, attribute, at)]
    return sorted(nearest, key=lambda value: _measure_distance(value, at))


def _measure_distance(value: Ordinal, at: Ordinal | None) -> int:
    """Return how far two ordinals are apart; texts are all equally far."""
    return abs(value - at) if isinstance(value, int) and isinstance(at, int) else 0


def _find_nearest(
    interval: Interval, attribute: Attribute, at: Ordinal | None
) -> Iterator[Ordinal]:
    """Yield the member of an interval that is nearest to a value, if one can be named."""
    low, high = interval.low, interval.high
    # The value itself, else the end of the interval that is nearer to it; `high` is exclusive, and
    # a text has no predecessor to name.
    if at is not None and at in interval:
        yield at
    elif low is not None and (at is None or precedes(at, low)):
        yield low
    elif high is not None and not isinstance(high, str):
        yield high - 1
    elif isinstance(attribute.type, String):
        yield low if isinstance(low, str) else ""
    elif low is None and high is None:
        yield 0


@dataclass(frozen=True, slots=True)
class AtomTruth:
    """An atom of a query, the values that it read, and its truth: True, False, or None for NULL."""

    condition: str
    values: dict[str, Value | None]
    truth: bool | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a query means and, with an event, why it matched or did not.

    Attributes
    ----------
    query
        The query.
    true_when
        Its condition, simplified to where it is TRUE.
    attributes
        The attributes that it reads.
    row
        The event, by attribute; None without one.
    truth
        The truth of the condition for the event: True, False, or None for NULL.
    atoms
        The truth of each atom.
    flip
        A small change of the event that flips the answer, if one was found.
    placement
        Where an index keeps the query, if one was given.

    Examples
    --------
    >>> import headgate as hg
    >>> queries = hg.read_queries("examples/trades/schema.sql", "examples/trades/queries.sql")
    >>> explanation = hg.explain(queries["big_buys"])
    >>> explanation.true_when, explanation.attributes
    ("side = 'buy' AND qty >= 1000", ('side', 'qty'))
    """

    query: Query
    true_when: str
    attributes: tuple[str, ...]
    row: Row | None = None
    truth: bool | None = None
    atoms: tuple[AtomTruth, ...] = ()
    flip: Flip | None = None
    placement: Placement | None = None

    @property
    def is_match(self) -> bool:
        """Whether the condition is TRUE for the event, not FALSE or NULL."""
        return self.truth is True

    def as_json(self) -> dict[str, Any]:
        """Return the object that `headgate explain --format json` prints."""
        plan: dict[str, Any] = {
            "id": self.query.id,
            "version": compute_query_version(self.query),
            "kind": self.query.kind,
            "metadata": self.query.metadata,
            "streams": [source.stream.name for source in self.query.sources],
            "sql": render_select(self.query),
            "true_when": self.true_when,
            "attributes": list(self.attributes),
            "atoms": len(set(iter_atoms(self.query.where))),
            "found": self.placement.as_json() if self.placement else None,
        }
        if self.row is None:
            return plan
        conditions = [
            {"condition": a.condition, "values": a.values, "truth": a.truth} for a in self.atoms
        ]
        return {
            **plan,
            "matched": self.is_match,
            "truth": self.truth,
            "conditions": conditions,
            "flip": self.flip.as_json() if self.flip else None,
        }

    def describe_flip(self) -> str:
        """Return in words which change of the event would flip the answer."""
        if self.flip is None:
            effect = "keep it from matching" if self.is_match else "make it match"
            return f"no change of one or two attributes would {effect}, as far as was searched"
        changes = " and ".join(
            f"{key} were {format_value(new)} (it is {format_value(old)})"
            for key, (old, new) in self.flip.changes.items()
        )
        return f"it would {'match' if self.flip.matches else 'not match'} if {changes}"

    def list_labels(self) -> list[tuple[int, str, bool | None, str]]:
        """Return every node with its depth, text and truth, and the values that an atom read."""
        values = {atom.condition: atom.values for atom in self.atoms}
        return [
            (
                depth,
                text,
                truth,
                ", ".join(f"{key} = {format_value(v)}" for key, v in values.get(text, {}).items()),
            )
            for depth, text, truth in self.list_nodes()
        ]

    def __repr__(self) -> str:
        outcome = "" if self.row is None else f", {'a match' if self.is_match else 'no match'}"
        return f"<Explanation of {self.query.id!r}{outcome}>"

    def _repr_html_(self) -> str:
        fields = {
            "SQL": render_select(self.query),
            "TRUE when": self.true_when,
            "reads": ", ".join(self.attributes),
            "index": self.placement and f"{self.placement.index}: {self.placement.how}",
        }
        title = f"query {self.query.id}"
        if self.row is None:
            return render_fields(title, fields)
        fields |= {"event": "it matches" if self.is_match else "no match"}
        nodes = self.list_labels()
        rows = (
            (TRUTH_WORDS[truth], "\u2003" * depth + text, values)
            for depth, text, truth, values in nodes
        )
        tree = render_table("", ("truth", "condition", "values"), rows, len(nodes))
        return f"{render_fields(title, fields | {'change': self.describe_flip()})}{tree}"

    def list_nodes(self) -> list[tuple[int, str, bool | None]]:
        """Return every node of the condition with its depth, text and truth, from the top down."""
        return list(_list_nodes(self.query.where, self.row or {}, 0))


def explain(
    query: Query, row: Row | None = None, placement: Placement | None = None
) -> Explanation:
    """Explain what a query means and, with an event, why it matches or does not.

    Parameters
    ----------
    query
        The query.
    row
        An event, by attribute; an absent attribute is NULL.
    placement
        Where an index keeps the query, to be shown with the rest.

    Returns
    -------
    Explanation
        The condition and, with an event, the truth of each atom and a change that flips the answer.

    Examples
    --------
    >>> import headgate as hg
    >>> queries = hg.read_queries("examples/trades/schema.sql", "examples/trades/queries.sql")
    >>> explanation = hg.explain(queries["big_buys"], {"side": "buy", "qty": 5})
    >>> explanation.is_match, [(atom.condition, atom.truth) for atom in explanation.atoms]
    (False, [("side = 'buy'", True), ('qty >= 1000', False)])
    >>> explanation.flip.changes
    {'qty': (5, 1000)}
    """
    needed = render_predicate(to_monotone(query.where))
    names = tuple(dict.fromkeys(column.key for column in _list_columns(query)))
    # Without an event there is nothing to evaluate.
    if row is None:
        return Explanation(query, needed, names, placement=placement)
    row = {**row, **_read_row(query, row)}
    return Explanation(
        query,
        needed,
        names,
        row,
        evaluate(query.where, row),
        _evaluate_atoms(query.where, row),
        find_flip(query, row),
        placement,
    )


def _read_row(query: Query, row: Row) -> Row:
    """Return the values that a filter reads, as their types have them; 3 is a DECIMAL, too."""
    if len(query.sources) > 1:
        return {}
    used = [column.name for column in collect_columns(query.where)]
    batch = batch_from_rows([row], query.sources[0].stream, columns=used)
    if batch.dead:
        raise EventError(f"the event cannot be read: {batch.dead[0].reason}")
    rows: list[dict[str, Any]] = batch.table.to_pylist()
    return rows[0] if rows else {}


def format_value(value: Any) -> str:
    """Return a value as people read it.

    >>> format_value(None), format_value("buy")
    ('NULL', '"buy"')
    """
    return "NULL" if value is None else format_json(value)


def _list_columns(query: Query) -> Iterator[Column]:
    """Yield the columns of WHERE, then those of SELECT and GROUP BY."""
    yield from collect_columns(query.where)
    for output in query.outputs:
        source = output.expression
        column = source.argument if isinstance(source, Aggregate) else source
        if column is not None:
            yield column
    yield from query.group_by


def _evaluate_atoms(predicate: Predicate, row: Row) -> tuple[AtomTruth, ...]:
    return tuple(
        AtomTruth(
            render_predicate(atom),
            {column.key: row.get(column.key) for column in columns_of(atom)},
            evaluate(atom, row),
        )
        for atom in dict.fromkeys(iter_atoms(predicate))
    )


def _list_nodes(predicate: Predicate, row: Row, depth: int) -> list[tuple[int, str, bool | None]]:
    names = {And: "AND", Or: "OR", Not: "NOT"}
    name = names.get(type(predicate)) or render_predicate(predicate)
    # Only the test, such as IS TRUE; what is tested is the node below.
    if isinstance(predicate, Truth):
        name = name.rsplit(")", 1)[1].strip()
    below = [node for child in children(predicate) for node in _list_nodes(child, row, depth + 1)]
    return [(depth, name, evaluate(predicate, row)), *below]
