"""What fulfils the conditions of a theorem, for those who ask why memory is bounded."""

from __future__ import annotations

import pytest

from headgate.predicate.answer import Answer
from headgate.stateful.analysis.proof import NEVER_TRUE
from headgate.stateful.analysis.verdict import check_memory
from tests.scale import case_count, seed
from tests.stateful.random_sql import statements
from tests.stateful.sql import TABLE_1, TYPED, bound, distinct

NO_EQUALITY = "C2: no equality between streams asks for rows to be kept"
NO_INEQUALITY = "C3: no inequality between streams asks for rows to be kept"
COMPARED = "finitely many values by what it is compared with"
ONE_EXTREME = "C3: a stream needs one extreme at most:"


@pytest.mark.parametrize(
    ("select", "lines"),
    [
        (
            TABLE_1["q3"][0],
            (
                "Theorem 5.6 holds",
                f"C1: outputs are finitely many: `A` has {COMPARED}",
                f"C2: `A = D` has {COMPARED}",
                NO_INEQUALITY,
            ),
        ),
        (
            TABLE_1["q7"][0],
            (
                "Theorem 5.6 holds",
                "C1: outputs are finitely many: `A` has 1 value",
                NO_EQUALITY,
                "C3: `B < D` is decided by constants where both sides have no end of values",
            ),
        ),
        (
            distinct(TABLE_1["q6"][0]),
            (
                "Theorem 5.10 holds",
                "C1: outputs are finitely many: `A` has 1 value",
                NO_EQUALITY,
                f"{ONE_EXTREME} `S` the least `B` or `C`; `T` the greatest `D` or `E`",
            ),
        ),
        (
            "SELECT B, COUNT(*) AS n, MEDIAN(A) AS m FROM S WHERE A IN (1, 2) AND B IN (3, 5, 6) "
            "GROUP BY B",
            (
                "Theorem 8.5 holds",
                "(1): groups are finitely many: `B` has 3 values",
                "(2) asks nothing of `COUNT(*)`, which is kept up to date row by row",
                "(2): of `MEDIAN(A)`, values are finitely many: `A` has 2 values",
            ),
        ),
        (
            "SELECT MAX(B) AS m FROM S, T WHERE B > D",
            (
                "Theorem 8.6 holds",
                "C1, by Theorem 5.10, C1: there is one group",
                f"C1, by Theorem 5.10, {NO_EQUALITY}",
                f"C1, by Theorem 5.10, {ONE_EXTREME} `S` the greatest `B`; `T` the least `D`",
                "C3: `MAX(B)` is kept as the extreme of each bucket, and the join needs no other "
                "row",
            ),
        ),
        (
            "SELECT A FROM last_rows(S, 10) AS S, last_rows(T, 1) AS T WHERE A = D",
            (
                "Theorem 5.6 holds",
                "`S` keeps its last 10 rows, whatever the rest",
                "`T` keeps its last 1 row, whatever the rest",
                "C1: the outputs are those of row windows",
                NO_EQUALITY,
                NO_INEQUALITY,
            ),
        ),
        (
            "SELECT DISTINCT x.A FROM S AS x, S AS y WHERE x.B = y.B AND x.A = 1",
            (
                "Theorem 5.10 holds",
                "C1 to C3 hold once an occurrence that gives no new rows is left out (section 8.1)",
            ),
        ),
        ("SELECT A FROM S, T WHERE A < D AND D < A", (NEVER_TRUE,)),
    ],
)
def test_the_conditions_of_a_bounded_query(select: str, lines: tuple[str, ...]) -> None:
    verdict = check_memory(bound(select))
    assert verdict.bounded is Answer.YES
    assert [line.replace("S.", "").replace("T.", "") for line in verdict.explain_bounded()] == list(
        lines
    )
    assert verdict.as_json()["proof"] == verdict.explain_bounded()


def test_values_are_counted_by_type() -> None:
    """Of a Boolean, of a CHECK, and of decimals between two bounds."""
    select = (
        "SELECT DISTINCT F, side, P, D FROM S WHERE P BETWEEN 1 AND 2 AND D = DATE '2026-01-01'"
    )
    lines = check_memory(bound(select, TYPED)).explain_bounded()
    assert lines[1].endswith(
        "`F` has 2 values, `side` has 2 values, `P` has 101 values, `D` has 1 value"
    )


def test_a_proof_is_given_just_where_the_answer_is_yes() -> None:
    for statement in statements(seed(22), case_count(600)):
        verdict = check_memory(statement.query)
        lines = verdict.explain_bounded()
        assert bool(lines) is (verdict.bounded is Answer.YES), statement.text
