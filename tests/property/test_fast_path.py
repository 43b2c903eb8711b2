"""The fast path and sqlglot read the same text alike, or the fast path declines."""

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
from headgate.predicate import Predicate, Within, evaluate, iter_atoms
from headgate.schema import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    Attribute,
    DecimalType,
    Stream,
)
from headgate.sql import Scope
from headgate.sql.binder import parse_condition
from headgate.sql.fast_path import FastPath
from tests.boundaries import STREAM, TYPES
from tests.corpus import SHARDS, cases
from tests.mutations import mutated
from tests.oracles.naive import meaning
from tests.scale import case_count, seed
from tests.strategies import Clauses, Seeded, row, wheres

SCOPE = Scope.of(STREAM)
QUOTED = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def outcome(text: str, scope: Scope = SCOPE) -> Predicate | None:
    """Return what the binder makes of a text; None where it is refused."""
    try:
        return parse_condition(text, scope)
    except SqlError:
        return None


def check(text: str, scope: Scope = SCOPE) -> bool:
    """Is the text plain? If so, both ways must read it alike."""
    plain = FastPath(scope).parse(text)
    if plain is None:
        return False
    bound = outcome(text, scope)
    assert plain == bound, text
    assert bound is not None
    assert list_forms(plain) == list_forms(bound), text
    return True


def list_forms(predicate: Predicate) -> list[str]:
    """Return how each set was written, which is no part of what makes atoms equal."""
    return [atom.form for atom in iter_atoms(predicate) if isinstance(atom, Within)]


@given(wheres())
def test_agree_fast_shrinking(text: str) -> None:
    """The fast path declines, or reads what sqlglot reads."""
    check(text)


@pytest.mark.parametrize("shard", SHARDS[2:])
def test_agree_fast(shard: int) -> None:
    """The same for clauses by the thousand, a fair part of them plain."""
    plain = sum(check(case.text) for case in cases(shard))
    assert plain > case_count(100)


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
        actual = outcome(text)
        if actual is None:
            continue
        accepted += 1
        oracle = meaning(text, TYPES)
        for event in [row(dice) for _ in range(3)]:
            assert evaluate(actual, event) is oracle(event), (text, event)
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
    plain = sum(
        check(text, scope) for text in texts_in_tests() for scope in (SCOPE, numbers, strings)
    )
    assert plain > 10


ATOM_TYPES = {
    "i": INT,
    "l": BIGINT,
    "d": DOUBLE,
    "e": DecimalType(10, 2),
    "w": DecimalType(38, 0),
    "z": DecimalType(2, 2),
    "s": STRING,
    "t": DATE,
    "m": TIMESTAMP,
    "b": BOOLEAN,
    "nan": DOUBLE,
    "infinity": INT,
    "E5": DOUBLE,
    "DATEX": DATE,
    "x.y": INT,
}
ATOM_STREAM = Stream("stream", tuple(Attribute(name, type_) for name, type_ in ATOM_TYPES.items()))
WHOLE = (0, 1, -1, 10, -(2**31), 2**31 - 1, 2**31, 2**31 - 2, 2**63 - 1, -(2**63), 2**63, 2**53)
WIDE = (2**53 + 1, 10**14, 10**15 - 1, 10**15, 10**16 + 1, 10**38 - 1, 10**38, 9999999999)
WRITTEN = (
    "0.0 -0 -0.0 00012 1.10 99999999.99 99999999.999 1E400 1e5 1.5E-3 1E0 -99999999.99 0.99 1.00 "
    "12345678901.12345 0.1234567890123456789 999999999999999.5 TRUE false NULL"
).split()
TEXTS = (
    "'a'",
    "''",
    "'b'",
    "'a b'",
    "'x, y'",
    "'é'",
    "' AND '",
    "'2020-01-01'",
    "'5'",
    "'\U0010ffff'",
)
TIMES = (
    "DATE '2020-01-01'", "DATE '2020-01-02'", "DATE '0001-01-01'", "DATE '9999-12-31'",
    "date '2020-01-01'", "DATE  '2020-01-01'", "DATE '2020-W01-1'", "DATE '2020-1-1'",
    "DATE '20200101  '", "DATE '2020-02-30'", "DATE '2020-001  '", "DATE '٢٠٢٠-01-01'",
    "TIMESTAMP '2020-01-01 00:00:00'", "TIMESTAMP '2020-01-01'",
)  # fmt: skip


def literal(rng: random.Random) -> str:
    kind = rng.randrange(7)
    if kind == 0:
        return str(rng.choice(WHOLE + WIDE))
    if kind == 1:
        return str(rng.randint(-1000, 1000))
    if kind == 2:
        return f"{rng.uniform(-100, 100):.{rng.randint(1, 5)}f}"
    return rng.choice((WRITTEN, TEXTS, TIMES, list(ATOM_TYPES))[kind - 3])


