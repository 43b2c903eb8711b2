"""What is at fault, in words and at its place."""

from __future__ import annotations

import pytest

from headgate.stateful.analysis.boundedness import analyse
from headgate.stateful.analysis.diagnosis import Diagnosis, diagnose
from tests.stateful.sql import PAPER, bound


def blamed(select: str, file: str | None = None) -> Diagnosis:
    query = bound(select, PAPER, file)
    analysis = analyse(query)
    assert analysis.case is not None
    assert analysis.fault is not None
    return diagnose(query, analysis.case, analysis.fault)


@pytest.mark.parametrize(
    ("select", "theorem", "condition", "stream", "attributes", "at"),
    [
        ("SELECT DISTINCT A FROM S WHERE A > 10", "5.10", "C1", "S", ("A",), "A"),
        ("SELECT A AS x FROM S, T WHERE B = 1", "5.6", "C1", "S", ("S.A",), "A AS x"),
        ("SELECT S.A FROM S, T WHERE B = E AND A = 1", "5.6", "C2", "S", ("S.B", "T.E"), "B = E"),
        ("SELECT A FROM S, T WHERE D > B AND A = 1", "5.6", "C3", "S", ("S.B", "T.D"), "D > B"),
        ("SELECT A, COUNT(*) FROM S GROUP BY A", "8.5", "(1)", "S", ("A",), "A"),
        ("SELECT COUNT(*), MEDIAN(A) AS m FROM S", "8.5", "(2)", "S", ("A",), "MEDIAN(A) AS m"),
        ("SELECT COUNT(*) AS all_of_A, MEDIAN(A) FROM S", "8.5", "(2)", "S", ("A",), "MEDIAN(A)"),
        ("SELECT MEDIAN(A) FROM S, T WHERE E = 1", "8.6", "C2", "S", ("S.A",), "MEDIAN(A)"),
        ("SELECT MAX(A) FROM S, T WHERE B < D", "8.6", "C3", "S", ("S.A", "S.B", "T.D"), "B < D"),
    ],
)
def test_faults(
    select: str, theorem: str, condition: str, stream: str, attributes: tuple[str, ...], at: str
) -> None:
    """The theorem, the condition, the stream, the attributes, and where they stand."""
    result = blamed(select, "q.sql")
    assert (result.theorem, result.condition, result.stream) == (theorem, condition, stream)
    assert result.attributes == attributes
    assert result.place is not None
    assert result.place.text == at
    line = f"CREATE QUERY q AS {select}"
    places = [i + 1 for i in range(len(line)) if line.startswith(at, i)]
    assert result.place.position.line == 3
    assert result.place.position.column in places


def test_what_follows_is_blamed_on_what_is_written() -> None:
    """`S.B = T.E` follows from two equalities, and both are named."""
    result = blamed("SELECT DISTINCT A FROM S, T WHERE A = 1 AND S.B = S.C AND T.E = S.C")
    assert result.attributes == ("S.B", "T.E")
    assert result.predicates == ("S.B = S.C", "T.E = S.C")


def test_sentences() -> None:
    """Read by somebody who has never seen the paper."""
    assert blamed("SELECT A FROM S, T WHERE A = D").sentence == (
        "each value of `S.A` must be remembered, as it is selected, "
        "and nothing limits how many there are"
    )
    assert blamed("SELECT A FROM S, T WHERE B < D AND A = 1").sentence == (
        "rows of `S` must be counted for each value of `S.B`, as `B < D` may join them later, "
        "and nothing limits how many there are"
    )
    assert blamed("SELECT DISTINCT A FROM S, T WHERE B < D AND C < E AND A = 1").sentence == (
        "`B < D` needs the least `S.B` and `C < E` the least `S.C`, which may be in different rows "
        "of `S`, so that more and more of them must be kept"
    )
    assert blamed(
        "SELECT DISTINCT A FROM S, T WHERE B > D AND C < E AND A = 1"
    ).sentence.startswith(
        "`B > D` needs the greatest `S.B` and `C < E` the least `S.C`, which may be"
    )
    assert blamed("SELECT S.A FROM S, T WHERE B = E AND A = 1").sentence == (
        "rows of `S` must be kept for each value of `S.B`, as `B = E` may join them later, "
        "and nothing limits how many there are"
    )
    assert blamed("SELECT A, COUNT(*) FROM S GROUP BY A").sentence == (
        "each value of `A` is a group of its own, and nothing limits how many there are"
    )
    assert blamed("SELECT MEDIAN(A) FROM S").sentence == (
        "MEDIAN needs every value of `A`, and nothing limits how many there are"
    )
    assert blamed("SELECT MAX(A) FROM S, T WHERE B < D").sentence == (
        "`MAX(S.A)` may come from any row of `S`, whichever `B < D` joins later, "
        "so that all of them must be kept"
    )
