"""Find the rows of a batch for which one predicate is TRUE, by one of several methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

import numpy as np

from headgate.errors import ExpansionTooLarge, UsageError, did_you_mean
from headgate.events import EventBatch, batch_from_rows
from headgate.implication.arguments import Condition, resolve_stream, to_predicate
from headgate.implication.evaluation.cells import CellGrid
from headgate.implication.evaluation.filters import (
    BitmapFilter,
    CellFilter,
    LibraryTreeFilter,
    Mask,
    StandardFilter,
    TreeFilter,
    VectorisedFilter,
)
from headgate.jit import warn_before_compiling
from headgate.matching import Index, get_index_class
from headgate.predicate import Box, Predicate, collect_columns, to_dnf
from headgate.predicate.normal_form import read_plain_boxes
from headgate.queries import Query, Source
from headgate.schema import Stream

Method = Literal["auto", "standard", "vectorised", "tree", "r-tree", "r*-tree", "bitmap", "index"]
METHODS: tuple[Method, ...] = get_args(Method)

MAX_BOXES = 100_000
MAX_COMPARED_BOXES = 24  # up to which comparing them all is faster, if they mention all columns


class RowFilter(Protocol):
    """Finds the rows of a batch for which a predicate is TRUE."""

    def filter(self, batch: EventBatch) -> Mask:
        """Return for each row whether it is TRUE."""
        ...


@dataclass(frozen=True, slots=True)
class BoxFilter:
    """Rows become cells, some at a time, and a filter decides which are in a box."""

    grid: CellGrid
    cell_filter: CellFilter

    def filter(self, batch: EventBatch) -> Mask:
        """Return for each row of a batch whether it is in a box."""
        mask = np.empty(len(batch.events), np.bool_)
        for cells, start, stop in self.grid.iter_cells(batch):
            self.cell_filter.filter(cells, mask[start:stop])
        return mask


@dataclass(frozen=True, slots=True)
class IndexFilter:
    """An ordinary index over the predicate as a single query."""

    index: Index

    def filter(self, batch: EventBatch) -> Mask:
        """Return for each row of a batch whether the only query matches it."""
        # The number of matches by event, those that could not be read included.
        counts = np.diff(self.index.match(batch).offsets)
        first = _get_first_event(batch)
        return np.asarray(counts[batch.events - first] > 0)


@dataclass(frozen=True, slots=True)
class Evaluator:
    """The rows of a stream for which a predicate is TRUE, found by one of the `METHODS`.

    It gives exactly the rows that `scan` gives, NULL and NaN included; where `exact` is False,
    these rows and perhaps others. A row with a value that does not fit its column, or breaks its
    CHECK, is not TRUE. `columns` are the names of those that are read.

    >>> from headgate.schema import INT, Attribute
    >>> s = Stream("s", (Attribute("a", INT), Attribute("b", INT)))
    >>> either = Evaluator.of("a > 10 AND b < 5 OR b IS NULL", s)
    >>> either.mask([{"a": 11, "b": 4}, {"a": 11, "b": 5}, {"a": 1}, {"b": "x"}]).tolist()
    [True, False, True, False]
    """

    stream: Stream
    columns: tuple[str, ...]
    method: Method
    exact: bool
    row_filter: RowFilter

    @staticmethod
    def of(
        condition: Condition,
        stream: Stream,
        method: Method = "auto",
        *,
        short_circuit: bool = True,
        dimensions: int | None = None,
        levels: int | None = None,
    ) -> Evaluator:
        """Build an evaluator by one of the methods; "auto" chooses by the number of boxes.

        "standard" and "vectorised" compare box by box, "tree" searches a packed tree, "r-tree" and
        "r*-tree" those of libspatialindex, and "bitmap" ANDs bitmaps of boxes. "index" is the
        ordinary index over a single query; it replaces any other method where the predicate is no
        union of at most 100,000 boxes: for patterns, comparisons of columns, and what would grow
        too large.

        For "tree" only: without `short_circuit` all hits are found; of the most selective columns
        only so many `dimensions` are in the tree, and others are compared afterwards; searches go
        only so many `levels` below the root.
        """
        _check(method, short_circuit, dimensions, levels)
        predicate = to_predicate(condition, resolve_stream(stream, condition))
        warn_before_compiling(__package__)
        names = {column.name for column in collect_columns(predicate)}
        columns = tuple(name for name in stream.names if name in names)
        # What is no small union of boxes is evaluated as a single query by an ordinary index.
        boxes = None if method == "index" else _to_boxes(predicate)
        if boxes is None:
            query = Query("predicate", (Source(stream, stream.name),), predicate)
            index = get_index_class("auto").build(stream, [query])
            index.threads = 1
            return Evaluator(stream, columns, "index", True, IndexFilter(index))
        if method == "auto":
            method = "vectorised" if len(boxes) <= MAX_COMPARED_BOXES else "bitmap"
        # Sections 4.1 and 4.2: the boxes in cells, and a filter that compares or indexes them.
        grid = CellGrid(boxes)
        cell_filter = _build_filter(grid, method, short_circuit, dimensions, levels)
        return Evaluator(stream, columns, method, cell_filter.exact, BoxFilter(grid, cell_filter))

    def mask(self, events: Any) -> Mask:
        """Return for each event whether the predicate is TRUE.

        Events are an Arrow table or record batch, a DataFrame of pandas or Polars, a list of dicts,
        or a batch as `headgate.events` reads it from a file.
        """
        batch = events
        if not isinstance(events, EventBatch):
            batch = batch_from_rows(events, self.stream, columns=self.columns)
        true = self.row_filter.filter(batch)
        if not batch.dead:
            return true
        # Events that could not be read have no row in the batch; in the answer they are False.
        every = np.zeros(len(true) + len(batch.dead), np.bool_)
        every[batch.events - _get_first_event(batch)] = true
        return every


def _get_first_event(batch: EventBatch) -> int:
    """Return the number of the first event of a batch."""
    numbers: list[int] = batch.events[:1].tolist()
    return min([*numbers, *(letter.event for letter in batch.dead)], default=0)


def _check(method: str, short_circuit: bool, dimensions: int | None, levels: int | None) -> None:
    if method not in METHODS:
        raise UsageError(f"no method `{method}`; {did_you_mean(method, METHODS)}")
    has_tree_options = not short_circuit or dimensions is not None or levels is not None
    if has_tree_options and method != "tree":
        hint = "`short_circuit`, `dimensions` and `levels` are options of method='tree'"
        raise UsageError(f"{hint}, not of {method!r}")
    if min(dimensions or 0, levels or 0) < 0:
        raise UsageError("`dimensions` and `levels` are counted from 0")


def _to_boxes(predicate: Predicate) -> list[Box] | None:
    """Return the boxes whose union the predicate is; None if it is none, or one of too many."""
    # An OR of boxes needs no normal form, which is much slower for thousands of them.
    plain = read_plain_boxes(predicate)
    if plain is not None and len(plain) <= MAX_BOXES:
        return plain
    try:
        conjuncts = to_dnf(predicate, MAX_BOXES)
    except ExpansionTooLarge:
        return None
    if any(conjunct.conditions for conjunct in conjuncts):
        return None
    return [conjunct.box for conjunct in conjuncts]


def _build_filter(
    grid: CellGrid, method: Method, short_circuit: bool, dimensions: int | None, levels: int | None
) -> CellFilter:
    if method == "standard":
        return StandardFilter(grid.boxes, grid.counts)
    if method == "vectorised":
        return VectorisedFilter(grid.boxes, grid.counts)
    if method == "bitmap":
        return BitmapFilter(grid.boxes, grid.counts)
    if method == "tree":
        return TreeFilter(grid.boxes, short_circuit, dimensions, levels)
    return LibraryTreeFilter(grid.boxes, method)
