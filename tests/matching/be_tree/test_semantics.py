"""The six semantics of section 3.2 are what their equations say, on thousands of pairs."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from headgate.errors import UsageError
from headgate.matching.be_tree.index import BeTreeIndex
from headgate.matching.be_tree.options import BeTreeOptions
from headgate.matching.be_tree.semantics import SEMANTICS
from headgate.predicate import Predicate, Within
from headgate.predicate.normal_form import to_conjunctions
from headgate.schema import INT, Attribute, Stream, ValueSet
from headgate.sql import parse_where
from headgate.testing.contract import query
from tests.matching.be_tree.test_tree import NARROW, OPTIONS, conjunction
from tests.scale import slow_unless_in

Sets = dict[str, ValueSet]
Related = Callable[[ValueSet, ValueSet], bool]

PLAIN = Stream("s", (Attribute("a", INT), Attribute("b", INT), Attribute("c", INT)))


def equations(query_: Sets, event: Sets) -> dict[str, bool]:
    """Equations 2 to 7, word by word."""

    def meet(one: ValueSet, other: ValueSet) -> bool:
        return not one.intersection(other).is_empty

    def each(some: Sets, others: Sets, related: Related) -> bool:
        return all(name in others and related(some[name], others[name]) for name in some)

    subscription, stabbed = each(query_, event, meet), each(event, query_, meet)
    contained = each(query_, event, lambda q, e: e.covers(q))
    enclosing = each(event, query_, lambda e, q: q.covers(e))
    return {
        "stabbing_subscription": subscription,
        "stabbing_event": stabbed,
        "symmetric": subscription and stabbed,
        "containment": contained,
        "enclosure": enclosing,
        "exact": contained and enclosing,
    }


def sets(predicate: Predicate) -> list[Sets]:
    return [
        {atom.column.name: atom.values for atom in part if isinstance(atom, Within)}
        for part in to_conjunctions(predicate)
    ]


def is_match(query_: list[Sets], event: list[Sets], semantics: str) -> bool:
    pairs = [[equations(q, e)[semantics] for q in query_] for e in event]
    if semantics == "containment":
        return bool(query_) and all(pairs[0])
    if semantics == "enclosure":
        return all(any(row) for row in pairs)
    return any(map(any, pairs))


@pytest.mark.parametrize("options", slow_unless_in(OPTIONS[::4], OPTIONS), ids=range(len(OPTIONS)))
def test_as_the_equations_say(options: BeTreeOptions) -> None:
    """Conjunctions over five types against conjunctions, all six semantics; some match by each."""
    random = Random(11)
    wheres = [conjunction(random) for _ in range(150)]
    events = [conjunction(random) for _ in range(25)] + wheres[:25]
    events += [f"a BETWEEN {n} AND {n + 40}" for n in range(-40, 40, 8)] + ["TRUE"]
    index = BeTreeIndex.build(
        NARROW, [query(NARROW, f"q{n}", w) for n, w in enumerate(wheres)], options
    )
    held = [sets(parse_where(where, NARROW)) for where in wheres]
    event_sets = [sets(parse_where(where, NARROW)) for where in events]
    for semantics in SEMANTICS:
        matches = index.match_expressions(events, semantics)
        assert not {n: e for n, e in matches.errors.items() if event_sets[n]}
        total = 0
        for number, event in enumerate(event_sets):
            if event:
                wanted = [f"q{n}" for n, one in enumerate(held) if is_match(one, event, semantics)]
                assert matches[number] == wanted, (semantics, events[number])
                total += len(wanted)
        assert total > 0, semantics


def test_or_is_folded_or_refused() -> None:
    """Alternatives fold by any or every conjunction; a union that may cover together is refused."""
    random = Random(12)
    wheres = [f"({conjunction(random)}) OR ({conjunction(random)})" for _ in range(80)]
    events = [conjunction(random) for _ in range(40)] + [f"a < 5 OR ({w})" for w in wheres[:10]]
    held = [sets(parse_where(where, NARROW)) for where in wheres]
    event_sets = [sets(parse_where(where, NARROW)) for where in events]
    queries = [query(NARROW, f"q{n}", where) for n, where in enumerate(wheres)]
    index = BeTreeIndex.build(NARROW, queries, BeTreeOptions(capacity=3))
    for semantics in ("stabbing_subscription", "stabbing_event", "symmetric", "containment"):
        matches = index.match_expressions(events, semantics)
        for number, event in enumerate(event_sets):
            if len(event) > 1 and semantics == "containment":
                assert "union" in matches.errors[number]
            elif event:
                wanted = [f"q{n}" for n, one in enumerate(held) if is_match(one, event, semantics)]
                assert matches[number] == wanted, (semantics, events[number])
    with pytest.raises(UsageError, match=r"enclosure has no meaning for `q0`.*an OR"):
        index.match_expressions(["a = 1"], "enclosure")
    single = BeTreeIndex.build(NARROW, [query(NARROW, "wide", "a < 100")])
    assert single.match_expressions(["a < 5 OR a = 7"], "enclosure")[0] == ["wide"]
    assert single.match_expressions(["a < 5 OR a = 700"], "enclosure")[0] == []


def test_containment_is_not_implication() -> None:
    """The errata's example: a = 1 lies in the containment of a < 5 AND b = 2."""
    index = BeTreeIndex.build(PLAIN, [query(PLAIN, "s", "a = 1")])
    assert index.match_expressions(["a < 5 AND b = 2"], "containment")[0] == ["s"]
    assert index.match_expressions(["a < 5 AND b = 2"], "enclosure")[0] == []


def test_what_has_no_meaning_is_refused_by_name() -> None:
    """LIKE and IS NULL have no set; the message names the query, the event, or the semantics."""
    text = Stream("s", (Attribute("a", INT), Attribute("t", NARROW["d"].type)))
    index = BeTreeIndex.build(
        text, [query(text, "likes", "t LIKE 'x%'"), query(text, "p", "a = 1")]
    )
    with pytest.raises(UsageError, match="`likes`"):
        index.match_expressions(["a = 1"])
    index.remove("likes")
    matches = index.match_expressions(["a = 1", "a IS NULL", "a >", "a > 3 AND a < 2"])
    assert matches[0] == ["p"]
    assert sorted(matches.errors) == [1, 2, 3]
    assert "only comparisons" in matches.errors[1]
    with pytest.raises(UsageError, match="did you mean"):
        index.match_expressions(["a = 1"], "stabbing")
