"""The disjunctive normal form: the same rows, or declined before it is expanded."""

from __future__ import annotations

import time

import pytest

from headgate.errors import ExpansionTooLarge
from headgate.predicate import (
    Conjunct,
    Predicate,
    collect_columns,
    estimate_dnf_size,
    evaluate,
    evaluate_atom,
    to_dnf,
    to_monotone,
)
from headgate.schema import INT, Attribute, Stream
from headgate.sql import parse_where
from tests.boundaries import STREAM, Row
from tests.corpus import SHARDS, cases
from tests.scale import case_count

CAP = 300


def member(row: Row, conjunct: Conjunct, predicate: Predicate) -> bool:
    """Is the row in the box, and do the other conditions hold?"""
    values = ((column, row[column.key]) for column in collect_columns(predicate))
    ordinals = {column: column.type.ordinal(v) for column, v in values if v is not None}
    return ordinals in conjunct.box and all(
        evaluate_atom(other, row) is True for other in conjunct.conditions
    )


@pytest.mark.parametrize("shard", SHARDS)
def test_oracle_dnf(shard: int) -> None:
    """A row is TRUE for a predicate exactly when it lies in one of the conjuncts; no more of
    them than estimated, none of them empty, and none twice."""
    expanded = 0
    for case in cases(shard, 500):
        held = to_monotone(case.predicate)
        try:
            conjuncts = to_dnf(case.predicate, cap=CAP)
        except ExpansionTooLarge:
            assert estimate_dnf_size(held) > CAP
            continue
        expanded += 1
        assert len(conjuncts) <= estimate_dnf_size(held) <= CAP, case.text
        assert len(set(conjuncts)) == len(conjuncts)
        assert not any(conjunct.box.is_empty for conjunct in conjuncts)
        for row in case.rows:
            result = any(member(row, conjunct, case.predicate) for conjunct in conjuncts)
            assert result == (evaluate(case.predicate, row) is True), (case.text, row)
    assert expanded > case_count(250)


def test_explosion_is_declined_quickly() -> None:
    """Thirty clauses of two would make 2^30 conjuncts; that is said at once, with the number."""
    clauses = " AND ".join(f"(a{n} = 1 OR b{n} = 2)" for n in range(30))
    names = [f"{letter}{n}" for letter in "ab" for n in range(30)]
    wide = Stream("wide", tuple(Attribute(name, INT) for name in names))
    predicate = parse_where(clauses, wide)
    started = time.process_time()
    with pytest.raises(
        ExpansionTooLarge, match=r"1,073,741,824 alternatives, over the cap of 10,000"
    ):
        to_dnf(predicate)
    assert time.process_time() - started < 0.1


def test_boxes_of_one_attribute_split() -> None:
    """`<>` and IN are one condition, and a box for each gap or value."""
    for text, count in (("qty <> 3", 2), ("qty IN (1, 5, 9)", 3), ("qty > 3", 1), ("FALSE", 0)):
        assert len(to_dnf(parse_where(text, STREAM))) == count
