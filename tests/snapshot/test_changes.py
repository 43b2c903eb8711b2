"""A change that is published is the whole set that it makes, published."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from headgate.errors import QuerySetError, SnapshotError, UsageError
from headgate.queries import Change, Query, QuerySet, Source
from headgate.schema import DOUBLE, INT, Attribute, Schema, Stream
from headgate.snapshot import Snapshot, open_current, open_snapshot, publish
from headgate.snapshot import write as writing
from headgate.snapshot.publisher import publish_counted
from headgate.sql import parse_where
from tests.scale import at_least, case_count, seed
from tests.snapshot.sets import SCHEMA, numbered, query, query_set, varied

REPOSITORY = Path(__file__).parents[2]


def apply(queries: Sequence[Query], change: Change) -> list[Query]:
    """The set that a change makes, the obvious way."""
    gone = set(change.removed)
    newer = {query.id: query for query in (*change.updated, *change.added)}
    kept = [newer.get(query.id, query) for query in queries if query.id not in gone]
    known = {query.id for query in kept}
    return [*kept, *(query for query in newer.values() if query.id not in known)]


def random_query(rng: Random, name: str) -> Query:
    where = rng.choice(["qty > {}", "side LIKE '{}%' OR wide < {}", "NOT price IN ({}, 7)"])
    metadata = rng.choice([None, None, "", "{}"])
    return query(name, where.format(*[rng.randrange(3)] * 2), metadata)


def random_change(rng: Random, queries: Sequence[Query]) -> Change:
    """Queries added, changed, changed to what they are, and removed, some to come again."""
    ids = [query.id for query in queries]
    updated = rng.sample(ids, min(len(ids), rng.randrange(3)))
    added = {f"q{rng.randrange(40)}" for _ in range(rng.randrange(3))} - set(updated)
    removed = rng.sample(ids, min(len(ids), rng.randrange(3)))
    return Change(
        tuple(random_query(rng, name) for name in sorted(added)),
        tuple(removed),
        tuple(random_query(rng, name) for name in updated),
    )


def list_files(snapshot: Snapshot) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in snapshot.directory.iterdir()}


@pytest.mark.parametrize("shard", range(3))
def test_agree_a_change_and_the_whole_set(
    shard: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same versions, counts and files, through changes, new bases and merged steps."""
    rng = Random(seed(shard))
    monkeypatch.setattr(writing, "MAX_CHANGE", [0.1, 1.0, 10.0][shard])
    monkeypatch.setattr(writing, "MAX_SEGMENTS", [25, 9, 5][shard])
    queries = [*numbered(20), *(q for q in varied() if q.id != "metadata")]
    for root in ("changed", "whole"):
        publish(query_set(*queries), tmp_path / root)
    same = bases = 0
    for _ in range(case_count(150)):
        change = random_change(rng, queries)
        newer = apply(queries, change)
        changed = publish_counted(change, tmp_path / "changed")
        whole = publish_counted(query_set(*newer), tmp_path / "whole")
        assert list(changed.snapshot.query_set()) == newer == list(whole.snapshot.query_set())
        assert list(open_current(tmp_path / "changed").query_set()) == newer
        assert changed.snapshot.version == whole.snapshot.version
        assert changed.previous == whole.previous
        diff = query_set(*queries).diff(query_set(*newer))
        expected = tuple(map(len, (diff.added, diff.removed, diff.updated)))
        for publication in (changed, whole):
            counts = publication.count_changes()
            assert (counts.added, counts.removed, counts.updated) == expected
        kinds = [(entry.kind, entry.count) for entry in whole.snapshot.manifest.segments]
        assert [(e.kind, e.count) for e in changed.snapshot.manifest.segments] == kinds
        # a base that is selected from arrays has the same atoms in another order
        newest = "0-base.arrow"
        files = [list_files(publication.snapshot) for publication in (changed, whole)]
        bases += len(kinds) == 1
        same += files[0] == files[1]
        for name in set(files[0]) - {newest, "manifest.json"}:
            assert files[0][name] == files[1][name]
        queries = newer
    assert bases + same > at_least(30)


def test_a_change_of_all_queries_keeps_their_order(tmp_path: Path) -> None:
    """It writes a new base, in the order of the set and not in that of the change."""
    first, second = query("a", "qty > 1"), query("b", "qty > 2")
    publish(query_set(first, second), tmp_path)
    change = Change(updated=(query("b", "qty > 3"), query("a", "qty > 4")))
    assert publish(change, tmp_path).query_set().ids == ("a", "b")


def test_a_change_keeps_places_and_appends(tmp_path: Path) -> None:
    publish(query_set(*numbered(50)), tmp_path)
    changed, new = query("q7", "qty = 7"), query("new", "qty = 8")
    snapshot = publish(Change((new,), ("q3",), (changed,)), tmp_path)
    ids = snapshot.query_set().ids
    assert ids == (*(f"q{n}" for n in range(50) if n != 3), "new")
    assert snapshot.query("q7") == changed
    assert [entry.count for entry in snapshot.manifest.segments] == [50, 2, 2]


def test_added_and_updated_are_the_same_for_a_publisher(tmp_path: Path) -> None:
    """So a change may be published again, by somebody who does not know whether it was."""
    publish(query_set(*numbered(50)), tmp_path)
    change = Change(added=(query("q7", "qty = 7"),), updated=(query("new", "qty = 8"),))
    assert [publish(change, tmp_path).version for _ in range(3)] == [2, 2, 2]
    assert open_current(tmp_path).query_set().ids[-1] == "new"


