"""Each kernel of `keyed` against a twin that is written from its definition and shares no code."""

from __future__ import annotations

from collections import Counter, defaultdict
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
from headgate.matching.keyed.kernels import clusters, rows
from headgate.matching.keyed.kernels.entries import key_entries
from headgate.matching.keyed.kernels.keys import choose_keys, find_deciding
from headgate.matching.keyed.kernels.programs import compile_programs, program_holds
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


Intervals = list[tuple[int, int]]
Condition = tuple[int, Intervals]  # the column, and the codes that it accepts
FIRST, SECOND, REMAINING = range(3)  # what is left of a query: a row, with a program once or more
GREATEST = (1, 7, 63, 64, 200, 253, 254, 255, 256, 300, 5_000)


def test_oracle_clusters() -> None:
    """What the layout of clusters says, read as its docstrings have it, is what was put into it."""
    random = Random(seed(3))
    counts = Counter[str]()
    for _ in range(case_count(60)):
        check_clusters(random, counts)
    assert counts["bitmaps"] > at_least(20)
    met = "tables", "bounds", "masks", "gaps", "wide", "programs", "bitmaps with programs"
    assert min(counts[name] for name in met) > at_least(10), counts


def random_condition(random: Random, columns: int, greatest: Sequence[int]) -> Condition:
    """A set of codes: short, wide, within 64 codes, or with gaps; now and then it holds NULL."""
    column = random.randrange(columns)
    if random.random() < 0.1:
        return column, [random.choice(((0, 0), (1, greatest[column])))]
    low = random.randint(1, greatest[column])
    span = random.choice((1, 3, 64, 65, greatest[column]))
    inside = range(low, min(low + span, greatest[column] + 1))
    if random.random() < 0.6:
        return column, [(inside[0], inside[-1])]
    dense = random.choice((0.1, 0.5, 0.9))
    return column, runs({code for code in inside if random.random() < dense} | {inside[-1]})


def check_clusters(random: Random, counts: Counter[str]) -> None:
    """Random clusters of queries, some with a bitmap; each accepts the events that it should."""
    columns = random.choice((1, 3, 62, 64, 70))
    greatest = [random.choice(GREATEST) for _ in range(columns)]
    sizes = [random.choice((1, 3, 8, 64, 70, 130, 256, 300)) for _ in range(random.randint(1, 4))]
    shared = [
        random_condition(random, columns, greatest) for _ in range(random.choice((4, 12, 90)))
    ]
    conditions = [random.sample(shared, random.randint(1, 4)) for _ in range(sum(sizes))]
    atoms, numbers, programs = number_atoms(conditions)
    # the queries of a cluster that are fit for a bitmap stand first in it
    form, size = rows.classify_atoms(*atoms)
    offsets = np.cumsum([0, *map(len, programs)])
    program = np.array([entry for one in programs for entry in one], np.int32)
    deciding = np.ones(len(program), np.bool_)
    in_row, is_pure, is_fit = rows.mark_rows(offsets, program, deciding, form, atoms[1], columns)
    start = np.cumsum([0, *sizes])
    order = np.concatenate(
        [
            start[c] + np.argsort(~is_fit[start[c] : start[c + 1]], kind="stable")
            for c in range(len(sizes))
        ]
    )
    fit = np.add.reduceat(is_fit, start[:-1])
    queries = order.astype(np.int32)
    # some have a key, a condition that is not looked at again; some a program besides
    key_atom = np.array(
        [numbers[repr(conditions[q][0])] if random.random() < 0.5 else -1 for q in order], np.int32
    )
    entry = np.where(is_pure, -1, np.arange(len(order))).astype(np.int32)
    repeated = np.array([random.random() < 0.5 for _ in order])
    _, column, *intervals = atoms
    last = np.array(greatest, np.int64)
    code_base = np.concatenate(([0], np.cumsum(last + 1)))
    placed = start, fit, queries, key_atom, entry
    brief = clusters.make_brief(column, *intervals)
    plan = clusters.plan_clusters(
        *placed, offsets, program, in_row, size, brief, *intervals, last, code_base
    )
    filled = clusters.fill_clusters(
        plan, *placed, repeated, offsets, program, in_row, form, brief, *intervals, last, code_base
    )
    counts.update({"bitmaps": int((plan[:, 0] >= 0).sum())})
    events = [[random.choice((0, random.randint(0, g))) for g in greatest] for _ in range(10)]
    for place, q in enumerate(order.tolist()):
        for column_, pieces in conditions[q][:1]:
            low, high = random.choice(pieces)  # some event should meet a condition
            events[place % len(events)][column_] = random.randint(low, high)
    for c in range(len(sizes)):
        entries = range(start[c], start[c + 1])
        for event in events:
            expected = {}
            for i in entries:
                q = int(queries[i])
                left = [
                    one
                    for k, one in enumerate(conditions[q])
                    if in_row[offsets[q] + k] and numbers[repr(one)] != key_atom[i]
                ]
                if all(accepts(one, event) for one in left):
                    expected[q] = FIRST if is_pure[q] else (SECOND, REMAINING)[int(repeated[q])]
            assert read_cluster(filled, c, event, counts) == expected


