"""The tree keeps its rules and its answers, whatever comes and goes, under every option."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from headgate.errors import UsageError
from headgate.matching import ScanIndex
from headgate.matching.be_tree.index import BeTreeIndex
from headgate.matching.be_tree.options import BeTreeOptions, Evaluation
from headgate.queries import Query, Source
from headgate.schema import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    Attribute,
    DecimalType,
    Schema,
    Stream,
)
from headgate.snapshot.arrays.queries import decode_queries, encode_queries
from headgate.sql import parse_where
from headgate.testing.contract import lists, query
from headgate.testing.generate import every_type, random_rows, random_where
from tests.scale import slow_unless_in

OPTIONS = [
    BeTreeOptions(),
    BeTreeOptions(capacity=2),
    BeTreeOptions(capacity=3, directory="generic"),
    BeTreeOptions(capacity=3, directory="hybrid", evaluation="bitmap"),
    BeTreeOptions(capacity=3, directory="specialised", evaluation="lazy"),
    BeTreeOptions(capacity=4, evaluation="direct", leaf="references"),
    BeTreeOptions(capacity=4, evaluation="lazy", bloom=16),
    BeTreeOptions(capacity=4, bloom=32, leaf="references"),
    BeTreeOptions(capacity=4, bloom=64, evaluation="bitmap"),
    BeTreeOptions(capacity=3, construction="batch", scoring="histogram"),
    BeTreeOptions(capacity=3, adapt=True, beta=None, threshold=0.5),
    BeTreeOptions(capacity=3, exploit=0.5, reinserted=0.3, min_size=1),
    BeTreeOptions(capacity="table", adapt=True, alpha=0.9),
]
QUICK_OPTIONS = [OPTIONS[n] for n in (0, 2, 5, 6, 9, 12)]  # each choice is in one of them

NARROW = Stream(
    "s",
    (
        Attribute("a", INT),
        Attribute("b", BIGINT),
        Attribute("c", DOUBLE),
        Attribute("d", STRING),
        Attribute("e", DecimalType(38, 2)),
    ),
)


def conjunction(random: Random) -> str:
    """Most of the operators that a tree cuts by, on few attributes, so that leaves overflow."""
    names = random.sample("abcde", random.randint(1, 4))
    return " AND ".join(_predicate(random, name) for name in names)


def disjunction(random: Random) -> str:
    """Up to four of them, so that a query is found more than once."""
    return " OR ".join(f"({conjunction(random)})" for _ in range(random.randint(1, 4)))


def _predicate(random: Random, name: str) -> str:
    def constant() -> str:
        number = random.choice((random.randint(-9, 9), random.randint(-(2**31), 2**31 - 1)))
        return f"'{number % 97:x}'" if name == "d" else str(number)

    low, high = constant(), constant()
    kind = random.randrange(6)
    if kind < 2:
        return f"{name} = {low}"
    if kind == 2:
        return f"{name} {random.choice(('<', '<=', '>', '>=', '<>'))} {low}"
    if kind == 3:
        return f"{name} BETWEEN {low} AND {high}"
    return f"{name} {random.choice(('IN', 'NOT IN'))} ({low}, {high}, {constant()})"


def row(random: Random) -> dict[str, object]:
    values: dict[str, object] = {}
    for name in "abcde":
        if random.random() < 0.8:
            number = random.choice((random.randint(-9, 9), random.randint(-(2**31), 2**31 - 1)))
            values[name] = f"{number % 97:x}" if name == "d" else number
    return values


@pytest.mark.parametrize("options", slow_unless_in(QUICK_OPTIONS, OPTIONS), ids=range(len(OPTIONS)))
def test_everything_in_lock_step(options: BeTreeOptions) -> None:
    """After each burst of changes the tree breaks no rule and answers as the scan does."""
    random = Random(options.capacity if isinstance(options.capacity, int) else 1)
    wide = every_type()
    cases: list[tuple[Stream, Callable[[], str], list[Any]]] = [
        (NARROW, lambda: conjunction(random), [row(random) for _ in range(60)]),
        (NARROW, lambda: disjunction(random), [row(random) for _ in range(60)]),
        (wide, lambda: random_where(random, wide, 2), random_rows(random, wide, 40)),
    ]
    for stream, where, rows in cases:
        pairs = 0
        first = [query(stream, f"first{n}", where()) for n in range(40)]
        tree, scan = BeTreeIndex.build(stream, first, options), ScanIndex.build(stream, first)
        held = {one.id for one in first}
        for burst in range(12):
            _change(random, tree, scan, held, stream, where, burst)
            assert tree.check() == []
            expected = lists(scan.match(rows))
            assert lists(tree.match(rows)) == expected
            pairs += len(rows) * len(held)
        assert pairs > 15_000
        for name in sorted(held):
            tree.remove(name)
        assert tree.check() == []
        described = tree.describe()
        assert (described["expressions"], described["buckets"]) == (0, 1)
        assert lists(tree.match(rows)) == [[]] * len(rows)


def _change(
    random: Random,
    tree: BeTreeIndex,
    scan: ScanIndex,
    held: set[str],
    stream: Stream,
    where: Callable[[], str],
    burst: int,
) -> None:
    for number in range(random.choice((1, 30, 120))):
        added = query(stream, f"q{burst}_{number}", where())
        tree.insert(added)
        scan.insert(added)
        held.add(added.id)
    if burst % 3 == 2:
        gone = random.sample(sorted(held), len(held) // 2)
    else:
        gone = random.sample(sorted(held), min(len(held), random.choice((0, 1, 20))))
    for name in gone:
        tree.remove(name)
        scan.remove(name)
        held.discard(name)
    for name in random.sample(sorted(held), min(3, len(held))):
        changed = query(stream, name, where())
        tree.update(changed)
        scan.update(changed)


def make_queries(wheres: list[str], stream: Stream) -> list[Query]:
    return [query(stream, f"S{n}", where) for n, where in enumerate(wheres, 1)]


def test_the_papers_example() -> None:
    """Section 7.3: leaves of three; a and then d are chosen at the root, and b below a.

    The figure with the expressions is an image; these are ours, on the attributes of the text.
    """
    stream = Stream("s", tuple(Attribute(name, INT) for name in "abcd"))
    queries = make_queries(
        [
            "a BETWEEN 1 AND 9",  # S1 to S4: a overflows the root, and takes S1 and S4
            "b = 2",
            "d = 3",
            "a BETWEEN 2 AND 8",
            "d = 5",  # S5, S6: the next overflow gives d its partition
            "d = 6",
            "a = 1 AND b = 1",  # S7, S8 go below a, whose leaf is clustered
            "a = 8 AND b = 2",
            "a BETWEEN 1 AND 8 AND b = 3",  # S9 makes the top bucket of a overflow once more
            "a BETWEEN 2 AND 9 AND b = 3",
            "a BETWEEN 1 AND 7 AND b = 3",
        ],
        stream,
    )
    options = BeTreeOptions(capacity=3, directory="generic", min_size=2)
    index = BeTreeIndex(stream, options)
    attributes = []
    for added in queries:
        index.insert(added)
        assert index.check() == []
        attributes.append(index.draw(deepest=1, widest=9))
    at_root = [[text.split(":")[0] for depth, text in one if depth == 1] for one in attributes]
    assert at_root[2] == []
    assert at_root[3] == ["by a"]
    assert at_root[5] == ["by d", "by a"]
    last = [text for _, text in index.draw(deepest=3, widest=9)]
    assert any(text.startswith("by b") for text in last)
    ids = {one.id for one in queries}
    assert set(index.match([{"a": 5}])[0]) == {"S1", "S4"}
    assert {index.locate(name).index for name in ids} == {"be_tree"}


def test_weak_semantics() -> None:
    """Section 8.3: under weak semantics <> and NOT IN hold for an absent attribute, ranges not."""
    stream = Stream("s", (Attribute("a", INT), Attribute("b", INT)))
    queries = make_queries(["a <> 3", "a NOT IN (1, 2)", "a > 3", "a <> 3 AND b = 1"], stream)
    events = [{}, {"a": 3}, {"b": 1}, {"a": 5, "b": 1}]
    strong = BeTreeIndex.build(stream, queries)
    weak = BeTreeIndex.build(stream, queries, BeTreeOptions(absent="weak"))
    assert lists(strong.match(events)) == [[], ["S2"], [], ["S1", "S2", "S3", "S4"]]
    expected = [["S1", "S2"], ["S2"], ["S1", "S2", "S4"], ["S1", "S2", "S3", "S4"]]
    assert lists(weak.match(events)) == expected


WRITTEN = Stream(
    "s",
    (
        Attribute("a", INT),
        Attribute("t", STRING),
        Attribute("f", BOOLEAN),
        Attribute("p", DecimalType(4, 2)),
        Attribute("d", DATE),
    ),
)


@pytest.mark.parametrize(
    ("where", "holds"),
    [
        ("a <> 3", True),
        ("a != 3", True),
        ("3 <> a", True),
        ("NOT a = 3", True),
        ("NOT a IN (1, 2, 3)", True),
        ("NOT (a = 3 OR t IN ('x', 'y'))", True),
        pytest.param(
            f"a NOT IN ({', '.join(map(str, range(0, 20_400, 2)))})", True, id="a long NOT IN"
        ),
        ("a <> 3 AND a IS NOT NULL", False),
        ("a IN (1, 2)", False),
        ("NOT a <> 3", False),
        ("a IS NULL AND t <> 'x'", True),
        ("t NOT LIKE 'x%'", False),
        (" AND ".join(f"(a <> {n} OR f = TRUE)" for n in range(8)), True),  # scanned
        # ranges, however few values they refuse
        ("p < 10", False),
        ("p >= 0", False),
        ("p < 10 AND p >= 0", False),
        ("a > -2147483000", False),
        ("d <= DATE '9990-01-01'", False),
        ("a < 3 OR a > 3", False),
        ("a < 3 OR a > 5", False),
        ("NOT a BETWEEN 3 AND 5", False),
        ("a = a", False),
        # the same set of values as the line above or below it, written otherwise
        ("a NOT BETWEEN 3 AND 5", False),
        ("a NOT IN (3, 4, 5)", True),
        ("a > -2147483648", False),
        ("a <> -2147483648", True),
        ("a < 2147483647", False),
        ("a <> 2147483647", True),
        ("t > ''", False),
        ("t <> ''", True),
        ("p < 99.99", False),
        ("p <> 99.99", True),
        ("NOT f", False),
        ("f = FALSE", False),
        ("f <> TRUE", True),
        ("a < 3E10", False),
        ("a <> 3.5", True),
    ],
)
def test_what_is_weak(where: str, holds: bool) -> None:
    """`<>` and NOT IN as written hold where all attributes are absent, and nothing else does.

    It does not matter by which way the query came: the reader of plain conditions, the parser of
    all others, or a snapshot.
    """
    options = BeTreeOptions(absent="weak")
    source = (Source(WRITTEN, "s"),)
    queries = [
        Query("fast", source, parse_where(where, WRITTEN)),
        Query("parsed", source, parse_where(f"({where}) AND 1 = 1", WRITTEN)),
    ]
    index = BeTreeIndex.build(WRITTEN, queries, options)
    assert index.match([{}])[0] == (["fast", "parsed"] if holds else [])
    schema = Schema((WRITTEN,))
    stored = list(decode_queries(encode_queries(queries, schema), schema))
    assert stored == queries
    assert lists(BeTreeIndex.build(WRITTEN, stored, options).match([{}])) == lists(
        index.match([{}])
    )


def test_attributes_that_are_only_compared() -> None:
    """What a tree cannot cut by is read from events all the same."""
    stream = Stream("s", tuple(Attribute(name, INT) for name in "abc"))
    index = BeTreeIndex.build(stream, make_queries(["a = 1 AND b < c"], stream))
    assert lists(index.match([{"a": 1, "b": 1, "c": 2}, {"a": 1, "b": 2, "c": 2}])) == [["S1"], []]


def test_batches_are_cut_whenever_the_tree_was_empty() -> None:
    options = BeTreeOptions(construction="batch", capacity=5)
    stream = Stream("s", (Attribute("a", INT),))
    index = BeTreeIndex.build(stream, [], options)
    for _ in range(2):
        for n in range(500):
            index.insert(query(stream, f"q{n}", f"a = {n}"))
        assert index.check() == []
        assert index.describe()["at_root"] <= 5
        for n in range(500):
            index.remove(f"q{n}")


def test_what_comes_between_two_chunks_is_not_matched(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch is matched against the queries that were there; a new attribute is no error."""
    monkeypatch.setattr("headgate.matching.be_tree.index.MAX_ROWS", 4)
    monkeypatch.setattr("headgate.matching.be_tree.index.MAX_PRECOMPUTED_ROWS", 4)
    stream = Stream("s", (Attribute("a", INT), Attribute("b", INT)))
    index = BeTreeIndex.build(stream, make_queries(["a = 1"], stream))
    chunks = index.match_chunks([{"a": 1, "b": 2}] * 12)
    pieces = [next(chunks)]
    index.insert(query(stream, "late", "b = 2"))
    index.insert(query(stream, "null", "b IS NULL OR a = 1"))
    pieces += chunks
    assert [lists(piece) for piece in pieces] == [[["S1"]] * 4] * 3
    assert index.match([{"a": 1, "b": 2}])[0] == ["S1", "late", "null"]