def test_a_query_that_is_removed_and_added_moves_to_the_end(tmp_path: Path) -> None:
    queries = numbered(50)
    publish(query_set(*queries), tmp_path)
    moved = publish(Change(added=(queries[3],), removed=("q3",)), tmp_path)
    assert list(moved.query_set()) == [*queries[:3], *queries[4:], queries[3]]
    again = publish(Change(added=(queries[3],), removed=("q3",)), tmp_path)
    assert again.version == moved.version == 2


def test_nothing_changes_nothing_also_after_many_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "MAX_SEGMENTS", 5)
    queries = numbered(50)
    publish(query_set(*queries), tmp_path)
    for number in (2, 3):
        queries[0] = query("q0", f"qty > {number}")
        publish(Change(updated=(queries[0],)), tmp_path)
    assert publish(Change(), tmp_path).version == 3
    assert publish(Change(updated=(queries[0],)), tmp_path).version == 3
    assert publish(query_set(*queries), tmp_path).version == 3


def test_what_was_changed_back_is_in_the_base(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "MAX_SEGMENTS", 5)
    queries = numbered(50)
    publish(query_set(*queries), tmp_path)
    for where in ("qty > 1", "qty > 2"):
        publish(Change(updated=(query("q0", where),)), tmp_path)
    back = publish(Change(added=(query("new", "qty = 1"),), updated=(queries[0],)), tmp_path)
    assert [(entry.kind, entry.count) for entry in back.manifest.segments] == [
        ("base", 50),
        ("delta", 1),
    ]


def test_a_change_that_does_not_fit_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    publish(query_set(*numbered(5)), tmp_path)
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(QuerySetError, match="no query `q9`; there are `q0`"):
        publish(Change(removed=("q1", "q9")), tmp_path)
    with pytest.raises(QuerySetError, match="to be removed twice"):
        publish(Change(removed=("q1", "q1")), tmp_path)
    with pytest.raises(QuerySetError, match="there is already a query `q1`"):
        publish(Change(added=(numbered(2)[1],), updated=(numbered(2)[1],)), tmp_path)
    with pytest.raises(QuerySetError, match="NUL"):
        publish(Change(added=(replace(numbered(1)[0], id="\0"),)), tmp_path)
    other = Stream("others", (Attribute("qty", INT),))
    foreign = Query("q1", (Source(other, "others"),), numbered(1)[0].where)
    with pytest.raises(UsageError, match="the schema has no stream `others`"):
        publish(Change(updated=(foreign,)), tmp_path)
    wider = Stream("trades", (Attribute("qty", DOUBLE),))
    other_type = Query("q1", (Source(wider, "trades"),), parse_where("qty > 1", wider))
    with pytest.raises(UsageError, match="query `q1`: stream trades has no attribute `qty DOUBLE`"):
        publish(Change(updated=(other_type,)), tmp_path)
    assert sorted(os.listdir(tmp_path)) == before


def test_a_change_needs_a_version_that_can_be_opened(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="nothing has been published there"):
        publish(Change(), tmp_path)
    publish(query_set(*numbered(50)), tmp_path)
    (tmp_path / "1/0-base.arrow").write_bytes(b"")
    with pytest.raises(SnapshotError, match=r"0-base\.arrow: has 0 bytes"):
        publish(Change(), tmp_path)


def test_another_schema_is_counted_query_by_query(tmp_path: Path) -> None:
    publish(query_set(*numbered(5)), tmp_path)
    queries = QuerySet(Schema(SCHEMA.streams[:1]), [*numbered(4), query("new", "qty = 1")])
    publication = publish_counted(queries, tmp_path)
    counts = publication.count_changes()
    assert (counts.added, counts.removed, counts.updated) == (1, 1, 0)


def test_changes_of_publishers_at_once_are_all_in_the_last_version(tmp_path: Path) -> None:
    """Of two that read the same version, the later would take back the earlier one's change."""
    publish(query_set(*numbered(60)), tmp_path)
    command = [sys.executable, "-m", "tests.snapshot.changer", str(tmp_path)]
    processes = [
        subprocess.Popen([*command, name, "12"], cwd=REPOSITORY) for name in ("one", "two")
    ]
    assert [process.wait(timeout=120) for process in processes] == [0, 0]
    expected = {f"{name} {turn}" for name in ("one", "two") for turn in range(12)}
    ids = open_current(tmp_path).query_set().ids
    assert set(ids) == expected | {f"q{n}" for n in range(24, 60)}
    assert open_current(tmp_path).version == 25
    for number in range(2, 26):
        earlier, later = (open_snapshot(tmp_path / str(n)) for n in (number - 1, number))
        assert len(set(later.query_set().ids) - set(earlier.query_set().ids)) == 1


def test_a_killed_publisher_of_changes_leaves_whole_versions(tmp_path: Path) -> None:
    rolls = Random(4)
    publish(query_set(*numbered(60)), tmp_path)
    command = [sys.executable, "-m", "tests.snapshot.changer", str(tmp_path), "killed", "10000"]
    for _ in range(3):
        start = open_current(tmp_path).version
        with subprocess.Popen(command, cwd=REPOSITORY) as process:
            stop = time.monotonic() + 60
            while open_current(tmp_path).version == start:
                assert process.poll() is None
                assert time.monotonic() < stop
            time.sleep(rolls.random() * 0.05)
            os.kill(process.pid, signal.SIGKILL)
        # each version has one more than the one before it
        ids = open_current(tmp_path).query_set().ids
        assert ids[60:] == tuple(f"killed {turn}" for turn in range(len(ids) - 60))
    publish(Change(removed=("killed 0",)), tmp_path)
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".stage-")]
