"""Values as codes: all values between two neighbouring constants of an attribute are one region.

No condition of the set tells two values of a region apart, so a region's number stands for them:

    code 0             NULL, and an attribute that is absent
    code 1             values below the least constant
    code 1 + n         values from the n-th constant up to the next

A condition on one attribute is then a few intervals of codes, whatever its type was: doubles,
decimals of 38 digits and strings cost the same as small integers, and stay exact.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from headgate.events.columns import CodedColumn
from headgate.events.kernels.arrow import WIDTHS
from headgate.events.typed_tables import TablePlan
from headgate.matching.encoding.event_columns import EventColumns, Rows
from headgate.matching.encoding.kernels import count_codes, look_up, write_codes
from headgate.predicate import Column
from headgate.schema import Ordinal, Schema
from headgate.snapshot.arrays import EncodedAtoms
from headgate.snapshot.arrays.atoms import IS_NULL, WITHIN
from headgate.snapshot.arrays.operands import NUMBERS, decode_columns, decode_cuts, pool_of
from headgate.snapshot.arrays.selection import expand_ranges

MAX_TABLE_SIZE = 1 << 16  # integers between the least and the greatest constant
MAX_LISTED = 4_096  # entries of a table, or cuts, of which there is a list beside the array
MAX_SCHEMAS = 8  # of tables, for which a book remembers how it reads them

Codes = npt.NDArray[np.int32]

_NO_ROWS, _NO_CODES = np.empty(0, np.int64), np.empty(0, np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class Regions:
    """The regions of one column; `cuts` ascend, as int64 where the ordinals fit."""

    column: Column
    cuts: npt.NDArray[np.int64] | list[Any]
    table: Codes | None

    @property
    def greatest(self) -> int:
        """The greatest code."""
        return len(self.cuts) + 1

    def codes(self, values: CodedColumn) -> Codes:
        """Return the code of each value, of which none is NULL."""
        return (
            self.codes_of_numbers(values.codes)
            if values.ranked is None
            else self._codes_of_ranks(values)
        )

    def codes_of_numbers(self, ordinals: npt.NDArray[Any]) -> Codes:
        """Return the code of each value that is its own ordinal."""
        if self.table is None:
            # cuts that are not above the value, and one more, since code 0 is NULL
            return (np.searchsorted(self.cuts, ordinals, side="right") + 1).astype(np.int32)
        codes: Codes = look_up(ordinals, int(self.cuts[0]) - 1, self.table)
        return codes

    def _codes_of_ranks(self, values: CodedColumn) -> Codes:
        """Return the codes of texts and wide decimals; each distinct value is looked up once."""
        ranked, cuts = values.ranked or [], self.cuts
        by_rank = np.array([bisect_right(cuts, ordinal) + 1 for ordinal in ranked], np.int32)
        return by_rank[values.codes] if len(by_rank) else np.zeros(len(values.codes), np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class ColumnsInPlace:
    """How a book reads the columns of a schema: the k-th of `places` lies in row k of a layout.

    `columns` are their numbers in the book, and `others` those of columns that do not lie there;
    `forms` say how values are written, and `widths` in how many bytes.
    """

    plan: TablePlan
    places: npt.NDArray[np.int64]
    forms: npt.NDArray[np.int64]
    widths: npt.NDArray[np.int64]
    columns: Codes
    others: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class CodeBook:
    """The regions of every column that the atoms mention, by the column's number.

    For the kernels, all tables lie in one array and all cuts that are numbers in another. Row c of
    `bounds` says where those of column c begin and end, which of both it is (1 for a table), and
    what the first entry of its table is for.
    """

    regions: tuple[Regions, ...]
    bounds: npt.NDArray[np.int64] = field(init=False, repr=False)
    tables: Codes = field(init=False, repr=False)
    cuts: npt.NDArray[np.int64] = field(init=False, repr=False)
    # the schemas that were met last; replaced as a whole, for the sake of other threads
    _in_place: tuple[ColumnsInPlace, ...] = field(init=False, repr=False, default=())

    def __post_init__(self) -> None:
        bounds = np.zeros((len(self.regions), 4), np.int64)
        tables, cuts = [np.empty(0, np.int32)], [np.empty(0, np.int64)]
        table_end = cut_end = 0
        for number, regions in enumerate(self.regions):
            if regions.table is not None:
                begin, table_end = table_end, table_end + len(regions.table)
                bounds[number] = begin, table_end, 1, int(regions.cuts[0]) - 1
                tables.append(regions.table)
            elif isinstance(regions.cuts, np.ndarray):
                begin, cut_end = cut_end, cut_end + len(regions.cuts)
                bounds[number] = begin, cut_end, 0, 0
                cuts.append(regions.cuts)
        # frozen, so derived fields are set through `object`
        object.__setattr__(self, "bounds", bounds)
        object.__setattr__(self, "tables", np.concatenate(tables))
        object.__setattr__(self, "cuts", np.concatenate(cuts))
        # the regions keep views, so that no table is held twice
        shared = tuple(
            replace(regions, table=self.tables[begin:end]) if is_table else regions
            for regions, (begin, end, is_table, _) in zip(
                self.regions, bounds.tolist(), strict=True
            )
        )
        object.__setattr__(self, "regions", shared)

    def codes(self, columns: EventColumns) -> tuple[Rows, Codes, Codes]:
        """Return the codes of events, row by row: `start`, `column` and `code`.

        Row r has the codes `code[k]` of `column[k]` for k from `start[r]` to `start[r + 1]`, in no
        particular order.
        """
        table, rows = columns.table, len(columns)
        plan = self._plan(table.plan)
        other_rows, other_columns, other_codes = self._encode_others(plan.others, columns)
        # one pass counts the codes of each row, the next writes them
        layout = table.layout[plan.places]
        start = np.empty(rows + 1, np.int64)
        count_codes(layout, table.rows, columns.first, plan.widths, rows, other_rows, start)
        column, code = np.empty(start[-1], np.int32), np.empty(start[-1], np.int32)
        write_codes(
            layout,
            table.rows,
            columns.first,
            plan.forms,
            plan.columns,
            self.bounds,
            self.tables,
            self.cuts,
            other_rows,
            other_columns,
            other_codes,
            start,
            column,
            code,
        )
        return start, column, code

    def codes_of_one(self, ordinals: Mapping[str, Ordinal]) -> tuple[Rows, Codes, Codes]:
        """Return the codes of one event, as `codes` does, from its ordinals by name."""
        columns, codes = [], []
        by_name = self._look_ups
        ordinal: Any
        for name, ordinal in ordinals.items():
            look_up = by_name.get(name)
            if look_up is None:
                continue
            number, least, greatest, table, cuts = look_up
            columns.append(number)
            if table is None:
                codes.append(bisect_right(cuts, ordinal) + 1)
            else:
                place = least if ordinal < least else greatest if ordinal > greatest else ordinal
                codes.append(table[place - least])
        start = np.array([0, len(columns)], np.int64)
        return start, np.array(columns, np.int32), np.array(codes, np.int32)

    @cached_property
    def _look_ups(self) -> dict[str, tuple[int, int, int, Any, Any]]:
        """By name: a column's number, and its table from the least to the greatest, or its cuts."""
        look_ups: dict[str, tuple[int, int, int, Any, Any]] = {}
        for number, regions in enumerate(self.regions):
            table, cuts = regions.table, regions.cuts
            least = 0 if table is None else int(cuts[0]) - 1
            greatest = 0 if table is None else least + len(table) - 1
            # a list is faster to look into, but takes more memory
            look_ups[regions.column.name] = (
                number,
                least,
                greatest,
                table.tolist() if table is not None and len(table) <= MAX_LISTED else table,
                cuts.tolist() if isinstance(cuts, np.ndarray) and len(cuts) <= MAX_LISTED else cuts,
            )
        return look_ups

    def _encode_others(
        self, numbers: Sequence[int], columns: EventColumns
    ) -> tuple[Rows, Codes, Codes]:
        """Return the rows, columns and codes of all values that do not lie in place."""
        rows, owners, codes = [_NO_ROWS], [_NO_CODES], [_NO_CODES]
        for number in numbers:
            regions = self.regions[number]
            present, values = columns.present(regions.column)
            rows.append(present)
            owners.append(np.full(len(present), number, np.int32))
            codes.append(regions.codes(values))
        if not numbers:
            return _NO_ROWS, _NO_CODES, _NO_CODES
        return np.concatenate(rows), np.concatenate(owners), np.concatenate(codes)

    def _plan(self, table: TablePlan) -> ColumnsInPlace:
        """Return how the columns of a table are read; worked out once for each schema."""
        for known in self._in_place:
            if known.plan is table:
                return known
        in_place: list[tuple[int, int, int]] = []
        others: list[int] = []
        casts = {attribute.name for attribute, _ in table.cast}
        for number, regions in enumerate(self.regions):
            name = regions.column.name
            place = table.places.get(name)
            if place is not None:
                in_place.append((place, table.plain[place].form, number))
            elif name in casts:
                others.append(number)
        places, forms, numbers = np.array(in_place, np.int64).reshape(-1, 3).T.copy()
        columns = numbers.astype(np.int32)
        plan = ColumnsInPlace(table, places, forms, WIDTHS[forms], columns, tuple(others))
        object.__setattr__(self, "_in_place", (plan, *self._in_place[: MAX_SCHEMAS - 1]))
        return plan


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """The codes for which atoms are TRUE; none for an atom that is no condition on one column.

    Atom a is TRUE for `low[i]` … `high[i]`, for i from `start[a]` to `start[a + 1]`.
    """

    start: npt.NDArray[np.int64]
    low: Codes
    high: Codes