def test_texts_in_any_order() -> None:
    """Constants that come between others, one by one, are told apart without a bitmap too."""
    stream = Stream("s", (Attribute("t", STRING),))
    random, words = Random(8), [f"{n:b}" for n in range(150)]
    evaluations: tuple[Evaluation, ...] = ("lazy", "hybrid")
    for evaluation in evaluations:
        index, scan = BeTreeIndex(stream, BeTreeOptions(evaluation=evaluation)), ScanIndex(stream)
        for order in (sorted(words), sorted(words, reverse=True), random.sample(words, 150)):
            for n, word in enumerate(order):
                added = query(stream, f"q{n}", f"t {random.choice(('<', '=', '>='))} '{word}'")
                index.insert(added)
                scan.insert(added)
                if n % 30 == 0:
                    events = [{"t": random.choice(words)} for _ in range(20)] + [{"t": ""}]
                    assert lists(index.match(events)) == lists(scan.match(events))
            for n in range(150):
                index.remove(f"q{n}")
                scan.remove(f"q{n}")


def test_too_many_alternatives_are_scanned() -> None:
    """A query whose OR of conjunctions would be too large matches all the same, beside the tree."""
    stream = Stream("s", tuple(Attribute(f"a{n}", INT) for n in range(16)))
    where = " AND ".join(f"(a{n} = 1 OR a{n + 8} = 2)" for n in range(8))
    index = BeTreeIndex.build(stream, make_queries([where, "a0 = 1"], stream))
    assert index.describe()["scanned"] == 1
    assert "scanned" in index.locate("S1").how
    event = {f"a{n}": 1 for n in range(8)}
    assert index.match([event, {"a0": 1}]).ids().to_pylist() == [["S1", "S2"], ["S2"]]
    index.remove("S1")
    assert index.match([event]).ids().to_pylist() == [["S2"]]


