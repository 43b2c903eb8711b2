"""Names as Boolean expressions: what their letters say, in queries and in events."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.workloads import (
    Conjunctions,
    generate_begen_of_names,
    generate_gram_queries,
    list_city_texts,
    make_gram_events,
)
from benchmarks.workloads.begen import OF_NAMES
from benchmarks.workloads.conjunctions import bind_queries
from benchmarks.workloads.integer_events import IN
from benchmarks.workloads.q_grams import PAIRS
from examples.city_names.find import LETTERS, find_grams, list_city_names, normalise
from headgate.errors import UsageError
from headgate.matching import ScanIndex
from headgate.snapshot.arrays import encode_queries, find_flaw
from tests.benchmarks.workloads.rates import about, rate
from tests.benchmarks.workloads.test_begen import differing


@pytest.fixture(scope="module")
def names() -> list[str]:
    return list_city_names()


def clauses(queries: Conjunctions) -> list[set[str]]:
    """The predicates of each query, with letters for numbers and without the quotes."""
    collected = []
    for clause in queries.where_clauses():
        predicates = (predicate.split(" ", 2) for predicate in clause.split(" AND "))
        collected.append({f"{name}{''.join(_letters(values))}" for name, _, values in predicates})
    return collected


def _letters(values: str) -> list[str]:
    return [LETTERS[int(number)] for number in values.strip("()").split(", ")]


def test_grams(names: list[str]) -> None:
    """A query says of each pair which letters may follow; the arrays and `grams` agree."""
    chosen = names[:2_000]
    expected = [
        {f"g_{pair}{''.join(sorted(letters, key=LETTERS.index))}" for pair, letters in one.items()}
        for one in map(find_grams, chosen)
    ]
    assert clauses(generate_gram_queries(chosen, seed=1)) == expected


def test_events(names: list[str]) -> None:
    """An event has each pair once, with the letter that comes first."""
    chosen = [*names[:2_000], "ab", ""]
    rows = make_gram_events(chosen).table().to_pylist()
    for name, row in zip(chosen, rows, strict=True):
        present = {key: LETTERS[value] for key, value in row.items() if value is not None}
        assert present == {f"g_{pair}": letters[0] for pair, letters in find_grams(name).items()}


@pytest.mark.slow
@pytest.mark.parametrize("kept", [0.0, 0.5, 1.0])
def test_own_name(names: list[str], kept: float) -> None:
    """A name satisfies its own query, whatever share that keeps; all, and it satisfies few else."""
    chosen = [*names[:700], "Manhattan Mansion", "Baden Baden", "ananas", "aaaa", "abababa"]
    queries = generate_gram_queries(chosen, kept=kept, seed=1)
    matches = ScanIndex.build(queries.stream, queries.queries()).match(
        make_gram_events(chosen).table()
    )
    assert all(f"q{i}" in matches[i] for i in range(len(chosen)))
    if kept == 1:
        assert matches.total < 1.1 * len(chosen)


@pytest.mark.slow
def test_kept(names: list[str]) -> None:
    """The share is that of all predicates, and no query is without any."""
    whole, half, least = (
        generate_gram_queries(names, kept=kept, seed=1) for kept in (1.0, 0.5, 0.0)
    )
    assert len(half.attribute) / len(whole.attribute) == pytest.approx(0.5, rel=0.05)
    assert set(np.diff(least.offsets).tolist()) == {1}
    assert np.diff(half.offsets).min() >= 1
    assert all(few <= many for few, many in zip(clauses(half), clauses(whole), strict=True))


@pytest.mark.slow
def test_misspelt(names: list[str]) -> None:
    """Misspelt names miss queries of all grams, and meet half of those that keep few."""
    chosen = [name for name in names if len(normalise(name)) >= 8][:1_000]
    for kept, result in ((1.0, range(30)), (0.1, range(400, 1_000))):
        queries = generate_gram_queries(chosen, kept=kept, misspelt=1.0, seed=1)
        index = ScanIndex.build(queries.stream, queries.queries())
        matched = np.diff(index.match(queries.events(1_000, seed=2).table()).offsets) > 0
        assert int(matched.sum()) in result


@pytest.mark.slow
def test_encoded(names: list[str]) -> None:
    """Arrays made from arrays are those made from the clauses, number by number."""
    queries = generate_gram_queries([*list_city_texts()[:500], *names[:500]], kept=0.7, seed=3)
    assert np.any(queries.operator == IN)
    read = bind_queries(queries.stream, queries.where_clauses(), "q")
    encoded = queries.encode()
    assert find_flaw(encoded, queries.schema) is None
    assert differing(encoded, encode_queries(read, queries.schema)) == []
    assert queries.queries() == read


def test_seed(names: list[str]) -> None:
    """The same seed keeps the same, and draws the same events."""
    first, second, other = (
        generate_gram_queries(names[:200], kept=0.5, seed=seed) for seed in (1, 1, 2)
    )
    assert list(first.where_clauses()) == list(second.where_clauses())
    assert list(first.where_clauses()) != list(other.where_clauses())
    assert first.events(50, seed=1).table().equals(second.events(50, seed=1).table())


def test_refused() -> None:
    """A name without a gram has no query, and shares are shares."""
    with pytest.raises(UsageError, match="`Å` has fewer than 3 letters"):
        generate_gram_queries(["Rome", "Å"], seed=1)
    with pytest.raises(UsageError, match="no names"):
        generate_gram_queries([], seed=1)
    with pytest.raises(UsageError, match=r"shares of 1\.5"):
        generate_gram_queries(["Rome"], kept=1.5, seed=1)


def test_cities(names: list[str]) -> None:
    """Cities have names of three letters or more, no two the same; texts are long."""
    assert names[0] == "Shanghai"
    assert len({normalise(name) for name in names}) == len(names) > 30_000
    assert min(len(normalise(name)) for name in names) == 3
    texts = list_city_texts()
    assert len(texts) > 10_000
    assert 25 < np.diff(generate_gram_queries(texts, seed=1).offsets).mean() < 35


@pytest.mark.slow
@pytest.mark.parametrize("matching", [0.2, 0.01, 0.002])
def test_controlled(names: list[str], matching: float) -> None:
    """Queries derived from names match as often as was asked for."""
    queries = generate_begen_of_names(names, 2000, replace(OF_NAMES, matching=matching), seed=1)
    events = queries.events(1_000, seed=2)
    assert events.stream == queries.stream
    assert set(np.diff(events.offsets).tolist()) == {10}
    assert about(matching, rate(queries.stream, queries.queries(), events.table()))
    assert np.diff(queries.offsets).min() >= 3
    assert len(queries.stream.attributes) == PAIRS


def test_controlled_refused() -> None:
    """Names that are too short for the size asked for are refused."""
    with pytest.raises(UsageError, match="no name has 10 different pairs"):
        generate_begen_of_names(["Rome", "Oslo"], 10, seed=1)