def build_code_book(atoms: EncodedAtoms, schema: Schema) -> tuple[CodeBook, Intervals]:
    """Return codes that tell apart what the atoms tell apart, and the atoms in terms of them."""
    columns = decode_columns(atoms.columns, schema)
    within = atoms.kind == WITHIN
    owners = np.repeat(np.arange(len(atoms)), np.where(within, atoms.end - atoms.start, 0))
    places = expand_ranges(atoms.start[within], atoms.end[within])
    cut_column = atoms.column[owners]
    pools = decode_cuts(atoms.cuts)
    # all cuts of all atoms, in a row: the atom of each, its column, its place in the pool of cuts,
    # and the least code that is not below it
    codes = np.zeros(len(owners), np.int32)
    regions = []
    order = np.argsort(cut_column, kind="stable")
    bounds = np.searchsorted(cut_column[order], np.arange(len(columns) + 1))
    for number, column in enumerate(columns):
        in_column = order[bounds[number] : bounds[number + 1]]
        pool = pool_of(column.type)
        if pool == NUMBERS:
            cuts, ranks = np.unique(atoms.cuts.numbers[places[in_column]], return_inverse=True)
            regions.append(Regions(column, cuts, build_look_up_table(cuts)))
        else:
            # texts and wide decimals are Python objects, ranked by their order there
            ordinals = [pools[pool][place] for place in places[in_column].tolist()]
            distinct = sorted(set(ordinals))
            rank_of = {ordinal: rank for rank, ordinal in enumerate(distinct)}
            ranks = np.array([rank_of[ordinal] for ordinal in ordinals], np.int64)
            regions.append(Regions(column, distinct, None))
        # cut 0 begins region 2, behind NULL and what is below all cuts
        codes[in_column] = ranks + 2
    greatest = np.array([column_regions.greatest for column_regions in regions], np.int32)
    return CodeBook(tuple(regions)), _build_intervals(atoms, owners, codes, greatest)


