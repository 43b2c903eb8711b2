"""Each kernel of `keyed` against a twin that is written from its definition and shares no code."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from math import inf, isclose
from random import Random
from typing import Any

import numpy as np
import pytest

from headgate.matching.encoding.kernels import group_by_row
from headgate.matching.keyed import build
from headgate.matching.keyed.index import KeyedIndex
from headgate.matching.keyed.kernels import records
from headgate.matching.keyed.kernels.entries import key_entries
from headgate.matching.keyed.kernels.keys import choose_keys, find_deciding
from headgate.queries import Query
from headgate.schema import INT, Attribute, Stream
from headgate.snapshot.arrays.atoms import COMPARE, CONSTANT, IS_NULL, MATCHES, WITHIN
from headgate.testing.contract import query
from tests.matching.ways import forced_way
from tests.scale import at_least, case_count, seed

FALSE, TRUE, NULL = 0, 1, 2
ATOMS = 5
Tree = tuple[Any, ...]


def random_tree(random: Random, depth: int) -> Tree:
    kind = random.random()
    if depth == 0 or kind < 0.2:
        return ("atom", random.randrange(ATOMS))
    if kind < 0.35:
        return ("not", random_tree(random, depth - 1))
    if kind < 0.5:
        return ("truth", random.randrange(1, 7), random_tree(random, depth - 1))
    parts = [random_tree(random, depth - 1) for _ in range(random.randint(1, 3))]
    return (random.choice(("and", "or")), *parts)


def written(tree: Tree) -> list[int]:
    """The tree in the notation of `encoding.trees`."""
    name, *parts = tree
    if name == "atom":
        return [parts[0]]
    if name == "truth":
        return [*written(parts[1]), -8 - parts[0]]
    inner = [entry for part in parts for entry in written(part)]
    return [*inner, {"not": -1, "and": -16 - 2 * len(parts), "or": -17 - 2 * len(parts)}[name]]


def truth(tree: Tree, values: Sequence[int]) -> int:
    name, *parts = tree
    if name == "atom":
        return values[parts[0]]
    if name == "truth":
        return int(truth(parts[1], values) in [v for v in range(3) if 2**v & parts[0]])
    inside = {truth(part, values) for part in parts}
    if name == "not":
        return {FALSE: TRUE, TRUE: FALSE, NULL: NULL}[inside.pop()]
    decides = FALSE if name == "and" else TRUE
    if decides in inside:
        return decides
    return NULL if NULL in inside else 1 - decides


@pytest.mark.parametrize("hard", [0.0, 0.3])
def test_oracle_keys(hard: float) -> None:
    """Whatever makes a condition TRUE has a literal of its key; a key costs what its literals cost.

    Some truth values never occur, and under some nothing can be filed. Each condition has atoms of
    its own.
    """
    random = Random(seed(1))
    trees = [random_tree(random, 4) for _ in range(case_count(1_000))]
    costs = [[random_cost(random, hard) for _ in range(3)] for _ in range(ATOMS * len(trees))]
    programs = [
        [entry + ATOMS * q if entry >= 0 else entry for entry in written(tree)]
        for q, tree in enumerate(trees)
    ]
    program = np.array([entry for one in programs for entry in one], np.int32)
    offsets = np.cumsum([0, *map(len, programs)])
    start, atom, target, weight = choose_keys(offsets, program, np.array(costs))
    assert (weight < inf).sum() > len(trees) // 4
    satisfied = 0
    for q, tree in enumerate(trees):
        cost = costs[ATOMS * q : ATOMS * (q + 1)]
        ends = range(start[q], start[q + 1])
        literals = [(int(atom[k]) - ATOMS * q, int(target[k])) for k in ends]
        if 0 < weight[q] < inf:
            assert isclose(sum(cost[a][t] for a, t in literals), weight[q]), tree
        else:
            assert not literals
        if weight[q] < inf:
            satisfied += satisfying(tree, cost, literals)
    assert satisfied > 10 * len(trees)


def random_cost(random: Random, hard: float) -> float:
    return random.choice((0.0, inf)) if random.random() < hard else random.random() + 0.01


def satisfying(tree: Tree, cost: list[list[float]], literals: list[tuple[int, int]]) -> int:
    """How many assignments make a condition TRUE, all of which must have one of the literals."""
    occurring = [[t for t in range(3) if cost[a][t] > 0] for a in range(ATOMS)]
    listed = [values for values in product(*occurring) if truth(tree, values) == TRUE]
    for values in listed:
        assert any(values[a] == t for a, t in literals), (tree, values, literals)
    return len(listed)


def test_oracle_cover() -> None:
    """A literal's nodes lead to it from exactly the codes for which it holds, and only once."""
    random = Random(seed(2))
    for _ in range(case_count(2_000)):
        check_cover(random)


