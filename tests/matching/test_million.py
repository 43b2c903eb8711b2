"""The index `keyed` gives the answers of `scan`, and those of DuckDB, on a million pairs each.

DuckDB reads the text of each condition itself; `oracles/duck.py` says where the two languages are
held apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache

import duckdb
import numpy as np
import numpy.typing as npt
import pytest

from headgate.matching import Index, Matches, ScanIndex
from headgate.matching.keyed.index import KeyedIndex
from headgate.queries import Query, Source
from headgate.schema import Attribute
from headgate.sql import WhereReader
from tests.boundaries import NUMERIC, STREAM, Row
from tests.matching.ways import forced_way
from tests.oracles.duck import TEXTS, Pair, both, table_of, text_pair
from tests.scale import case_count, seed
from tests.strategies import Seeded, pick
from tests.wide import WideClauses, WidePairs, wide_row

PAIRS = 1_000_000
QUERIES, EVENTS = 330, 610  # of each shape
COLUMNS = 40  # conditions in a statement of DuckDB
LONG_LIST = 5_000
LONG_TEXT = 350_000

Grid = npt.NDArray[np.bool_]


class Drawn:
    """Conditions of either grammar, as pairs."""

    def __init__(self, source: WideClauses | WidePairs) -> None:
        self.source, self.dice = source, source.dice

    def where(self) -> Pair:
        return _pair(self.source.where())

    def about(self, attributes: Sequence[Attribute]) -> None:
        """From now on of some of these attributes."""
        self.source.palette = [pick(self.dice, attributes) for _ in range(3)]

    def atom(self) -> Pair:
        return _pair(self.source.atom())

    def range(self) -> Pair:
        attribute = pick(self.dice, self.source.palette)
        if isinstance(self.source, WideClauses):
            return both(self.source.comparison(attribute))
        return self.source.compared(attribute, self.source.literal(attribute))

    def equal(self, operator: str) -> Pair:
        """An attribute beside a constant; for DuckDB too, whatever the grammar."""
        source = self.source if isinstance(self.source, WidePairs) else WidePairs(self.dice)
        attribute = pick(self.dice, STREAM.attributes)
        return source.operand(attribute).combine(f"{{}} {operator} {{}}", source.literal(attribute))

    def chain(self, word: str, draw: Callable[[], Pair], most: int) -> Pair:
        """One to `most` conditions, with AND or OR between them."""
        first, *others = (draw() for _ in range(1 + self.dice.below(most)))
        return first.combine(f" {word} ".join(["({})"] * (1 + len(others))), *others)


def _pair(drawn: str | Pair) -> Pair:
    return drawn if isinstance(drawn, Pair) else both(drawn)


def general(drawn: Drawn) -> Pair:
    return drawn.where()


def dnf(drawn: Drawn) -> Pair:
    drawn.about(STREAM.attributes)
    return drawn.chain("OR", lambda: drawn.chain("AND", drawn.atom, 4), 4)


def cnf(drawn: Drawn) -> Pair:
    drawn.about(STREAM.attributes)
    return drawn.chain("AND", lambda: drawn.chain("OR", drawn.atom, 3), 4)


def boxes(drawn: Drawn) -> Pair:
    """Many under one condition, as bitmaps have them."""
    drawn.about(NUMERIC[:4])
    return Pair("flag", '"flag"').combine("{} AND {}", drawn.chain("AND", drawn.range, 3))


def contradictions(drawn: Drawn) -> Pair:
    """Never TRUE, whether or not that can be seen."""
    return drawn.where().under("({0}) AND NOT ({0}) AND ({0}) IS NOT NULL")


def tautologies(drawn: Drawn) -> Pair:
    return drawn.where().under("({0}) OR NOT ({0}) OR ({0}) IS NULL")


SHAPES = (general, dnf, cnf, boxes, contradictions, tautologies)
SHARE = -(-PAIRS // len(SHAPES))


@lru_cache(maxsize=1)
def events() -> tuple[Row, ...]:
    """Rows in which attributes are NULL or absent now and then; without NUL, as DuckDB has it."""
    dice = Seeded(seed(4))
    return tuple(_without_nul(wide_row(dice)) for _ in range(EVENTS))


def _without_nul(row: Row) -> Row:
    return {n: TEXTS[0] if isinstance(v, str) and "\0" in v else v for n, v in row.items()}


@lru_cache(maxsize=1)
def database() -> duckdb.DuckDBPyConnection:
    return table_of([{a.name: row.get(a.name) for a in STREAM} for row in events()])


@lru_cache(maxsize=1)
def reader() -> WhereReader:
    return WhereReader(STREAM)


def queries(pairs: Sequence[Pair]) -> list[Query]:
    sources = (Source(STREAM, STREAM.name),)
    return [Query(f"q{n}", sources, reader().read(pair.ours)) for n, pair in enumerate(pairs)]


def with_repeated(pairs: list[Pair]) -> list[Pair]:
    """A tenth of the queries stands there twice."""
    return pairs + pairs[::10]


def grid(matches: Matches, count: int) -> Grid:
    """Events by queries: do they match? No pair may be there twice."""
    result = np.zeros((len(matches), count), np.bool_)
    result[np.repeat(np.arange(len(matches)), np.diff(matches.offsets)), matches.positions] = True
    assert int(result.sum()) == matches.total
    return result


def answered(kind: type[Index], queries: Sequence[Query]) -> Grid:
    matches = kind.build(STREAM, queries).match(list(events()))
    assert not matches.errors
    return grid(matches, len(queries))


def by_duckdb(pairs: Sequence[Pair]) -> Grid:
    """Where DuckDB finds each condition TRUE."""
    result = np.zeros((EVENTS, len(pairs)), np.bool_)
    for start in range(0, len(pairs), COLUMNS):
        some = pairs[start : start + COLUMNS]
        listed = ", ".join(f"({pair.duck}) IS TRUE AS c{n}" for n, pair in enumerate(some))
        rows = database().execute(f"SELECT {listed} FROM trades ORDER BY place").fetchnumpy()
        for n in range(len(some)):
            result[:, start + n] = rows[f"c{n}"]
    return result


def same(actual: Grid, expected: Grid, pairs: Sequence[Pair]) -> int:
    """The number of pairs of a query and an event that were compared."""
    assert actual.shape == expected.shape == (EVENTS, len(pairs))
    for event, query in np.argwhere(actual != expected).tolist():
        pytest.fail(
            f"{pairs[query].ours[:2_000]!r} on {events()[event]}: "
            f"{actual[event, query]}, not {expected[event, query]}"
        )
    return actual.size


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_agree_with_scan(shape: Callable[[Drawn], Pair]) -> None:
    """In every shape of condition; the shapes together make a million pairs."""
    compared = matched = 0
    for turn in range(case_count(1)):
        drawn = Drawn(WideClauses(Seeded(seed(10) + turn)))
        pairs = with_repeated([shape(drawn) for _ in range(QUERIES)])
        answers = answered(KeyedIndex, queries(pairs))
        compared += same(answers, answered(ScanIndex, queries(pairs)), pairs)
        matched += int(answers.sum())
    assert compared >= SHARE
    assert_plausible(shape, compared, matched)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_agree_with_duckdb(shape: Callable[[Drawn], Pair]) -> None:
    """In every shape of condition; the shapes together make a million pairs."""
    compared = matched = 0
    for turn in range(case_count(1)):
        drawn = Drawn(WidePairs(Seeded(seed(20) + turn)))
        pairs = with_repeated([shape(drawn) for _ in range(QUERIES)])
        answers = answered(KeyedIndex, queries(pairs))
        compared += same(answers, by_duckdb(pairs), pairs)
        matched += int(answers.sum())
    assert compared >= SHARE
    assert_plausible(shape, compared, matched)


def assert_plausible(shape: Callable[[Drawn], Pair], compared: int, matched: int) -> None:
    """Always, never, or in a share of the pairs that makes their agreement mean something."""
    if shape is contradictions:
        assert matched == 0
    elif shape is tautologies:
        assert matched == compared
    else:
        assert compared // 20 < matched < compared * 2 // 3


@pytest.mark.parametrize(("way", "place"), [("grid", "in_grid"), ("clusters", "in_bitmaps")])
def test_agree_boxes(way: str, place: str) -> None:
    """Ranges have the answers of DuckDB by whichever bitmaps they are found."""
    drawn = Drawn(WidePairs(Seeded(seed(10))))
    pairs = [boxes(drawn) for _ in range(3 * QUERIES)]
    with forced_way(way):
        index = KeyedIndex.build(STREAM, queries(pairs))
        assert index.describe()[place] >= 64
    same(grid(index.match(list(events())), len(pairs)), by_duckdb(pairs), pairs)


def test_agree_single_query() -> None:
    """A query in a set of its own has the answers that it has among the others."""
    drawn = Drawn(WideClauses(Seeded(seed(30))))
    chosen = queries([dnf(drawn) for _ in range(case_count(60))])
    together = answered(ScanIndex, chosen)
    for n, query in enumerate(chosen):
        single = answered(KeyedIndex, [query])
        assert np.array_equal(single[:, 0], together[:, n]), query


def test_without_queries() -> None:
    """A set that is empty, or has become so, matches nothing and counts its events."""
    chosen = queries([both("qty IS NULL OR qty IS NOT NULL"), both("side LIKE '%'")])
    index = KeyedIndex.build(STREAM, [])
    for _ in range(2):
        assert index.match(list(events())).offsets.tolist() == [0] * (EVENTS + 1)
        for query in chosen:
            index.insert(query)
        assert index.match(list(events())).total > EVENTS
        for query in chosen:
            index.remove(query.id)


def constants(attribute: Attribute) -> list[Pair]:
    """So many different constants of a type, in the order of the type, by steps that rows meet."""
    start, moment = date(1960, 1, 1), datetime(1970, 1, 1, tzinfo=UTC)
    written: dict[str, Callable[[int], Pair]] = {
        "INT": lambda n: both(str(3 * n - 6_000)),
        "BIGINT": lambda n: both(str(2**53 - 2_500 + n)),
        "DECIMAL(10, 2)": lambda n: both(f"{Decimal(n - 100) / 100:.2f}"),
        "DECIMAL(38, 10)": lambda n: both(f"9007199254740992.{n:010d}"),
        "DOUBLE": lambda n: both(f"{n - 2_000}.5e0"),
        "STRING": lambda n: text_pair(f"{chr(97 + n % 26)}{'' if n < 26 else n}"),
        "DATE": lambda n: both(f"DATE '{start + timedelta(days=5 * n)}'"),
        "TIMESTAMP": lambda n: both(
            f"TIMESTAMP '{(moment + timedelta(microseconds=n)):%Y-%m-%d %H:%M:%S.%f}'"
        ),
    }
    return [written[attribute.type.sql](n) for n in range(LONG_LIST)]


def long_lists() -> list[Pair]:
    """IN and NOT IN with 5,000 values for every type that has so many, and both in an OR."""
    collected = []
    for attribute in STREAM.attributes[2::2]:
        values = constants(attribute)
        assert len({value.ours for value in values}) == LONG_LIST
        column = Pair(attribute.name, f'"{attribute.name}"')
        for word in ("IN", "NOT IN"):
            form = "{} " + word + " (" + ", ".join(["{}"] * LONG_LIST) + ")"
            collected.append(column.combine(form, *values))
        collected.append(collected[-1].combine("({}) OR qty > 3 AND ({})", collected[-2]))
    return collected


def test_agree_long_lists() -> None:
    """IN and NOT IN with 5,000 values, of every type, have the answers of scan and of DuckDB."""
    pairs = long_lists()
    answers = answered(KeyedIndex, queries(pairs))
    same(answers, answered(ScanIndex, queries(pairs)), pairs)
    same(answers, by_duckdb(pairs), pairs)
    assert answers.any(axis=0).sum() > len(pairs) * 3 // 4
    assert not answers.all(axis=0).any()


def long_texts() -> list[Pair]:
    """Expressions of 350,000 characters: a DNF, a CNF, and where a DNF is not TRUE."""
    drawn = Drawn(WidePairs(Seeded(seed(40))))
    collected = []
    for outer, inner, operator, each in (("OR", "AND", "=", 4), ("AND", "OR", "<>", 6)):
        parts: list[Pair] = []
        size = -6  # the first has nothing before it
        while size < LONG_TEXT:
            first, *others = (drawn.equal(operator) for _ in range(each))
            parts.append(first.combine(f" {inner} ".join(["{}"] * each), *others))
            size += len(parts[-1].ours) + 6
        collected.append(parts[0].combine(f" {outer} ".join(["({})"] * len(parts)), *parts[1:]))
    return [*collected, collected[0].under("({}) IS NOT TRUE")]


@pytest.mark.slow
def test_agree_long_texts() -> None:
    """Expressions of 350,000 characters have the answers of scan and of DuckDB."""
    pairs = [*long_texts(), both("qty > 3")]
    assert min(len(pair.ours) for pair in pairs[:-1]) >= LONG_TEXT
    answers = answered(KeyedIndex, queries(pairs))
    same(answers, answered(ScanIndex, queries(pairs)), pairs)
    same(answers, by_duckdb(pairs), pairs)
    assert (answers.sum(axis=0) > 0).all()
    assert (answers.sum(axis=0) < EVENTS).all()
