"""Hostile text is refused, or read, in a blink; and only ever by an SqlError with a place."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import Position, SqlError
from headgate.schema import Schema, Stream
from headgate.sql import Rejected, Script, parse_where
from tests.boundaries import STREAM
from tests.mutations import CHARACTERS, TOKENS, mutated
from tests.scale import case_count, seed
from tests.statements import Statements
from tests.strategies import Clauses, Seeded

LIMIT = 0.1

HOSTILE = {
    "another statement": "qty > 3; DROP TABLE trades",
    "only another statement": "; DROP TABLE trades",
    "comment that hides the rest": "qty > 3 -- ' OR 1 = 1",
    "comment that never ends": "qty > 3 /* and so on",
    "optimizer hint": "qty > /*+ BROADCAST(t) */ 3",
    "java_method": "java_method('java.lang.Runtime', 'exit', 1) = '0'",
    "reflect": "reflect('java.lang.System', 'exit', '0') IS NULL",
    "rand": "rand() < 0.5",
    "subquery": "qty IN (SELECT qty FROM trades)",
    "scalar subquery": "qty = (SELECT max(qty) FROM trades)",
    "exists": "EXISTS (SELECT 1)",
    "union": "qty = 1 UNION SELECT * FROM secrets",
    "case": "CASE WHEN qty = 1 THEN TRUE ELSE FALSE END",
    "arithmetic": "qty + 1 = 2",
    "lambda": "exists(array(1), x -> x > 0)",
    "window": "sum(qty) OVER (PARTITION BY side) > 3",
    "template": "qty = ${secret}",
    "parameter": "qty = ?",
    "named parameter": "qty = :limit",
    "braces": "qty = {limit}",
    "nested parentheses": "(" * 10_000 + "qty = 1" + ")" * 10_000,
    "parentheses just too deep": "(" * 101 + "qty = 1" + ")" * 101,
    "parentheses that only open": "(" * 100_000,
    "parentheses that only close": ")" * 100_000,
    "NOT by the thousand": "NOT " * 10_000 + "flag",
    "! by the thousand": "!" * 10_000 + "flag",
    "minus by the thousand": "qty = " + "- " * 10_000 + "1",
    "nested COALESCE": "COALESCE(" * 1_000 + "flag" + ", TRUE)" * 1_000,
    "nested IS TRUE": "(" * 90 + "flag" + ") IS TRUE" * 90,
    "nested CAST": "qty = " + "CAST(" * 1_000 + "1" + " AS INT)" * 1_000,
    "cast to nowhere": "qty\n=\n1 AND qty = CAST('NaN' AS DOUBLEDOUBLE)",
    "IS by the thousand": "flag" + " IS TRUE" * 10_000,
    "AND that never ends": "qty = 1" + " AND qty = 1" * 100_000,
    "OR just too long": "qty = 1" + " OR qty = 1" * 100_000,
    "BETWEEN chain": "qty" + " BETWEEN 1 AND 2" * 5_000,
    "comparison chain": "qty" + " = 1" * 20_000,
    "dots": "a" + ".b" * 100_000,
    "literal of a megabyte": f"side = '{'x' * 1_000_000}'",
    "literal too long": f"side = '{'x' * 70_000}'",
    "text of two megabytes": "qty = 1 " + " " * 2_000_000,
    "number of ten thousand digits": f"qty = {'9' * 10_000}",
    "number of a megabyte": f"qty = {'9' * 900_000}",
    "fraction of ten thousand digits": f"ratio = 0.{'1' * 10_000}",
    "exponent beyond reason": "qty = 1e999999999",
    "exponent beyond all reason": "qty = 1e59223372036854775807",
    "tiny exponent": "ratio = 1e-999999999",
    "quote that never ends": "side = 'abc",
    "quotes by the thousand": "'" * 99_999,
    "backslashes by the thousand": "side = '" + "\\" * 99_999 + "'",
    "backtick that never ends": "`abc",
    "escape at the end": "side = '\\",
    "regex that backtracks": "side RLIKE '(a+)+$'",
    "regex that backtracks more": "side RLIKE '^(([a-z])+.)+[A-Z]([a-z])+$'",
    "regex that explodes": "side RLIKE '((((a{1,100}){1,100}){1,100}){1,100})'",
    "regex of counted groups": "side RLIKE '(x{1000}){1000}'",
    "regex with lookahead": "side RLIKE '(?=a)b'",
    "regex with a backreference": "side RLIKE '(a)\\\\1'",
    "regex nested deeply": f"side RLIKE '{'(' * 5_000}a{')' * 5_000}'",
    "regex with many alternatives": f"side RLIKE '{'|'.join(['ab'] * 10_000)}'",
    "regex that is broken": "side RLIKE '['",
    "LIKE of wildcards": f"side LIKE '{'%a' * 10_000}'",
    "LIKE with a stray escape": "side LIKE 'a\\\\'",
    "NUL": "qty = 1\0",
    "lone surrogate": "side = '\ud800'",
    "right-to-left override": "qty = \u202e1",
    "other digits": "qty = \u0663",
    "full-width letters": "\uff51\uff54\uff59 = 1",
    "nothing": "",
    "only space": " \n\t ",
    "only a comment": "-- nothing",
    "emoji": "🙂 = 🙂",
}  # fmt: skip

STATEMENTS = {
    "stream with nested types": f"CREATE STREAM s (a {'ARRAY<' * 5_000}INT{'>' * 5_000})",
    "stream with a wild decimal": f"CREATE STREAM s (a DECIMAL({'9' * 10_000}))",
    "stream from a query": "CREATE STREAM s AS SELECT 1",
    "stream at a location": "CREATE STREAM s (a INT) LOCATION '/etc/passwd'",
    "stream with a check that calls": "CREATE STREAM s (a INT CHECK (rand() > 0))",
    "query with a subquery": "CREATE QUERY q AS SELECT * FROM (SELECT * FROM trades) AS t",
    "query with WITH": "CREATE QUERY q AS WITH x AS (SELECT 1) SELECT * FROM x",
    "query from files": "CREATE QUERY q AS SELECT * FROM csv.`/etc/passwd`",
    "query that replaces": "CREATE OR REPLACE QUERY q AS SELECT * FROM trades",
    "query with many joins": f"CREATE QUERY q AS SELECT * FROM trades t{', trades u' * 5_000}",
    "query with a deep WHERE": f"CREATE QUERY q AS SELECT * FROM trades WHERE {'(' * 5_000}",
    "drop": "DROP TABLE trades",
    "set": "SET spark.sql.ansi.enabled = false",
    "zone outside": "SET TIME ZONE '../../../../etc/passwd'",
    "zone too long": f"SET TIME ZONE '{'a' * 10_000}'",
    "zone that is a directory": "SET TIME ZONE 'America'",
    "add jar": "ADD JAR '/tmp/x.jar'",
}  # fmt: skip


def place_is_in(text: str, position: Position) -> bool:
    """Does a position point into the text, or just behind a line's end?"""
    lines = text.split("\n")
    if not 1 <= position.line <= len(lines):
        return False
    return 1 <= position.column <= len(lines[position.line - 1]) + 1