def check_cover(random: Random) -> None:
    columns, atoms = random.randint(1, 3), random.randint(1, 6)
    greatest = [random.choice((1, 2, 3, 7, 8, 30)) for _ in range(columns)]
    width = [2 ** g.bit_length() for g in greatest]  # the least power of two above each
    base = np.cumsum([0, *(2 * w for w in width)])
    kind = [
        random.choice((WITHIN, WITHIN, IS_NULL, MATCHES, COMPARE, CONSTANT)) for _ in range(atoms)
    ]
    column = [random.randrange(columns) for _ in range(atoms)]
    accepted = [
        accepted_codes(random, kind[a], greatest[column[a]])
        if kind[a] in (WITHIN, IS_NULL)
        else set()
        for a in range(atoms)
    ]
    pieces = [runs(codes) for codes in accepted]
    starts = np.cumsum([0, *map(len, pieces)])
    literals = [
        [(random.randrange(atoms), random.randrange(3)) for _ in range(random.randint(0, 3))]
        for _ in range(random.randint(1, 5))
    ]
    flat = [literal for one in literals for literal in one]
    nodes, queries, origin = key_entries(
        np.cumsum([0, *map(len, literals)]),
        np.array([a for a, _ in flat], np.int32),
        np.array([t for _, t in flat], np.uint8),
        np.array(kind, np.uint8),
        np.array(column, np.int32),
        starts,
        np.array([low for one in pieces for low, _ in one], np.int32),
        np.array([high for one in pieces for _, high in one], np.int32),
        np.array(greatest, np.int64),
        base,
        np.array(width, np.int64),
        int(base[-1]),
    )
    filed = defaultdict(list)
    for node, q, k in zip(nodes.tolist(), queries.tolist(), origin.tolist(), strict=True):
        filed[k].append(node)
        assert flat[k] in literals[q]
    for k, (a, t) in enumerate(flat):
        if kind[a] in (COMPARE, CONSTANT) or (kind[a] == MATCHES and t != NULL):
            assert filed[k] == [base[-1] + 3 * a + t]
            continue
        c = column[a]
        everything = set(range(0 if kind[a] == IS_NULL else 1, greatest[c] + 1))
        holds = {TRUE: accepted[a], FALSE: everything - accepted[a], NULL: {0}}[t]
        for code in range(width[c]):
            above = [base[c] + (width[c] + code) // 2**up for up in range(width[c].bit_length())]
            met = sum(filed[k].count(node) for node in above)
            assert met == (code in holds), (greatest[c], accepted[a], t, code)


def accepted_codes(random: Random, kind: int, greatest: int) -> set[int]:
    if kind == IS_NULL:
        return random.choice(({0}, set(range(1, greatest + 1))))
    dense = random.random()
    return {code for code in range(1, greatest + 1) if random.random() < dense}


def runs(codes: set[int]) -> list[tuple[int, int]]:
    """The codes as intervals, ascending."""
    lows = sorted(code for code in codes if code - 1 not in codes)
    highs = sorted(code for code in codes if code + 1 not in codes)
    return list(zip(lows, highs, strict=True))


def test_oracle_records() -> None:
    """What stands in the records, read as their docstring has it, is what was put into them."""
    random = Random(seed(3))
    bitmaps = sum(check_records(random) for _ in range(case_count(60)))
    assert bitmaps > at_least(20)


def check_records(random: Random) -> int:
    """Random clusters of rows, some with a bitmap; gives how many have one."""
    sizes = [random.choice((1, 3, 70, 130, 200)) for _ in range(random.randint(1, 4))]
    start = np.cumsum([0, *sizes])
    fit = np.array([random.choice((0, size // 2, size)) for size in sizes])
    total, columns = int(start[-1]), random.randint(1, 4)
    codes = random.choice((2, 6, 40))
    rows: list[list[tuple[int, int, int]]] = []
    how = np.zeros(total, np.int32)
    for c, size in enumerate(sizes):
        for i in range(size):
            if i >= fit[c]:
                how[start[c] + i] = random.choice((1, 2))
            intervals = random.randint(0, 4)
            rows.append([random_interval(random, columns, codes) for _ in range(intervals)])
    row = np.cumsum([0, *map(len, rows)])
    flat = [interval for one in rows for interval in one]
    column, low, high = (np.array([one[n] for one in flat], np.int32) for n in range(3))
    queries = np.array(random.sample(range(10 * total), total), np.int32)
    mask = np.array([random.getrandbits(62) for _ in range(total)], np.int64)
    plan = records.plan_records(start, fit, row, column, low, high)
    filled, bits, _ = records.fill_records(
        start, fit, queries, mask, how, row, column, low, high, plan
    )
    lines = plan[2]
    for c in range(len(sizes)):
        record = filled[lines[c] * records.LINE : lines[c + 1] * records.LINE].tolist()
        check_heads(record, [*range(start[c], start[c + 1])], queries, mask, how, rows)
        for _ in range(20):
            event = [random.randrange(codes + 1) for _ in range(columns)]
            expected = {
                int(queries[i])
                for i in range(start[c], start[c] + record[0])
                if all(lo <= event[col] <= hi for col, lo, hi in rows[i])
            }
            assert in_bitmap(record, bits, event) == expected
    return int((plan[0] > 0).sum())


def random_interval(random: Random, columns: int, codes: int) -> tuple[int, int, int]:
    low = random.randrange(codes)
    return random.randrange(columns), low, random.randint(low, codes)


def check_heads(
    record: list[int], entries: list[int], queries: Any, mask: Any, how: Any, rows: Any
) -> None:
    """The heads behind the bitmap, and their intervals."""
    in_leaf, heads, place = record[0], record[3], record[4]
    assert in_leaf + heads == len(entries)
    for entry in entries[in_leaf:]:
        number, at, lower, upper = record[place : place + 4]
        assert (number, lower + (upper << 31)) == (queries[entry], mask[entry])
        size, then = record[at : at + 2]
        assert then == how[entry]
        assert [tuple(record[at + 2 + 3 * k : at + 5 + 3 * k]) for k in range(size)] == rows[entry]
        place += 4


def in_bitmap(record: list[int], bits: Any, event: list[int]) -> set[int]:
    """The queries of a record's bitmap whose bits are set in the row of each column."""
    size, columns, line = record[:3]
    if not size:
        return set()
    words = (size + 63) // 64
    result = set(range(size))
    for about in range(6, 6 + 4 * columns, 4):
        column, first, count, row = record[about : about + 4]
        region = sum(bound <= event[column] for bound in record[first : first + count])
        begin = 8 * line + (row + region) * words
        result &= {i for i in range(size) if int(bits[begin + i // 64]) >> i % 64 & 1}
    listed = record[record[4] - size : record[4]]
    return {listed[i] for i in result}


COLUMNS = 5
RANGES = Stream("s", tuple(Attribute(f"a{n}", INT) for n in range(COLUMNS)))
Box = dict[int, tuple[int, int]]


@lru_cache(maxsize=1)
def random_boxes() -> list[tuple[Query, Box]]:
    """Ranges on some attributes, and a rare value of the first, which many have in common."""
    random = Random(seed(6))
    collected = []
    for n in range(700):
        rare = random.choice((0, 0, 0, 1, random.randrange(30)))
        box: Box = {0: (rare, rare)}
        for a in random.sample(range(1, COLUMNS), random.randint(1, 3)):
            low = random.randrange(100)
            box[a] = (low, random.randint(low, 110))
        text = " AND ".join(f"a{a} BETWEEN {low} AND {high}" for a, (low, high) in box.items())
        collected.append((query(RANGES, f"q{n}", text), box))
    return collected


@pytest.mark.parametrize("way", ["grid", "coarse grid", "clusters"])
def test_oracle_rows(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Boxes match the events inside them: from a bitmap, from a coarser one, and from clusters."""
    random = Random(seed(7))
    boxes = random_boxes()
    events = [
        {
            f"a{a}": random.randrange(112) if a else random.randrange(3)
            for a in range(COLUMNS)
            if random.random() < 0.9
        }
        for _ in range(400)
    ]
    if way == "coarse grid":
        monkeypatch.setattr(build, "MAX_GRID_BITS", 1)
    with forced_way("clusters" if way == "clusters" else "grid"):
        index = KeyedIndex.build(RANGES, [one for one, _ in boxes])
        matches = index.match(events)
        described = index.describe()
    assert described["in_bitmaps" if way == "clusters" else "in_grid"] > 100
    for n, event in enumerate(events):
        inside = [one.id for one, box in boxes if is_inside(event, box)]
        assert matches[n] == inside
    assert matches.total > 1_000


def is_inside(event: dict[str, int], box: Box) -> bool:
    return all(f"a{a}" in event and low <= event[f"a{a}"] <= high for a, (low, high) in box.items())


def test_oracle_by_row() -> None:
    """A row has the columns and codes that came with its number, in the order that they had."""
    random = Random(seed(8))
    for _ in range(case_count(500)):
        count, size = random.randint(0, 6), random.randint(0, 20)
        rows = [random.randrange(count) for _ in range(size if count else 0)]
        columns = [random.randrange(9) for _ in rows]
        codes = [random.randrange(99) for _ in rows]
        start, column, code = group_by_row(
            count, np.array(rows, np.int64), np.array(columns, np.int32), np.array(codes, np.int32)
        )
        assert (start[0], start[-1], len(start)) == (0, len(rows), count + 1)
        for r in range(count):
            mine = [i for i, of in enumerate(rows) if of == r]
            assert column[start[r] : start[r + 1]].tolist() == [columns[i] for i in mine]
            assert code[start[r] : start[r + 1]].tolist() == [codes[i] for i in mine]


def test_parts_of_the_outermost_and_decide() -> None:
    """Also where a part is an AND of nothing, which begins and ends at its only entry."""
    random = Random(seed(61))
    programs: list[list[int]] = []
    expected: list[bool] = []
    for _ in range(case_count(500)):
        tree = random_tree(random, 3)
        if random.random() < 0.3:
            parts = [random.choice([("and",), ("or",), tree]) for _ in range(3)]
            tree = ("and", *parts)
        program = written(tree)
        # by entry: does it end one of the parts?
        sizes = [len(written(part)) for part in tree[1:]] if tree[0] == "and" else []
        ends = {sum(sizes[: place + 1]) - 1 for place in range(len(sizes))}
        expected += [entry in ends for entry in range(len(program))]
        programs.append(program)
    offsets = np.cumsum([0, *map(len, programs)])
    flat = np.array([entry for program in programs for entry in program], np.int32)
    assert find_deciding(offsets, flat).tolist() == expected