def _build_intervals(
    atoms: EncodedAtoms, owners: npt.NDArray[np.int64], codes: Codes, greatest: Codes
) -> Intervals:
    """Return each atom's cuts, with the ends of the column where it reaches them, as pairs."""
    count = len(atoms)
    # constants have no column; they stand at column 0, and get no interval
    about = np.where(atoms.column >= 0, atoms.column, 0)
    last = greatest[about] if len(greatest) else np.zeros(count, np.int32)
    within, null = atoms.kind == WITHIN, atoms.kind == IS_NULL
    inside = within & (atoms.starts_inside == 1)
    # an odd number of edges means that the last interval is open: the column's end closes it
    cuts = np.bincount(owners, minlength=count)
    open_end = within & ((cuts + inside) % 2 == 1)
    edges = cuts + inside + open_end
    edges[null] = 2
    start = np.concatenate(([0], np.cumsum(edges)))
    # low, high + 1, low, high + 1, … of one atom after the other
    flat = np.zeros(start[-1], np.int32)
    flat[start[:-1][inside]] = 1
    flat[(start[1:] - 1)[open_end]] = last[open_end] + 1
    first = start[:-1] + inside
    before = np.concatenate(([0], np.cumsum(cuts)))[:-1]
    flat[first[owners] + np.arange(len(owners)) - before[owners]] = codes
    # IS NULL is code 0, IS NOT NULL all others
    is_null, not_null = null & (atoms.negated == 0), null & (atoms.negated == 1)
    flat[start[:-1][is_null] + 1] = 1
    flat[start[:-1][not_null]] = 1
    flat[start[:-1][not_null] + 1] = last[not_null] + 1
    return Intervals(start // 2, flat[0::2].copy(), flat[1::2] - 1)


def build_look_up_table(cuts: npt.NDArray[np.int64]) -> Codes | None:
    """Return the code of every integer from one below the least cut to the greatest, if few."""
    if not len(cuts) or int(cuts[-1]) - int(cuts[0]) > MAX_TABLE_SIZE:
        return None
    least, most = int(cuts[0]), int(cuts[-1])
    # the value one below the least cut must be an integer of 64 bits too
    if least == np.iinfo(np.int64).min:
        return None
    values = np.arange(most - least + 2) + (least - 1)  # `most + 1` may be no integer of 64 bits
    codes = np.searchsorted(cuts, values, side="right") + 1
    return codes.astype(np.int32)
