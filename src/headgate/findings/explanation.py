"""Explain a query: what it means and, with an event, the truth of every part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from headgate.findings.flip import Flip, find_flip
from headgate.matching import Placement
from headgate.predicate import (
    And,
    Column,
    Not,
    Or,
    Predicate,
    Row,
    Truth,
    collect_columns,
    columns_of,
    evaluate,
    iter_atoms,
    to_monotone,
)
from headgate.predicate.tree import children
from headgate.queries import Aggregate, Query, compute_query_version
from headgate.schema import Value
from headgate.sql import render_predicate, render_select


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
        """Whether the event matches: the condition is TRUE, not FALSE or NULL."""
        return self.truth is True

    def as_json(self) -> dict[str, Any]:
        """Return the object that `headgate explain --format json` prints."""
        plan: dict[str, Any] = {
            "id": self.query.id,
            "version": compute_query_version(self.query),
            "kind": self.query.kind,
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