def check_error(text: str, error: SqlError, file: str = "<text>") -> None:
    """What every error promises."""
    position = error.position
    assert error.message
    assert place_is_in(text, position), (text[:200], str(error))
    assert str(error).startswith(f"{file}:{position.line}:{position.column}: {error.message}")
    assert len(str(error)) < 1_000, str(error)[:2_000]


def read_where(text: str) -> None:
    """Read a clause; if it is refused, then as it should be."""
    try:
        parse_where(text, STREAM)
    except SqlError as error:
        check_error(text, error)


def read_script(text: str) -> list[Rejected]:
    """Read a script; check what it refuses."""
    declared = Script(Schema((STREAM,))).read(text, "x.sql")
    rejected = [each for each in declared if isinstance(each, Rejected)]
    for each in rejected:
        check_error(text, each.error, "x.sql")
    return rejected


def best_time(text: str, read: Callable[[str], object]) -> float:
    """The best of three, in seconds of work, since a machine under load proves nothing."""
    times = []
    for _ in range(3):
        started = time.process_time()
        read(text)
        times.append(time.process_time() - started)
        if times[-1] < LIMIT:
            break
    return min(times)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_clause(name: str) -> None:
    """A hostile clause is dealt with within 100 ms, and a refusal has a message and a place."""
    assert best_time(HOSTILE[name], read_where) < LIMIT


ACCEPTED = {
    "comment that hides the rest",
    "regex that backtracks",
    "regex that backtracks more",
    "regex with many alternatives",
    "LIKE of wildcards",
    "fraction of ten thousand digits",
}


