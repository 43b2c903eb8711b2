"""Implication: "yes" by z3 and by every row that we know, "no" by its row, "unknown" seldom."""

from __future__ import annotations

import time
from collections import Counter
from itertools import pairwise

import pytest
import z3

import headgate as hg
from headgate.implication.decision import decide_by_search
from headgate.implication.pair import Constraints
from headgate.predicate import evaluate
from headgate.queries import Query
from headgate.schema import INT, STRING, Attribute, Schema, Stream
from headgate.sql import Script, parse_where
from tests.boundaries import STREAM
from tests.corpus import SHARDS, cases
from tests.oracles.formulas import INTS, LIMITS, Formula, Formulas, disjunction
from tests.scale import case_count, seed
from tests.strategies import Seeded

DECLARED = """CREATE STREAM s (
    a INT, b INT, x DOUBLE, t STRING, n STRING NOT NULL, d DATE, q DECIMAL(30, 2), big BIGINT,
    side STRING CHECK (side IN ('buy', 'sell')), flag BOOLEAN,
    level INT CHECK (level BETWEEN 1 AND 3)
)"""


def stream() -> Schema:
    script = Script(Schema())
    list(script.read(DECLARED))
    return script.schema


YES = [
    ("a > 3", "a > 2"),
    ("a BETWEEN 1 AND 5", "a BETWEEN 1 AND 3 OR a BETWEEN 4 AND 9"),
    ("big > 9007199254740992", "big >= 9007199254740993"),
    ("q > 5.1", "q >= 5.11"),
    ("d < DATE '2020-01-01'", "d <= DATE '2019-12-31'"),
    ("x = CAST('NaN' AS DOUBLE)", "x > 1e308"),
    ("x = -0.0", "x = 0.0"),
    ("n = 'x'", "n IS NOT NULL"),
    ("TRUE", "n IS NOT NULL"),
    ("TRUE", "a = 1 OR a <> 1 OR a IS NULL"),
    ("FALSE", "FALSE"),
    ("a > 3 AND a < 2", "b = 1"),
    ("NULL", "FALSE"),
    ("side <> 'buy'", "side = 'sell'"),
    ("side IS NOT NULL", "side = 'buy' OR side = 'sell'"),
    ("level > 1", "level IN (2, 3)"),
    ("flag IS NOT NULL", "flag OR NOT flag"),
    ("t LIKE 'ab%'", "t >= 'ab' AND t < 'ac'"),
    ("t >= 'ab' AND t < 'ac'", "t LIKE 'ab%'"),
    ("t LIKE '%ab%'", "t LIKE '%b%'"),
    ("t NOT LIKE '%b%'", "t NOT LIKE 'ab_%b'"),
    ("t ILIKE '%AB%'", "t ILIKE '%b%'"),
    ("t IN ('abc', 'cba')", "t LIKE '%b%'"),
    ("t = 'abc'", "t RLIKE '^a.c$'"),
    ("t RLIKE 'a.c'", "t IS NOT NULL"),
    ("t NOT LIKE ''", "t > ''"),
    ("a = 3 AND b = 5", "a < b"),
    ("a < b", "a <= b AND a <> b"),
    ("a < b AND b < 10", "a < 9"),
    ("a < b OR a > b", "b <> a"),
    ("a = b AND b > 3", "a > 3"),
    ("a < 5 AND (b = 1 OR b = 2)", "(a < 9 AND b = 1) OR (a < 6 AND b = 2)"),
]
NO = [
    ("a > 2", "a > 3", {"a": 3}),
    ("a > 3", "b < 5 OR b >= 5", {"a": 4, "b": None}),
    ("x BETWEEN 1 AND 5", "x BETWEEN 1 AND 3 OR x BETWEEN 4 AND 9", {"x": 3.5}),
    ("big >= 9007199254740992", "big >= 9007199254740993", {"big": 2**53}),
    ("TRUE", "FALSE", {}),
    ("TRUE", "a = a", {"a": None}),
    ("t IN ('abc', 'xyz')", "t LIKE '%b%'", {"t": "xyz"}),
    ("a <= b", "a < b", {"a": 0, "b": 0}),
    ("side IS NULL OR side = 'buy'", "side = 'buy'", {"side": None}),
    ("a IS NULL", "a IS NOT NULL", {"a": None}),
]