def number_atoms(
    conditions: list[list[Condition]],
) -> tuple[tuple[Any, ...], dict[str, int], list[list[int]]]:
    """The distinct conditions as the arrays of atoms, by what is written, and each query's."""
    distinct = {repr(one): one for query in conditions for one in query}
    numbers = {text: number for number, text in enumerate(distinct)}
    flat = [piece for _, pieces in distinct.values() for piece in pieces]
    atoms = (
        np.full(len(distinct), WITHIN, np.uint8),
        np.array([column for column, _ in distinct.values()], np.int32),
        np.cumsum([0, *(len(pieces) for _, pieces in distinct.values())]),
        np.array([low for low, _ in flat], np.int32),
        np.array([high for _, high in flat], np.int32),
    )
    return atoms, numbers, [[numbers[repr(one)] for one in query] for query in conditions]


def accepts(condition: Condition, event: list[int]) -> bool:
    column, pieces = condition
    return any(low <= event[column] <= high for low, high in pieces)


def read_cluster(
    filled: tuple[Any, ...], c: int, event: list[int], counts: Counter[str]
) -> dict[int, int]:
    """The queries of a cluster that accept an event, and what is left to decide of each."""
    descriptions, bits, about, tables, members, packed, _ = filled
    count, word, columns, table, member, _, row, _ = descriptions[8 * c : 8 * c + 8].tolist()
    end = int(descriptions[8 * c + 14])
    size, width = count & (2**32 - 1), (count & (2**32 - 1)) + 63 >> 6
    result = set(range(size))
    for at in range(columns, columns + 4 * (count >> 32), 4):
        column, place, first, bounds = about[at : at + 4].tolist()
        if bounds:
            region = sum(about[columns + place : columns + place + bounds] <= event[column])
            counts["bounds"] += 1
        else:
            region = tables[table + place + event[column]]
            counts["tables"] += 1
        begin = word + (first + int(region)) * width
        result &= {i for i in range(size) if int(bits[begin + i // 64]) >> i % 64 & 1}
    held = {}
    for number in (int(members[member + i]) for i in result):
        if number >= 0:
            held[number] = FIRST
            continue
        query, (begin, repeated) = (
            int(members[member - 1 - number]),
            divmod(int(members[member - number]), 2),
        )
        assert begin == query
        held[query] = (SECOND, REMAINING)[repeated]
        counts["bitmaps with programs"] += 1
    while row < end:
        mask, query_number, length, items = packed[row : row + 4].tolist()
        present = {column % 32 for column, code in enumerate(event) if code}
        holds = all(bit in present for bit in range(32) if mask >> bit & 1)
        for short in packed[row + 4 : row + items].tolist():
            holds &= short >> 8 & 255 <= event[short >> 16 & 0xFFFF] <= short & 255
        rest = packed[row + items : row + length].tolist()
        left = FIRST
        while rest:
            name, column = ("wide", "gaps", "masks", "programs")[rest[0] & 3], rest[0] >> 2
            counts[name] += 1
            if name == "programs":
                assert rest[1] == query_number
                left, rest = (SECOND, REMAINING)[column], rest[2:]
            elif name == "masks":
                codes = rest[2] & 0xFFFFFFFF | (rest[3] & 0xFFFFFFFF) << 32
                at = event[column] - rest[1]
                holds, rest = holds and 0 <= at < 64 and bool(codes >> at & 1), rest[4:]
            else:
                inside = rest[1] <= event[column] <= rest[2]
                holds, rest = holds and inside == (name == "wide"), rest[3:]
        if holds:
            held[query_number] = left
        row += length
    return held


def test_oracle_programs() -> None:
    """A program accepts just the events for which its condition is TRUE."""
    random = Random(seed(4))
    true = sum(check_programs(random) for _ in range(case_count(150)))
    assert true > at_least(500)


def check_programs(random: Random) -> int:
    """Trees over atoms of all kinds; gives how often they are TRUE."""
    columns = 3
    greatest = [random.choice((1, 3, 70, 300)) for _ in range(columns)]
    # two atoms of each kind
    kind = [WITHIN, IS_NULL, COMPARE, MATCHES, CONSTANT, WITHIN, IS_NULL, COMPARE, MATCHES, WITHIN]
    negated = [random.randrange(2) if one in (IS_NULL, MATCHES) else 0 for one in kind]
    column = [random.randrange(columns) for _ in kind]
    pieces: list[Intervals] = []
    for one, no, c in zip(kind, negated, column, strict=True):
        if one == IS_NULL:
            pieces.append([(1, greatest[c])] if no else [(0, 0)])
        elif one == WITHIN:
            dense = random.random()
            pieces.append(runs({x for x in range(1, greatest[c] + 1) if random.random() < dense}))
        else:
            pieces.append([])
    trees = [random_tree_of(random, 4, len(kind)) for _ in range(10)]
    written_trees = [written(tree) for tree in trees]
    offsets = np.cumsum([0, *map(len, written_trees)])
    program = np.array([entry for one in written_trees for entry in one], np.int32)
    flat = [piece for one in pieces for piece in one]
    entry, tests, lists, cells = compile_programs(
        np.arange(len(trees)),
        np.zeros(len(trees), np.bool_),
        offsets,
        program,
        np.zeros(len(program), np.bool_),
        np.array(kind, np.uint8),
        np.array(column, np.int32),
        np.cumsum([0, *map(len, pieces)]),
        np.array([low for low, _ in flat], np.int32),
        np.array([high for _, high in flat], np.int32),
        np.array(negated, np.uint8),
        np.arange(len(kind)),
        np.array(greatest, np.int64),
    )
    # no explosion: an atom is written twice, or four times under a cell
    assert len(tests) <= 6 * 8 * (len(program) + len(trees))
    true = 0
    for _ in range(20):
        codes = [random.choice((0, random.randint(0, g))) for g in greatest]
        bits = [random.randrange(3) for _ in kind]
        stamps = [int(random.random() < 0.5 and codes[c] != 0) for c in column]
        values = [
            truth_of_atom(kind[a], negated[a], codes[column[a]], pieces[a], bits[a], stamps[a])
            for a in range(len(kind))
        ]
        for n, tree in enumerate(trees):
            expected = truth(tree, values) == TRUE
            true += expected
            assert run_tests(int(entry[n]), tests.tolist(), lists, codes, bits, stamps) == expected
            assert expected == program_holds(
                int(entry[n]),
                tests,
                lists,
                np.array(codes, np.int32),
                np.array([bits], np.uint8),
                0,
                np.array(stamps, np.int64),
                np.zeros(cells + 1, np.uint8),
                1,
            )
    return true


def random_tree_of(random: Random, depth: int, atoms: int) -> Tree:
    """A tree with any of so many atoms, and with an AND or OR of nothing now and then."""
    tree = random_tree(random, depth)

    def spread(node: Tree) -> Tree:
        if node[0] == "atom":
            return random.choice((("atom", random.randrange(atoms)),) * 30 + (("and",), ("or",)))
        return tuple(spread(part) if isinstance(part, tuple) else part for part in node)

    return spread(tree)


def truth_of_atom(
    kind: int, negated: int, code: int, pieces: Intervals, bit: int, stamp: int
) -> int:
    if kind in (COMPARE, CONSTANT):
        return bit
    if code == 0 and kind != IS_NULL:
        return NULL
    if kind == MATCHES:
        return int(stamp != negated)
    return int(any(low <= code <= high for low, high in pieces))


def run_tests(
    at: int, tests: list[int], lists: Any, codes: list[int], bits: list[int], stamps: list[int]
) -> bool:
    """Run a program, read as the docstring of `kernels.programs` has it."""
    cells: dict[int, int] = {}
    while at >= 0:
        head, a, b, c, yes, no = tests[6 * at : 6 * at + 6]
        name = "RANGE CODES LIST PATTERN BIT CELL SET".split()[head & 7]
        code = codes[head >> 3]
        mask = b & 0xFFFFFFFF | (c & 0xFFFFFFFF) << 32
        if name == "SET":
            cells[a] = b
        holds = {
            "RANGE": a <= code <= b,
            "CODES": 0 <= code - a < 64 and mask >> max(0, code - a) & 1 == 1,
            "LIST": sum(lists[a:b] <= code) % 2 == 1 if name == "LIST" else False,
            "PATTERN": name == "PATTERN" and stamps[a] == 1,
            "BIT": name == "BIT" and bits[a] == b,
            "CELL": cells.get(a) == 1,
            "SET": True,
        }[name]
        at = yes if holds else no
    return at == -1


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
