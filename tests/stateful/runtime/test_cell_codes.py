"""Two rows have the same code exactly when their cells are equal."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headgate.events.columns import encode_column
from headgate.schema import (
    BIGINT,
    DATE,
    DOUBLE,
    EVERYTHING,
    INT,
    STRING,
    DecimalType,
    Interval,
    Ordinal,
    String,
    Timestamp,
    Type,
    ValueSet,
)
from headgate.stateful.analysis.boundedness import analyse
from headgate.stateful.analysis.synopses.branches import NotReducible
from headgate.stateful.analysis.synopses.cells import (
    NULL_CELL,
    Cell,
    Cells,
    Piece,
    make_single_cell,
    overlay_cells,
)
from headgate.stateful.analysis.synopses.plan import build_plan
from headgate.stateful.runtime import cell_codes
from headgate.stateful.runtime.cell_codes import ColumnCoder
from tests.scale import at_least, case_count, seed
from tests.stateful.random_sql import statements

WIDE = DecimalType(30, 2)
HOUR = 3_600_000_000
TEXTS = ("", "a", "ab", "ab\0", "é", "zz", "\uffff", "𝄞", "\U0010ffff")


def near(cells: Cells, numbers: random.Random) -> list[Any]:
    """Ordinals around all ends of cells, the limits of the type, and anything else."""
    ends: set[Any] = {end for p in cells.pieces for end in (p.span.low, p.span.high)}
    ends = (ends | set(cells.possible.cuts)) - {None}
    type_ = cells.type
    if isinstance(type_, String):
        around = {text for end in ends for text in (end, end + "\0", end + "x", end[:-1])}
        return sorted(around | set(TEXTS))
    low, high = int(type_.minimum), int(type_.maximum or 0)
    result = {low, low + 1, high - 1, high, 0} | {numbers.randrange(-20, 60) for _ in range(9)}
    result |= {numbers.randrange(low, high + 1) for _ in range(9)}
    result |= {end + by for end in ends for by in range(-2, 3)}
    if isinstance(type_, Timestamp):
        result |= {end + by * HOUR for end in list(ends)[:9] for by in (1, 4, 5, 24, 36)}
    return sorted(each for each in result if low <= each <= high)


def value_of(type_: Type, ordinal: Ordinal | None, numbers: random.Random) -> Any:
    if ordinal is None:
        return None
    value = type_.value(ordinal)
    return -0.0 if value == 0.0 and type_ == DOUBLE and numbers.random() < 0.5 else value


def batches(cells: Cells, numbers: random.Random) -> Iterator[list[Ordinal | None]]:
    ordinals = near(cells, numbers)
    for rows in (60, 1, 0, 20):
        options = [None, *ordinals] if numbers.random() < 0.5 else ordinals
        yield numbers.choices(options, k=rows)


def check(cells: Cells, numbers: random.Random, *, null: bool) -> ColumnCoder:
    """The law, over several columns that one coder sees."""
    coder = ColumnCoder(cells, null=null)
    cell_of: dict[int, Cell] = {}
    for ordinals in batches(cells, numbers):
        values = [value_of(cells.type, ordinal, numbers) for ordinal in ordinals]
        column = pa.array([*values[:3], *values], cells.type.arrow).slice(len(values[:3]))
        codes, has = coder.codes(encode_column(column, cells.type))
        assert (codes.dtype, has.dtype) == (np.dtype(np.int64), np.dtype(np.bool_))
        for ordinal, code, is_in in zip(ordinals, codes.tolist(), has.tolist(), strict=True):
            null_cell = NULL_CELL if null else None
            cell = null_cell if ordinal is None else cells.cell(ordinal)
            assert is_in == (cell is not None)
            if cell is not None:
                assert cell_of.setdefault(code, cell) == cell
                assert code >= 0
                assert coder.size is None or code < coder.size
    assert len(set(cell_of.values())) == len(cell_of)
    return coder


def test_the_cells_of_random_queries() -> None:
    numbers = random.Random(seed(13))
    kinds: set[tuple[str, bool]] = set()
    for statement in statements(seed(17), case_count(250)):
        try:
            plan = build_plan(statement.query, analyse(statement.query).cases)
        except NotReducible:
            continue  # unbounded self-joins have no cells
        for _, stores in plan.stores:
            for store in stores:
                for column in store.columns:
                    cells = store.cells(column)
                    coder = check(cells, numbers, null=store.has_null(column))
                    kinds.add((column.type.family, coder.size is None))
                    if coder.size is not None:
                        null = store.has_null(column)
                        assert coder.size == cells.values + cells.gaps + null
    assert len(kinds) >= at_least(5)


def random_layer(numbers: random.Random, type_: Type, ends: Sequence[Any]) -> Cells:
    """Pieces of all kinds between some of these ends, some of the values possible."""
    cuts = sorted(numbers.sample(ends, numbers.randrange(1, min(6, len(ends)))))
    low: Any = None
    pieces = []
    for high in [*cuts, None]:
        if numbers.random() < 0.8:
            span, between = Interval(low, high), numbers.random() < 0.5
            options = [Piece(span, "gap"), Piece(span, "values")]
            if type_ in (DOUBLE, WIDE):
                options.append(Piece(span, "grid", INT, between))
            pieces.append(numbers.choice(options))
        low = high
    possible = [ValueSet.of(Interval(*sorted(numbers.sample(ends, 2)))) for _ in range(2)]
    chosen = numbers.choice((EVERYTHING, possible[0], possible[0].union(possible[1])))
    return Cells(type_, chosen, tuple(pieces))


ENDS: dict[Type, list[Any]] = {
    INT: [-5, -1, 0, 1, 2, 7, 8, 100, 2**31 - 1],
    BIGINT: [-(2**62), -1, 0, 1, 2**53, 2**53 + 1, 2**62],
    DATE: [-700, 0, 1, 2, 30, 31, 20_000],
    WIDE: [-(10**29), -150, -100, 0, 1, 100, 10**20, 10**20 + 1, 10**29],
    DOUBLE: [DOUBLE.ordinal(x) for x in (-1e300, -2.5, -1.0, 0.0, 5e-324, 0.1, 1.0, 3.5, 9.0)],
    STRING: list(TEXTS),
}


@pytest.mark.parametrize("type_", ENDS, ids=str)
def test_random_cells(type_: Type) -> None:
    """Cells of one layer, and of several whose gaps share marks."""
    numbers = random.Random(seed(19))
    for _ in range(case_count(120)):
        count = numbers.choice((1, 2, 3))
        layers = [random_layer(numbers, type_, ENDS[type_]) for _ in range(count)]
        cells = layers[0] if count == 1 else overlay_cells(type_, layers)
        check(cells, numbers, null=numbers.random() < 0.5)


def test_days_of_another_zone_cut_timestamps() -> None:
    zone = Timestamp("America/New_York")
    first, last = (zone.ordinal(datetime(2024, 3, day, tzinfo=UTC)) for day in (9, 12))
    piece = Piece(Interval(first, last), "grid", DATE, between=True)
    coder = check(Cells(zone, EVERYTHING, (piece,)), random.Random(1), null=True)
    assert coder.size is None


def test_what_is_not_queried_is_one_cell() -> None:
    for type_ in (INT, DOUBLE, STRING, WIDE):
        codes, has = ColumnCoder(make_single_cell(type_), null=False).codes(
            encode_column(pa.array([None, None], type_.arrow), type_)
        )
        assert (codes.tolist(), has.tolist()) == ([0, 0], [False, False])
        check(make_single_cell(type_), random.Random(2), null=True)


def test_more_cells_than_64_bits_number() -> None:
    every = Cells(BIGINT, EVERYTHING, (Piece(Interval(None, None), "values"),))
    assert check(every, random.Random(3), null=True).size is None
    most = Cells(BIGINT, EVERYTHING, (Piece(Interval(2, None), "values"),))
    assert check(most, random.Random(4), null=True).size == 2**63 - 1


def test_few_values_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """For ever new texts, memory does not grow; the codes of cells stay."""
    monkeypatch.setattr(cell_codes, "MAX_REMEMBERED_VALUES", 3)
    pieces = (Piece(Interval(None, "b"), "gap"), Piece(Interval("b", None), "gap"))
    coder = ColumnCoder(Cells(STRING, EVERYTHING, pieces), null=True)
    for number in range(20):
        column = pa.array([f"a{number}", f"b{number}", None, f"a{number}{number}"])
        codes, _ = coder.codes(encode_column(column, STRING))
        assert codes[0] == codes[3] != codes[1] != codes[2]
        assert len(coder._remembered) <= 3
        assert len(coder._numbers) == 3