@pytest.mark.parametrize("p,q", YES)
def test_yes(p: str, q: str) -> None:
    """Discrete and dense types, NULL, NaN, CHECK, NOT NULL, patterns and comparisons."""
    decision = hg.implies(p, q, stream())
    assert decision.answer == "yes"
    assert decision.witness is None
    assert decision


@pytest.mark.parametrize("p,q,row", NO)
def test_no_with_a_row(p: str, q: str, row: dict[str, object]) -> None:
    """The counterexample is a row of the first that is none of the second."""
    decision = hg.implies(p, q, stream())
    assert decision.answer == "no"
    assert decision.witness == row
    assert not decision


def test_unknown_is_neither_true_nor_false() -> None:
    """A pattern that is too long to decide; whoever asks for yes or no learns that."""
    long = "ab" * 2_000
    decision = hg.implies(f"t LIKE '%{long}%'", f"t LIKE '%{long[1:]}%'", stream())
    assert decision.answer == "unknown"
    assert decision.reason
    with pytest.raises(hg.HeadgateError, match=r"unknown: .*; look at `\.answer`"):
        bool(decision)


def test_past_the_budget_it_is_unknown() -> None:
    """A budget that does not do gives "unknown", and the reason says so."""
    strips = " OR ".join(f"a = {i} AND b <> {i} OR a = {i} AND b = {i}" for i in range(30))
    assert hg.implies("a BETWEEN 0 AND 29 AND b > 0", strips, INTS)
    decision = hg.implies("a BETWEEN 0 AND 29 AND b > 0", strips, INTS, budget=99)
    assert decision.answer == "unknown"
    assert "99 comparisons" in decision.reason


def test_a_predicate_of_too_many_boxes_is_searched() -> None:
    """Past the cap of the normal form the tree itself is searched."""
    clauses = " AND ".join(f"(a = {i} OR b = {i} OR c = {i})" for i in range(12))
    assert hg.implies(clauses, f"{clauses} OR d = 1", INTS).answer in ("yes", "unknown")
    assert hg.implies("a = 0", clauses, INTS).answer == "no"


def test_text_needs_the_stream() -> None:
    with pytest.raises(hg.HeadgateError, match="needs `stream`"):
        hg.implies("a > 1", "a > 0")


def test_names_of_attributes_are_not_confused() -> None:
    """Two comparisons whose attributes read alike, one after the other."""
    names = ("a, b", "c", "a", "b, c")
    odd = Stream("odd", tuple(Attribute(name, INT) for name in names))
    assert hg.implies("`a, b` < c", "a < `b, c`", odd).answer == "no"


def test_queries_are_their_conditions() -> None:
    """A query stands for its WHERE, under whatever alias; a join is refused by name."""
    script = Script(stream().with_streams(()))
    texts = (
        "CREATE QUERY p AS SELECT * FROM s AS x WHERE x.a > 3",
        "CREATE QUERY q AS SELECT a FROM s WHERE a > 2",
        "CREATE QUERY j AS SELECT * FROM s AS x, s AS y WHERE x.a = y.a",
    )
    p, q, j = (query for text in texts for query in script.read(text) if isinstance(query, Query))
    assert hg.implies(p, q, stream())
    assert hg.implies(q, p).witness == {"a": 3}
    with pytest.raises(hg.HeadgateError, match="`j` is a join"):
        hg.implies(j, q)


def test_what_makes_no_sense() -> None:
    """Other streams, other types and other things are refused in a line that helps."""
    other = Stream("u", (Attribute("a", STRING),))
    script = Script(stream().with_streams((other,)))
    texts = ("CREATE QUERY p AS SELECT * FROM s WHERE a > 3", "CREATE QUERY q AS SELECT * FROM u")
    p, q = (query for text in texts for query in script.read(text) if isinstance(query, Query))
    with pytest.raises(hg.HeadgateError, match="one stream; these are about `s` and `u`"):
        hg.implies(p, q)
    with pytest.raises(hg.HeadgateError, match="`a` is STRING in stream u, but INT in the cond"):
        hg.implies(p.where, p.where, other)
    with pytest.raises(hg.HeadgateError, match="a condition is SQL text, a Predicate or a Query"):
        hg.implies(3, p)  # type: ignore[arg-type]
    with pytest.raises(hg.HeadgateError, match="`stream` is a Stream, a Schema or a QuerySet"):
        hg.implies("a > 1", "a > 1", "s")  # type: ignore[arg-type]
    with pytest.raises(hg.HeadgateError, match="a budget is at least 1"):
        hg.implies(p, p, budget=0)


