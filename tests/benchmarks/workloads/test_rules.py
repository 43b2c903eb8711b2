"""Clauses like real rules, valid every one of them."""

from itertools import islice

from benchmarks.workloads import generate_where_clauses, make_rule_stream
from headgate.predicate import And, IsNull, Matches, Not, Or, Predicate, Within, iter_atoms
from headgate.predicate.tree import children
from headgate.schema import BOOLEAN, STRING, Schema
from headgate.sql import WhereReader, render_schema
from headgate.sql.statements import Script

COUNT = 2_000


def test_seed() -> None:
    """The same seed gives the same clauses."""
    assert list(generate_where_clauses(500, seed=5)) == list(generate_where_clauses(500, seed=5))
    assert list(generate_where_clauses(500, seed=5)) != list(generate_where_clauses(500, seed=6))


def test_prefix() -> None:
    """A longer run begins with the shorter one."""
    assert list(islice(generate_where_clauses(COUNT, seed=5), 500)) == list(
        generate_where_clauses(500, seed=5)
    )


def test_every_clause_is_valid() -> None:
    """Every clause is read, and without the help of sqlglot."""
    reader = WhereReader(make_rule_stream())
    clauses = generate_where_clauses(COUNT, seed=1)
    unread = [clause for clause in clauses if reader.read_plain(clause) is None]
    assert unread == []


def test_number_of_predicates() -> None:
    """Clauses have as many predicates as was asked for."""
    counts = {len(list(iter_atoms(part))) for part in predicates((2, 4))}
    assert counts == {2, 3, 4}


def test_kinds() -> None:
    """Comparisons, sets, patterns, NULL tests, AND, OR and NOT all occur."""
    result = predicates((3, 7))
    kinds = {type(atom) for part in result for atom in iter_atoms(part)}
    assert kinds == {Within, IsNull, Matches}
    nodes = [node for part in result for node in (part, *children(part))]
    assert {And, Or, Not} <= {type(node) for node in nodes}


def test_attributes() -> None:
    """All attributes occur about equally often."""
    uses = dict.fromkeys(make_rule_stream(10).names, 0)
    for clause in generate_where_clauses(COUNT, 10, seed=2):
        for name in uses:
            uses[name] += f"{name} " in clause
    assert max(uses.values()) < 1.2 * min(uses.values())


def test_between() -> None:
    """BETWEEN has its ends in order, so that no condition is empty."""
    withins = [a for p in predicates((3, 7)) for a in iter_atoms(p) if isinstance(a, Within)]
    assert not any(atom.values.is_empty for atom in withins)


def test_stream() -> None:
    """The stream can be written as CREATE STREAM and read again."""
    stream = make_rule_stream()
    declared = Script(Schema())
    list(declared.read(render_schema(Schema((stream,))), "schema.sql"))
    assert declared.schema.streams == (stream,)
    assert {STRING, BOOLEAN} < {attribute.type for attribute in stream}
    assert len(stream.names) == 400


def predicates(count: tuple[int, int]) -> list[Predicate]:
    read = WhereReader(make_rule_stream()).read
    return [read(clause) for clause in generate_where_clauses(COUNT, predicates=count, seed=3)]
