"""What every index promises: each promise is a function that fails when it is broken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pyarrow as pa

from headgate.errors import EventError, QuerySetError
from headgate.matching import Index, Matches, ScanIndex
from headgate.predicate import evaluate
from headgate.queries import Query, Source
from headgate.schema import BIGINT, INT, STRING, Attribute, Interval, Stream, ValueSet
from headgate.sql import parse_where
from headgate.testing.generate import every_type, random_rows, random_where

Claim = Callable[[type[Index]], None]

SMALL = Stream("s", (Attribute("a", INT), Attribute("b", STRING)))
EVENTS: list[dict[str, Any]] = [{"a": 1, "b": "x"}, {"a": 5}, {"b": "y"}, {}, {"a": 9, "b": None}]


def check_index(kind: type[Index]) -> None:
    """Check every claim of the contract on a class of indexes.

    Parameters
    ----------
    kind : type of Index
        The class. An index for a part of the language has a class method `refusal`, which says
        why it does not take a query, or None; it is checked with the queries that it takes.

    Raises
    ------
    AssertionError
        If the index breaks a claim.

    Examples
    --------
    >>> check_index(ScanIndex)
    """
    for claim in CONTRACT:
        claim(kind)


def answers_as_each_condition_says(kind: type[Index]) -> None:
    """Check that an event matches a query exactly when its WHERE is TRUE for that row."""
    rng, stream = Random(1), every_type()
    queries = draw_queries(kind, rng, stream, 150)
    rows = random_rows(rng, stream, 60)
    expected = [[q.id for q in queries if evaluate(q.where, row) is True] for row in rows]
    assert lists(kind.build(stream, queries).match(rows)) == expected


def answers_as_scan(kind: type[Index]) -> None:
    """Check that on many more pairs the answer is that of the reference index."""
    rng, stream = Random(2), every_type()
    queries = draw_queries(kind, rng, stream, 800)
    rows = random_rows(rng, stream, 400)
    expected = ScanIndex.build(stream, queries).match(rows)
    assert lists(kind.build(stream, queries).match(rows)) == lists(expected)


def is_empty_at_first(kind: type[Index]) -> None:
    """Check that without queries nothing matches, and without events there is nothing to match."""
    index = kind.build(SMALL, [])
    assert len(index) == 0
    assert lists(index.match(EVENTS)) == [[], [], [], [], []]
    filled = kind.build(SMALL, [query(SMALL, "all", "TRUE")])
    assert lists(filled.match([])) == []


def null_is_not_true(kind: type[Index]) -> None:
    """Check that conditions on NULL or an absent attribute, and their negations, are not TRUE."""
    queries = keep_accepted(
        kind,
        [
            query(SMALL, "small", "a < 5"),
            query(SMALL, "not small", "NOT a < 5"),
            query(SMALL, "unknown", "(a < 5) IS NULL"),
            query(SMALL, "always", "TRUE"),
            query(SMALL, "never", "a > 3 AND a < 2"),
        ],
    )
    # the index may refuse some: then they are missing from its answers
    ids = {q.id for q in queries}
    expected = [
        ["small", "always"],
        ["not small", "always"],
        ["unknown", "always"],
        ["unknown", "always"],
        ["not small", "always"],
    ]
    assert lists(kind.build(SMALL, queries).match(EVENTS)) == [
        [name for name in names if name in ids] for names in expected
    ]


def knows_the_ends_of_a_type(kind: type[Index]) -> None:
    """Check that the least and greatest integers are values like others, even as only constants."""
    stream = Stream("s", (Attribute("a", BIGINT),))
    # The conditions have no other constant than the limit of the type.
    for end in (-(2**63), 2**63 - 1):
        wheres = {"is": f"a = {end}", "is not": f"a <> {end}", "not below": f"a >= {end}"}
        queries = [query(stream, name, where) for name, where in wheres.items()]
        rows = [{"a": value} for value in (0, end, -(2**63) + 1, 2**63 - 2)]
        expected = [[q.id for q in queries if evaluate(q.where, row) is True] for row in rows]
        assert lists(kind.build(stream, queries).match(rows)) == expected


def positions_are_never_reused(kind: type[Index]) -> None:
    """Check that a query that returns gets a new position, and results are in that order."""
    index = kind.build(SMALL, [query(SMALL, "p", "a = 1"), query(SMALL, "q", "a >= 1")])
    index.remove("p")
    assert lists(index.match(EVENTS))[0] == ["q"]
    assert index.insert(query(SMALL, "p", "a = 1")) == 2
    assert lists(index.match(EVENTS))[0] == ["q", "p"]
    assert len(index) == 2


def grows_as_if_built_at_once(kind: type[Index]) -> None:
    """Check that inserting and removing one by one equals building from what is left."""
    rng, stream = Random(3), every_type()
    queries = draw_queries(kind, rng, stream, 120)
    rows = random_rows(rng, stream, 60)
    grown = kind.build(stream, queries[:40])
    for added in queries[40:]:
        grown.insert(added)
    # Every third query leaves, some of the first build and some inserted later.
    for removed in queries[::3]:
        grown.remove(removed.id)
    left = [q for n, q in enumerate(queries) if n % 3]
    assert lists(grown.match(rows)) == lists(kind.build(stream, left).match(rows))


def refuses_what_it_cannot_hold(kind: type[Index]) -> None:
    """Check that a taken id, an unknown id and a query on another stream are errors by name."""
    index = kind.build(SMALL, [query(SMALL, "p", "a = 1")])
    other = Stream("other", SMALL.attributes)
    assert_refused(lambda: index.insert(query(SMALL, "p", "a = 2")), "p")
    assert_refused(lambda: index.remove("nobody"), "nobody")
    assert_refused(lambda: index.insert(query(other, "r", "a = 1")), "other")


def updates_what_it_holds(kind: type[Index]) -> None:
    """Check that a new condition replaces the old one, and a refused query changes nothing."""
    index = kind.build(SMALL, [query(SMALL, "p", "a = 1"), query(SMALL, "q", "a = 5")])
    assert index.update(query(SMALL, "p", "a = 9")) == 2
    assert lists(index.match(EVENTS)) == [[], ["q"], [], [], ["p"]]
    # Refused updates must leave the matches and the number of queries as they were.
    other = Stream("other", SMALL.attributes)
    assert_refused(lambda: index.update(query(SMALL, "nobody", "a = 1")), "nobody")
    assert_refused(lambda: index.update(query(other, "p", "a = 1")), "other")
    assert lists(index.match(EVENTS)) == [[], ["q"], [], [], ["p"]]
    assert len(index) == 2


def chunks_add_up(kind: type[Index]) -> None:
    """Check that chunks are consecutive, and together they are the whole answer."""
    rng = Random(4)
    index = kind.build(SMALL, [query(SMALL, f"q{n}", f"a >= {n} OR b = 'x'") for n in range(6)])
    rows = rng.choices(EVENTS, k=100_000)
    # unreadable events at both ends and in the middle, so that chunks must count them
    rows[0] = rows[50_000] = rows[-1] = {"a": "unreadable"}
    chunks = list(index.match_chunks(rows))
    # Each chunk begins where those before it end.
    firsts = [sum(map(len, chunks[:n])) for n in range(len(chunks))]
    assert [chunk.first for chunk in chunks] == firsts
    whole = index.match(rows)
    assert [ids for chunk in chunks for ids in lists(chunk)] == lists(whole)
    assert sorted(whole.errors) == [0, 50_000, 99_999]


def takes_events_in_every_form(kind: type[Index]) -> None:
    """Check that dicts, an Arrow table and a record batch of the same rows give one answer."""
    index = kind.build(SMALL, [query(SMALL, "p", "a >= 5 OR b = 'x'")])
    schema = pa.schema([(a.name, a.type.arrow) for a in SMALL])
    table = pa.Table.from_pylist(EVENTS, schema=schema)
    expected = [["p"], ["p"], [], [], ["p"]]
    assert lists(index.match(EVENTS)) == expected
    assert lists(index.match(table)) == expected
    assert lists(index.match(table.to_batches()[0])) == expected


def an_error_is_not_a_miss(kind: type[Index]) -> None:
    """Check that an event that cannot be read has a reason, and the others their matches."""
    # A text in an INT cannot be read, and a negative number breaks the CHECK.
    domain = ValueSet.of(Interval(0, None))
    stream = Stream("s", (Attribute("a", INT, domain), Attribute("b", STRING)))
    index = kind.build(stream, [query(stream, "p", "a < 5 OR a >= 5")])
    matches = index.match([{"a": 1}, {"a": "one"}, {"a": -1}, {"a": 2}])
    assert lists(matches) == [["p"], [], [], ["p"]]
    assert sorted(matches.errors) == [1, 2]


def matches_one_as_many(kind: type[Index]) -> None:
    """Check that one event gives the ids that a list of it gives, and its error is raised."""
    rng, stream = Random(5), every_type()
    queries = draw_queries(kind, rng, stream, 250)
    index = kind.build(stream, queries[:200])
    rows = random_rows(rng, stream, 60)
    # NULL as an absent key and as None, a key that is not declared and one in another case
    sparse = [{name: value for name, value in row.items() if value is not None} for row in rows]
    shouted = [{name.upper(): value for name, value in row.items()} for row in rows[:5]]
    events: list[dict[str, Any]] = [*rows, *sparse, *shouted, {}, {"undeclared": 3, **rows[0]}]
    _assert_same_one_by_one(index, events)
    # queries that come and go are in other parts of some indexes
    for added in queries[200:]:
        index.insert(added)
    for removed in queries[::5]:
        index.remove(removed.id)
    _assert_same_one_by_one(index, events)


def one_error_is_not_a_miss(kind: type[Index]) -> None:
    """Check that an event that cannot be read is an error with the reason that `match` gives."""
    domain = ValueSet.of(Interval(0, None))
    attributes = (Attribute("a", INT, domain), Attribute("b", STRING), Attribute("c.d", INT))
    stream = Stream("s", (*attributes, Attribute("e", BIGINT, nullable=False)))
    index = kind.build(stream, [query(stream, "p", "a < 5 OR b = 'x' OR c.d = 1 OR e = 1")])
    events: list[Any] = [
        *({"a": value, "e": 1} for value in (1, "one", -1, 2**31, 1.5, True)),
        *({"a": 7, "e": e} for e in (1, None, 2**63, "1")),
        *({"b": text, "e": 0} for text in ("x", "\ud800", b"x", 3)),
        *({"c": inner, "e": 0} for inner in ({"d": 1}, {"D": 1}, {"d": "x"}, 1, None)),
        *({"a": 1, "e": 1, key: 1} for key in ("A", "c.d", "C.D", "f", 3)),
        {"c": {"d": 1}, "c.d": 1, "e": 1},
        5,
        None,
    ]
    refused = _assert_same_one_by_one(index, events)
    assert 10 < refused < len(events) - 5


def _assert_same_one_by_one(index: Index, events: Sequence[Any]) -> int:
    """Assert that `match_one` and `match` agree; return how many events cannot be read."""
    refused = 0
    for event in events:
        expected = index.match([event])
        reason: str | None = None
        try:
            ids = list(index.match_one(event))
        except EventError as error:
            ids, reason = [], str(error)
            refused += 1
        assert ids == expected[0], event
        assert expected.errors.get(0, "") in (reason or ""), event
        assert (reason is None) == (not expected.errors), event
    return refused


def describes_itself(kind: type[Index]) -> None:
    """Check that `describe` names the kind and counts queries, and `locate` finds one of them."""
    index = kind.build(SMALL, [query(SMALL, "p", "a = 1")])
    described = index.describe()
    assert described["queries"] == 1
    assert isinstance(described["kind"], str)
    assert index.locate("p").index == described["kind"]
    assert_refused(lambda: index.locate("nobody"), "nobody")


CONTRACT: tuple[Claim, ...] = (
    answers_as_each_condition_says,
    answers_as_scan,
    is_empty_at_first,
    null_is_not_true,
    knows_the_ends_of_a_type,
    positions_are_never_reused,
    grows_as_if_built_at_once,
    refuses_what_it_cannot_hold,
    updates_what_it_holds,
    chunks_add_up,
    takes_events_in_every_form,
    an_error_is_not_a_miss,
    matches_one_as_many,
    one_error_is_not_a_miss,
    describes_itself,
)


def query(stream: Stream, query_id: str, where: str) -> Query:
    """Return a filter on a stream."""
    return Query(query_id, (Source(stream, stream.name),), parse_where(where, stream))


def draw_queries(kind: type[Index], rng: Random, stream: Stream, count: int) -> list[Query]:
    """Return random queries that the index takes."""
    queries: list[Query] = []
    while len(queries) < count:
        number = len(queries)
        # Drawn one by one until there are enough: an index may refuse most of them.
        queries += keep_accepted(kind, [query(stream, f"q{number}", random_where(rng, stream))])
    return queries


def keep_accepted(kind: type[Index], queries: list[Query]) -> list[Query]:
    """Return the queries that the index takes: all, unless it has a `refusal`."""
    refusal = getattr(kind, "refusal", None)
    return [q for q in queries if refusal is None or refusal(q) is None]


def lists(matches: Matches) -> Sequence[list[str]]:
    """Return the ids that each event matches."""
    return [matches[event] for event in range(len(matches))]


def assert_refused(action: Callable[[], Any], name: str) -> None:
    """Assert that an action raises a QuerySetError that names the query or stream at fault."""
    message = ""
    try:
        action()
    except QuerySetError as error:
        message = str(error)
    assert name in message, f"no error about {name}"