def test_what_is_too_large_for_boxes_still_implies_itself() -> None:
    """And what asks for more than another asks for what that asks for."""
    clauses = [f"(a = {i} OR b = {i} OR c = {i} OR d < {i})" for i in range(40)]
    whole, some = " AND ".join(clauses), " AND ".join(clauses[::2])
    assert hg.implies(whole, whole, INTS)
    assert hg.implies(whole, some, INTS)
    assert hg.implies(whole, f"{whole} OR a = 77", INTS)


def test_many_comparisons_end_soon() -> None:
    """Dozens of attributes that are compared in a ring: an answer or "unknown", within seconds."""
    names = [f"a{i}" for i in range(30)]
    ring = Stream("ring", tuple(Attribute(name, INT) for name in names))
    p = " AND ".join(f"a{i} < a{i + 1}" for i in range(29))
    q = " OR ".join(
        f"(a{i} < a{(i + 7) % 30} AND a{(i + 3) % 30} > a{(i + 5) % 30})" for i in range(30)
    )
    start = time.process_time()
    hg.implies(p, q, ring)
    assert time.process_time() - start < 20


def in_logic(p: Formula, q: Formula) -> bool:
    """Does z3 find no values for which p is TRUE and q is not?"""
    solver = z3.Solver()
    solver.add(*LIMITS, p.true(), z3.Not(q.true()))
    answer = solver.check()
    assert answer != z3.unknown
    return bool(answer == z3.unsat)


@pytest.mark.parametrize("shard", SHARDS)
def test_oracle_z3(shard: int) -> None:
    """On integers with NULL and comparisons among them, z3 answers the same."""
    dice, count = Seeded(seed(shard) + 40), case_count(400)
    answers = Counter[str]()
    for _ in range(count):
        p, q = Formulas(dice).formula(2), Formulas(dice).formula(2)
        if dice.below(3) == 0:
            q = disjunction([p, q])
        decision = hg.implies(p.text, q.text, INTS)
        answers[decision.answer] += 1
        if decision.answer == "yes":
            assert in_logic(p, q), (p.text, q.text)
        if decision.answer == "no":
            assert decision.witness is not None
            assert not in_logic(p, q), (p.text, q.text)
    assert answers["unknown"] <= count // 50, answers
    assert min(answers["yes"], answers["no"]) > count // 10, answers


@pytest.mark.parametrize("shard", SHARDS)
def test_agree_with_the_search(shard: int) -> None:
    """Over all types, boxes and the plain search never contradict each other, and no row that is
    known contradicts a "yes"."""
    answers = Counter[str]()
    for one, other in pairwise(cases(shard, 400)):
        p = one.predicate
        q = parse_where(f"({other.text}) OR ({one.text}) AND qty IS NOT NULL", STREAM)
        decision = hg.implies(p, q, STREAM)
        answers[decision.answer] += 1
        searched = decide_by_search(p, q, Constraints.of(STREAM, (p, q)))
        assert {decision.answer, searched.answer} != {"yes", "no"}, (one.text, other.text)
        if decision.answer == "yes":
            for row in (*one.rows, *other.rows):
                assert evaluate(p, row) is not True or evaluate(q, row) is True
    assert answers["unknown"] <= case_count(400) // 10, answers
    assert min(answers["yes"], answers["no"]) > case_count(400) // 20, answers


def test_a_counterexample_is_a_row_of_the_stream() -> None:
    """It has a value in each NOT NULL column that a condition names, though no box does."""
    required = hg.Stream("s", (Attribute("n", INT), Attribute("u", STRING, nullable=False)))
    decision = hg.implies("n = 2 OR (u = 'a' AND u = 'b')", "n = 3", required)
    assert decision.answer == "no"
    assert decision.witness is not None
    assert decision.witness["u"] is not None