def test_domains_grow() -> None:
    """Constants far outside of what was seen so far are told apart like all others."""
    stream = Stream("s", (Attribute("a", BIGINT),))
    index = BeTreeIndex(stream, BeTreeOptions(capacity=2, directory="generic"))
    for power in range(62):
        index.insert(query(stream, f"up{power}", f"a BETWEEN {2**power} AND {2**power + 1}"))
        index.insert(query(stream, f"down{power}", f"a <= {-(2**power)}"))
        index.match([{"a": power}])
        assert index.check() == []
    matches = index.match([{"a": 2**40}, {"a": -(2**61)}, {"a": -(2**63)}, {"a": 2**62}])
    assert [len(matches[n]) for n in range(4)] == [1, 62, 62, 0]
    assert index.describe()["leaves"] > 20


def test_unknown_options_are_refused() -> None:
    wrongs: list[dict[str, Any]] = [
        {"directory": "hash"},
        {"capacity": 0},
        {"capacity": 10**30},
        {"min_size": None},
        {"alpha": 2.0},
        {"alpha": "x"},
        {"exploit": None},
        {"threshold": "x"},
        {"adapt": "no"},
        {"seed": -1},
        {"bloom": 8},
    ]
    for wrong in wrongs:
        with pytest.raises(UsageError, match="BE-Tree"):
            BeTreeOptions(**wrong)
