"""The fast parser and sqlglot read the same text alike."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from sqlglot import exp
from sqlglot.dialects.spark import Spark

from headgate.errors import SqlError
from headgate.predicate import Predicate, evaluate
from headgate.schema import INT, STRING, Attribute, Stream
from headgate.sql import Scope, fast
from headgate.sql.where import parse_condition
from tests.boundaries import STREAM, TYPES
from tests.corpus import SHARDS, cases
from tests.mutations import mutated
from tests.oracles.naive import meaning
from tests.scale import at_least, case_count, seed
from tests.strategies import Clauses, Seeded, row, wheres

SCOPE = Scope.of(STREAM)
QUOTED = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def outcome(text: str, scope: Scope = SCOPE) -> Predicate | None:
    """What sqlglot's way makes of a text; None where it is refused."""
    try:
        return parse_condition(text, scope)
    except SqlError:
        return None


def check(text: str, scope: Scope = SCOPE) -> bool:
    """Is the text of the common subset? If so, both ways must read it alike."""
    quick = fast.condition(text, scope)
    assert quick is None or quick == outcome(text, scope), text
    return quick is not None


@given(wheres())
def test_agree_fast_shrinking(text: str) -> None:
    """The fast parser gives up, or reads what sqlglot reads."""
    check(text)


@pytest.mark.parametrize("shard", SHARDS[2:])
def test_agree_fast(shard: int) -> None:
    """The same for clauses by the thousand, a fair part of them in the common subset."""
    quick = sum(check(case.text) for case in cases(shard))
    assert quick > case_count(100)


@pytest.mark.parametrize("shard", SHARDS)
def test_agree_on_mutated_text(shard: int) -> None:
    """A text with a token or character deleted, inserted or doubled is read alike or refused."""
    rng, dice = random.Random(seed(shard)), Seeded(seed(shard))
    for _ in range(case_count(2_000)):
        check(mutated(Clauses(dice).where(1), rng))


@pytest.mark.parametrize("shard", SHARDS)
def test_oracle_mutated_text(shard: int) -> None:
    """What is accepted is in Spark's grammar, and has the meaning that it has there.

    sqlglot mends what it cannot read (`IN (1,,2)`, `BETWEEN 1 2`, a leading AND); we must not.
    """
    rng, dice = random.Random(seed(shard)), Seeded(seed(shard))
    accepted = 0
    for _ in range(case_count(2_000)):
        text = mutated(Clauses(dice).where(rng.choice((0, 1, 1, 2))), rng)
        found = outcome(text)
        if found is None:
            continue
        accepted += 1
        oracle = meaning(text, TYPES)
        for event in [row(dice) for _ in range(3)]:
            assert evaluate(found, event) is oracle(event), (text, event)
    assert accepted > case_count(150)


def words() -> list[str]:
    """All words that mean something to sqlglot."""
    known = {*Spark.Tokenizer.KEYWORDS, *exp.FUNCTION_BY_NAME}
    return sorted({word.upper() for word in known if word.isidentifier()})


def test_agree_on_words_of_sql() -> None:
    """An attribute that is named like a word of SQL is read by both ways alike, quoted or not."""
    forms = (
        "{0} > 1",
        "b = {0}",
        "{0} IN (1, 2)",
        "NOT {0} = 3 AND b < 1",
        "{0} IS NULL",
        "b < {0} OR b = 2",
    )
    for word in words():
        scope = Scope.of(Stream("s", (Attribute(word, INT), Attribute("b", INT))))
        for form in forms:
            check(form.format(word), scope)
            assert outcome(form.format(f"`{word}`"), scope) is not None, word


LIMITS = (
    *(f"{form}'{'x' * n}'" for form in ("side = ", "side LIKE ") for n in (65_533, 65_534, 65_535)),
    *(f"side IN ('a', '{'x' * n}')" for n in (65_534, 65_535, 300_000)),
    *(f"qty = {'9' * n}" for n in (38, 399, 400, 401)),
    *(f"ratio = 0.{'1' * n}" for n in (398, 399, 400)),
    *(f"qty > 1e{n}" for n in (308, 309, 399, 400, 401, 10**20)),
    *("(" * n + "qty = 1" + ")" * n for n in (47, 48, 49, 99, 100, 101, 102)),
    *("NOT " * n + "qty = 1" for n in (99, 100, 101, 102)),
    *("NOT (" * n + "qty = 1" + ")" * n for n in (49, 50, 51, 99, 100, 101)),
    *("qty = 1" + " AND (lots = 2" * n + ")" * n for n in (99, 100, 101)),
    *(".".join(["trades", *"a" * n]) + " = 1" for n in (30, 31, 32, 33)),
    *(f"{'q' * n} = 1" for n in (100, 255, 256, 257, 5_000)),
)


@pytest.mark.parametrize("at", range(len(LIMITS)))
def test_agree_at_the_limits(at: int) -> None:
    """Both ways have the same limits: what one is too large for, the other is too."""
    check(LIMITS[at])


def texts_in_tests() -> Iterator[str]:
    """Every string in the tests' own source, WHERE clauses among them."""
    for path in sorted(Path(__file__).parent.parent.rglob("*.py")):
        yield from QUOTED.findall(path.read_text(encoding="utf-8"))


def test_agree_on_texts_of_the_tests() -> None:
    """Every string that occurs in the tests is read alike, whatever it was meant for."""
    names = ("a", "b", "qty", "price", "side", "flag")
    numbers = Scope.of(Stream("s", tuple(Attribute(name, INT) for name in names)))
    strings = Scope.of(Stream("s", tuple(Attribute(name, STRING) for name in names)))
    quick = sum(
        check(text, scope) for text in texts_in_tests() for scope in (SCOPE, numbers, strings)
    )
    assert quick > at_least(10)