@pytest.mark.parametrize("name", sorted(HOSTILE.keys() - ACCEPTED))
def test_hostile_clause_is_refused(name: str) -> None:
    """What is outside the language or its limits is refused, by an SqlError."""
    with pytest.raises(SqlError):
        parse_where(HOSTILE[name], STREAM)


@pytest.mark.parametrize("name", STATEMENTS)
def test_hostile_statement(name: str) -> None:
    """A hostile statement is refused within 100 ms, with a message and a place in its file."""
    text = STATEMENTS[name]
    assert best_time(text, read_script) < LIMIT
    assert read_script(text)


LARGE: dict[str, Callable[[int], str]] = {
    "long IN": lambda n: f"qty IN ({', '.join(map(str, range(0, 2 * n, 2)))})",
    "long OR": lambda n: " OR ".join(f"qty = {k}" for k in range(n)),
    "long AND of ORs": lambda n: " AND ".join(f"(qty <> {k} OR lots > {k})" for k in range(n)),
    "long NOT IN of texts": lambda n: f"side NOT IN ({', '.join(repr(str(k)) for k in range(n))})",
    "wide nesting": lambda n: " OR ".join("((qty = 1) AND NOT (lots = 2))" for _ in range(n)),
}


@pytest.mark.parametrize("name", LARGE)
def test_large_clauses_take_linear_time(name: str) -> None:
    """A long but honest clause takes time in proportion to its length."""
    small, large = LARGE[name](1_000), LARGE[name](8_000)
    # another process may slow down any one measurement, so the best of some counts
    ratio = min(duration(large) / duration(small) for _ in range(5))
    assert ratio < 8 * 3


def duration(text: str) -> float:
    started = time.process_time()
    parse_where(text, STREAM)
    return time.process_time() - started


@given(st.binary(max_size=80))
def test_random_bytes(data: bytes) -> None:
    """Bytes of any kind are refused or read, as a clause and as a script."""
    text = data.decode("latin-1")
    read_where(text)
    read_script(text)


@given(st.text(max_size=60))
def test_random_text(text: str) -> None:
    """And so is Unicode of any kind."""
    read_where(text)
    read_script("CREATE QUERY q AS SELECT * FROM trades WHERE " + text)


@pytest.mark.parametrize("shard", range(4))
def test_token_soup(shard: int) -> None:
    """Tokens in any order raise nothing but SqlErrors with a place."""
    rng = random.Random(seed(shard))
    openings = ("", "qty", "NOT (", "CREATE QUERY q AS ", "CREATE STREAM s (a INT CHECK (a ")
    for _ in range(case_count(1_000)):
        tokens = rng.choices(TOKENS, k=rng.randrange(1, 12))
        text = rng.choice(openings) + rng.choice((" ", " ", "")).join(tokens)
        read_where(text)
        read_script(text)


@pytest.mark.parametrize("shard", range(4))
def test_mutated_statements(shard: int) -> None:
    """A statement with a token or character changed raises nothing but SqlErrors with a place."""
    rng, dice = random.Random(seed(shard)), Seeded(seed(shard))
    for _ in range(case_count(150)):
        statements = Statements(dice)
        script = statements.schema() + statements.queries(2)
        read_script(mutated(script, rng))
        read_where(mutated(Clauses(dice).where(2), rng))


def test_characters_in_every_place() -> None:
    """Any odd character at any place of a small clause raises nothing but SqlErrors."""
    clause = "NOT (qty >= -1.5e3 OR side NOT LIKE 'a%' ESCAPE '|') IS TRUE"
    for at in range(len(clause) + 1):
        for character in CHARACTERS:
            read_where(clause[:at] + character + clause[at:])
            read_where(clause[:at] + character + clause[at + 1 :])


def test_errors_in_a_file_point_into_the_file() -> None:
    """A statement's error has the line and column of the whole file, and the others are read."""
    text = (
        "CREATE STREAM t (a INT);\n"
        "CREATE QUERY good AS SELECT * FROM t WHERE a > 1;\n"
        "CREATE QUERY bad AS SELECT *\n  FROM t\n  WHERE b > 1;\n"
        "CREATE QUERY fine AS SELECT a FROM t;\n"
    )
    declared = list(Script(Schema()).read(text, "rules.sql"))
    (rejected,) = [each for each in declared if isinstance(each, Rejected)]
    assert rejected.id == "bad"
    assert str(rejected.error).startswith("rules.sql:5:9: no attribute `b` in stream t")
    assert [type(each) for each in declared].count(Stream) == 1
    assert len(declared) == 4