def atom(rng: random.Random) -> str:
    name, kind = rng.choice(list(ATOM_TYPES)), rng.random()
    name = name.upper() if rng.random() < 0.1 else name
    if kind < 0.5:
        operator = rng.choice(("=", "<>", "<", "<=", ">", ">=", "!=", "=="))
        return f"{name} {operator} {literal(rng)}"
    if kind < 0.7:
        comma = rng.choice((", ", ", ", ",", " ,  "))
        listed = comma.join(literal(rng) for _ in range(rng.randint(1, 4)))
        return f"{name} {rng.choice(('', '', 'NOT '))}IN ({listed})"
    if kind < 0.9:
        return f"{name} BETWEEN {literal(rng)} AND {literal(rng)}"
    return f"{name} IS {rng.choice(('NULL', 'NOT NULL', 'null', 'NOT  NULL'))}"


def test_limits_hold_in_the_commonest_spelling_too() -> None:
    """A literal over the limits is declined, and left to the lexer."""
    fast_path = FastPath(Scope.of(ATOM_STREAM))
    for text in ("s = '" + "x" * 70_000 + "'", "i = " + "0" * 500 + "5", "e = " + "0" * 500 + "5"):
        assert fast_path.bind_common(text) is None
        assert fast_path.parse(text) is None


def test_agree_on_atoms() -> None:
    """An atom means the same in its commonest spelling, in any other, and by way of sqlglot."""
    rng, scope = random.Random(5), Scope.of(ATOM_STREAM)
    fast_path, common, plain = FastPath(scope), 0, 0
    for _ in range(case_count(30_000)):
        text = atom(rng)
        bound = fast_path.bind_common(text)
        if bound is not None:
            common += 1
            assert bound == fast_path.bind_general(text), text
        if rng.random() < 0.3:
            plain += check(text, scope)
    assert common > case_count(3_000)
    assert plain > case_count(1_500)


TORN_TEXTS = ("'a AND b'", "'x OR y'", "'(x'", "'y)'", "' NOT '", "'s BETWEEN 1 AND 2'", "'it''s'")
ODD_NUMBERS = (
    *("1", "-5", "7", "8", "9", "10", "12.5", "12.50", "-0.1", "1_000", "٣", "²", "1.", ".5", "+1"),
    *(" 1", "1 ", "1e3", "nan", "inf", "0x1", "- 5", "--5", "1\n", "007", "2147483647", "1" * 50),
)


def torn_atom(rng: random.Random) -> str:
    """An atom whose literals are read in a hurry only if they are literals."""
    is_text = rng.random() < 0.4
    name = "s" if is_text else rng.choice(["i", "e", "d", "n"])
    literals = rng.choices((*TORN_TEXTS, "'a'", "'b'") if is_text else ODD_NUMBERS[:8], k=3)
    if rng.random() < 0.2:
        literals[0] = rng.choice((*TORN_TEXTS, *ODD_NUMBERS, "'", "')", "TRUE", "NULL", ""))
    return rng.choice(
        [
            f"{name} {rng.choice(['=', '<>', '<', '>='])} {literals[0]}",
            f"{name} IN ({', '.join(literals)})",
            f"{name} NOT IN ({', '.join(literals[:2])})",
            f"{name} BETWEEN {literals[0]} AND {literals[1]}",
            f"{name} IS {rng.choice(['NULL', 'NOT NULL', 'TRUE'])}",
            f"s LIKE {rng.choice(TORN_TEXTS)}",
        ]
    )


def torn_text(rng: random.Random) -> str:
    """Atoms, groups and NOTs that are joined by AND, and now and then by something else."""
    parts = []
    for _ in range(rng.randrange(1, 5)):
        part = torn_atom(rng)
        if rng.random() < 0.3:
            part = f"({part} {rng.choice(('OR', 'OR', 'OR', 'AND'))} {torn_atom(rng)})"
        parts.append(rng.choice(["", "", "", "NOT ", "NOT NOT "]) + part)
    return rng.choice((" AND ", " AND ", " AND ", " OR ", " and ", " AND  ")).join(parts)


@pytest.mark.parametrize("shard", SHARDS)
def test_agree_where_a_text_is_torn_apart(shard: int) -> None:
    """Strings that hold AND, OR and parentheses; numbers that Python reads, and SQL does not."""
    rng = random.Random(seed(shard))
    types = {"i": INT, "e": BIGINT, "d": DOUBLE, "n": DecimalType(6, 2), "s": STRING}
    scope = Scope.of(Stream("s", tuple(Attribute(name, type_) for name, type_ in types.items())))
    # one reader for all, whose cache must not lead it astray
    fast_path, plain, torn = FastPath(scope), 0, 0
    for _ in range(case_count(4_000)):
        text = torn_text(rng)
        predicate = fast_path.parse(text)
        torn += fast_path._read_conjunction(text) is not None
        assert predicate == FastPath(scope).parse(text), text
        if predicate is not None:
            plain += 1
            bound = outcome(text, scope)
            assert predicate == bound, text
            assert list_forms(predicate) == list_forms(bound), text
    assert plain > torn > case_count(400)
