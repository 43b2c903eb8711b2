"""The parts of the tree against plain twins, and the paper's tables and equations one by one."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import get_args

import numpy as np
import pytest

from benchmarks.workloads import generate_begen
from benchmarks.workloads.begen import BegenSpec
from headgate.matching import ScanIndex
from headgate.matching.be_tree.index import BeTreeIndex
from headgate.matching.be_tree.kernels.adapt import rank_nodes
from headgate.matching.be_tree.kernels.change import list_buckets
from headgate.matching.be_tree.kernels.cut import fit_capacity
from headgate.matching.be_tree.kernels.expressions import AROUND, INSIDE, MEETS, SAME, are_related
from headgate.matching.be_tree.kernels.leaves import list_leaf
from headgate.matching.be_tree.kernels.nodes import (
    add_entry,
    find_middle,
    look_up,
    rehash,
    remove_entry,
)
from headgate.matching.be_tree.kernels.pools import (
    ATTRIBUTE,
    HASHED,
    HIGH,
    HOME,
    LOW,
    NONE,
    OWNER,
    ROOT,
    TreeArrays,
)
from headgate.matching.be_tree.options import (
    BeTreeOptions,
    Directory,
    Evaluation,
    choose_capacity,
)
from headgate.matching.be_tree.predicates import find_hull, to_closed_intervals
from headgate.matching.be_tree.semantics import are_related_sets
from headgate.matching.be_tree.values import MAX_POINT, MIN_POINT, to_point, widen
from headgate.predicate import Within
from headgate.schema import BIGINT, INT, STRING, Attribute, Interval, Stream, ValueSet
from headgate.sql import parse_where
from headgate.testing.contract import lists, query
from tests.scale import slow_unless_in

STREAM = Stream("s", (Attribute("a", INT), Attribute("b", INT)))


@pytest.mark.parametrize(
    ("where", "interval"),
    [
        ("a < 7", (MIN_POINT, 6)),
        ("a <= 7", (MIN_POINT, 7)),
        ("a = 7", (7, 7)),
        ("a <> 7", (MIN_POINT, MAX_POINT)),
        ("a > 7", (8, MAX_POINT)),
        ("a >= 7", (7, MAX_POINT)),
        ("a IN (9, 3, 5)", (3, 9)),
        ("a NOT IN (3, 5)", (MIN_POINT, MAX_POINT)),
        ("a BETWEEN 3 AND 9", (3, 9)),
    ],
)
def test_table_i(where: str, interval: tuple[int, int]) -> None:
    """Table I: each operator as the interval that the directories tell it apart by."""
    atom = parse_where(where, STREAM)
    assert isinstance(atom, Within)
    assert find_hull(atom.values) == interval


def test_equation_9() -> None:
    """A leaf that cannot be cut has the least multiple of the capacity that holds it."""
    assert [fit_capacity(count, 5) for count in (0, 1, 5, 6, 11)] == [5, 5, 5, 10, 15]


def test_table_vi() -> None:
    """Table VI: 5 below 1 %, 20 below 10 %, else 160."""
    rates = [5, 10, 99, 100, 500]  # of 1,000 expressions, in 1,000 events
    capacities = [choose_capacity("table", 1_000, 1_000, 1_000 * matched) for matched in rates]
    assert capacities == [5, 20, 20, 160, 160]


def test_halves_meet_and_do_not_overlap() -> None:
    random = Random(1)
    for _ in range(10_000):
        low, high = sorted(random.randint(MIN_POINT, MAX_POINT) for _ in range(2))
        assert find_middle(low, high) == (low + high) // 2


def test_a_domain_holds_what_it_held() -> None:
    random = Random(2)
    for _ in range(10_000):
        ends = [random.choice((MIN_POINT, MAX_POINT, random.randint(-50, 50))) for _ in range(4)]
        (low, high), (least, most) = sorted(ends[:2]), sorted(ends[2:])
        start, end = widen(low, high, least, most)
        if low == MAX_POINT:  # nothing was known
            low = least
        assert MIN_POINT <= start <= min(low, least)
        assert max(high if high < MAX_POINT else most, most) <= end <= MAX_POINT


def test_points_ascend_with_values() -> None:
    texts = sorted("".join(Random(n).choices("aé𝛼\0z", k=n % 12)) for n in range(2_000))
    points = [to_point(text) for text in texts]
    assert points == sorted(points)


def test_the_directory_is_a_dictionary() -> None:
    """Thousands of entries come and go, in tables that are half full, and grow in between."""
    random = Random(3)
    table, twin = np.full((256, 4), -1, np.int64), dict[tuple[int, int], int]()
    for number in range(30_000):
        owner, value = (
            random.randrange(40),
            random.choice((random.randrange(9), -number, MAX_POINT)),
        )
        known = twin.get((owner, value), -1)
        assert look_up(table, owner, value) == known
        if known == -1 and 2 * len(twin) < len(table):
            add_entry(table, owner, value, number)
            twin[owner, value] = number
        elif twin and random.random() < 0.5:
            gone = random.choice(list(twin)) if number % 50 == 0 else next(iter(twin))
            remove_entry(table, *gone)
            del twin[gone]
        if number in (5_000, 20_000):
            table = rehash(table, 2 * len(table))
    assert {key: look_up(table, *key) for key in twin} == twin
    assert int((table[:, 0] != -1).sum()) == len(twin)


def test_relations_of_sets() -> None:
    """The kernel on closed intervals and the sets themselves agree, whatever the sets."""
    random = Random(4)
    seen = set()
    for _ in range(6_000):
        sets = []
        for _ in range(2):
            ends = sorted(random.sample(range(12), 2 * random.randint(1, 3)))
            values = ValueSet.of(*(Interval(*ends[i : i + 2]) for i in range(0, len(ends), 2)))
            sets.append(values.complement() if random.random() < 0.3 else values)
        if random.random() < 0.2:
            sets[1] = sets[0]
        arrays = [
            np.array(to_closed_intervals(one), np.int64).reshape(-1, 2).T.copy() for one in sets
        ]
        for kind in (MEETS, INSIDE, AROUND, SAME):
            expected = are_related_sets(sets[0], sets[1], kind)
            assert are_related(*arrays[0], *arrays[1], kind) == expected
            seen.add((kind, expected))
    assert len(seen) == 8


EVALUATIONS: tuple[Evaluation, ...] = ("direct", "lazy", "bitmap", "hybrid")


@pytest.mark.parametrize("evaluation", EVALUATIONS)
def test_predicates_are_counted_and_given_up(evaluation: Evaluation) -> None:
    """Section 6.1: a predicate that nobody has any more is given up, and its place used again."""
    index = BeTreeIndex(STREAM, BeTreeOptions(evaluation=evaluation))
    for turn in range(4):
        for n in range(1_500):
            index.insert(query(STREAM, f"{turn} {n}", f"a = {turn * 1_500 + n} AND b > {n % 7}"))
        assert index.match([{"a": turn * 1_500 + 6, "b": 9}])[0] == [f"{turn} 6"]
        assert index.describe()["predicates"] == 1_507
        for n in range(1_500):
            index.remove(f"{turn} {n}")
        assert index.match([{"a": 6, "b": 9}])[0] == []
    assert index.describe()["predicates"] == 0
    assert len(index._tree.predicates) < 4_000


def test_beta_follows_false_candidates() -> None:
    """Equation 15: where covered predicates lead to many false candidates, β falls below 0.5."""
    options = BeTreeOptions(beta=None, capacity=4, directory="generic")
    wheres = [f"a BETWEEN {n} AND {n + 40} AND b = {n}" for n in range(60)]
    queries = [query(STREAM, f"q{n}", where) for n, where in enumerate(wheres)]
    index = BeTreeIndex.build(STREAM, queries, options)
    assert index.describe()["beta"] == 0.5
    index.match([{"a": n, "b": 1_000} for n in range(100)])
    assert index.describe()["beta"] < 0.2


def test_what_ranks_low_is_recycled() -> None:
    """Section 5.2: what events only discard moves, nothing is lost by it, and it comes to rest."""
    random = Random(5)
    wheres = [f"a > {random.randint(0, 9)} AND b > {random.randint(0, 400)}" for _ in range(400)]
    queries = [query(STREAM, f"q{n}", where) for n, where in enumerate(wheres)]
    options = BeTreeOptions(adapt=True, alpha=0.9, capacity=4)
    index, scan = BeTreeIndex.build(STREAM, queries, options), ScanIndex.build(STREAM, queries)
    events = [{"a": random.randint(0, 12), "b": random.randint(0, 40)} for _ in range(300)]
    recycled = []
    for _ in range(12):
        assert lists(index.match(events)) == lists(scan.match(events))
        assert index.check() == []
        recycled.append(index.describe()["recycled"])
    assert recycled[0] > 0
    assert len(set(recycled)) < 10


def test_a_query_with_or_is_given_out_once() -> None:
    """However many of its alternatives hold, and however many calls a batch takes."""
    queries = [query(STREAM, f"q{n}", "a = 1 OR b = 2 OR a > 5") for n in range(3_000)]
    index = BeTreeIndex.build(STREAM, queries)
    assert index.match([{"a": 1}] * 1_000).total == 3_000_000
    matches = index.match([{"b": 8}] * 697 + [{"a": 1}, {"a": 6, "b": 2}, {}])
    assert np.diff(matches.offsets)[-4:].tolist() == [0, 3_000, 3_000, 0]
    assert sorted(matches.positions[-3_000:].tolist()) == list(range(3_000))


def test_one_event_may_lead_to_every_bucket() -> None:
    """Halves below halves: the way of a single event grows with the product of the depths."""
    stream = Stream("s", (Attribute("a", BIGINT), Attribute("b", BIGINT)))
    powers = [2**n - 1 for n in range(1, 63)]
    wheres = [f"a BETWEEN 0 AND {m} AND b BETWEEN 0 AND {n}" for m in powers for n in powers]
    queries = [query(stream, f"q{n}", where) for n, where in enumerate(wheres)]
    index = BeTreeIndex.build(stream, queries, BeTreeOptions(capacity=2))
    assert index.match([{"a": 0, "b": 0}]).total == len(queries)
    assert index.check() == []


@pytest.mark.parametrize("zipf", slow_unless_in([1.0], [0.0, 1.0]))
@pytest.mark.parametrize(
    "options",
    [
        BeTreeOptions(),
        BeTreeOptions(construction="batch", evaluation="lazy", bloom=32),
        BeTreeOptions(directory="generic", evaluation="direct", capacity=5),
        BeTreeOptions(directory="hybrid", adapt=True, reinserted=0.05, exploit=0.9),
    ],
    ids=range(4),
)
def test_the_papers_workload(zipf: float, options: BeTreeOptions) -> None:
    """Five thousand queries of BEGen at its most expressive, a million pairs of each case."""
    queries = generate_begen(
        5_000, BegenSpec(operators="high", zipf=zipf, fewest=3, extra=3), seed=6
    )
    events = queries.events(200, seed=7).table()
    tree = BeTreeIndex.from_encoded(queries.stream, queries.encode(), options)
    expected = lists(ScanIndex.build(queries.stream, queries.queries()).match(events))
    assert sum(map(len, expected)) > 5_000
    assert lists(tree.match(events)) == expected
    assert tree.check() == []
    for name in [f"q{n}" for n in range(0, 5_000, 2)]:
        tree.remove(name)
    left = [[name for name in ids if int(name[1:]) % 2] for ids in expected]
    assert lists(tree.match(events)) == left
    assert tree.check() == []


@pytest.mark.parametrize("directory", get_args(Directory))
def test_gain_is_what_the_paper_defines(directory: Directory) -> None:
    """Section 5.1: a predicate on an attribute of the path counts by β, or, where it is equivalent
    to the bucket that it lies in, by 1 − β.
    """
    random, beta = Random(9), 0.25
    stream = Stream("s", (*STREAM, Attribute("t", STRING)))
    wheres = []
    for _ in range(600):
        low, width = random.randint(0, 31), random.choice((0, 0, 1, 3, 7, 15))
        start = low - low % (width + 1)
        b = random.choice(("b = 3", f"b <= {low}", "b IS NOT NULL", f"b = {low}", f"b <> {low}"))
        t = f"t = 'a long beginning {low % 3}'"
        wheres.append(f"a BETWEEN {start} AND {start + width} AND {random.choice((b, t))}")
    queries = [query(stream, f"q{n}", where) for n, where in enumerate(wheres)]
    options = BeTreeOptions(capacity=3, directory=directory)
    index = BeTreeIndex.build(stream, queries, options)
    assert index.check() == []
    be_tree = index._tree
    tree, listed = be_tree.arrays, be_tree.expressions.arrays
    ranks, _, _ = rank_nodes(tree, listed, be_tree.predicates.arrays, 0.0, beta)
    subsumed_in = Counter[str]()
    for b in list_buckets(tree, ROOT).tolist():
        gain = 0.0
        for e in list_leaf(tree, b).tolist():
            numbers = listed.predicate[listed.start[e] : listed.start[e] + listed.count[e]].tolist()
            atoms = [be_tree.predicates.atoms[number] for number in numbers]
            sets = {atom.column.name: atom.values for atom in atoms if isinstance(atom, Within)}
            at = b
            while (owner := int(tree.fact[at, OWNER])) != NONE:
                column = be_tree.predicates.columns[int(tree.partition[owner, ATTRIBUTE])]
                kind, extent = describe_extent(tree, at, sets[column.name], column.name)
                gain += 1 - beta if sets[column.name] == extent else beta
                subsumed_in[kind] += sets[column.name] == extent
                at = int(tree.partition[owner, HOME])
        assert ranks[b] == pytest.approx(gain)
    expected = {"hashed"} if directory != "generic" else {"single value"}
    if directory != "specialised":
        expected |= {"range"}
    assert {kind for kind, count in subsumed_in.items() if count} >= expected


def describe_extent(
    tree: TreeArrays, b: int, values: ValueSet, column: str
) -> tuple[str, ValueSet | None]:
    """Return which values a bucket is for; a hashed one is for the value of what lies in it."""
    if tree.fact[b, HASHED] == 1:
        return "hashed", values
    if column == "t":
        return "text", None  # a bucket is for all texts with some first eight bytes
    attribute = int(tree.partition[int(tree.fact[b, OWNER]), ATTRIBUTE])
    low, high = int(tree.bucket[b, LOW]), int(tree.bucket[b, HIGH])
    kind = "single value" if low == high else "range"
    # the first and the last bucket are for everything below and above, too
    first = None if low == tree.domain_low[attribute] else low
    last = None if high == tree.domain_high[attribute] else high + 1
    return kind, ValueSet.of(Interval(first, last))
