"""A snapshot brings back the set it was written from, and its files hold no more than is new."""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.errors import QuerySetError, SnapshotError, UsageError
from headgate.predicate import collect_columns
from headgate.queries import Query, QuerySet
from headgate.schema import INT, Attribute, Schema, Stream, Timestamp
from headgate.snapshot import Base, Delta, Snapshot, Tombstones, open_snapshot, write_snapshot
from headgate.snapshot import write as writing
from headgate.snapshot.revision import compute_step, longest_increasing
from tests.snapshot.sets import SCHEMA, numbered, query, query_set, varied


def kinds(snapshot: Snapshot) -> list[str]:
    return [entry.kind for entry in snapshot.manifest.segments]


def test_a_set_comes_back_with_its_order_schema_zones_and_version(tmp_path: Path) -> None:
    queries = varied()
    written = write_snapshot(queries, tmp_path / "s")
    opened = open_snapshot(tmp_path / "s")
    for snapshot in (written, opened):
        assert list(snapshot.query_set()) == list(queries)
        assert snapshot.schema == snapshot.query_set().schema == SCHEMA
        assert snapshot.version == snapshot.query_set().version == queries.content_hash
        assert len(snapshot) == len(queries) == snapshot.query_set().report.accepted


def test_what_a_snapshot_says_of_its_queries_without_making_them(tmp_path: Path) -> None:
    """Attributes and other queries, after steps that removed some of both."""
    queries = [*varied(), *numbered(40), query("wide", "wide = 1 AND seen IS NULL")]
    snapshot = write_snapshot(query_set(*queries), tmp_path / "0")
    for step in range(1, 4):
        for stream in SCHEMA:
            expected = {
                column.name
                for each in queries
                if each.kind == "filter" and each.stream_name == stream.name
                for column in collect_columns(each.where)
            }
            assert snapshot.find_attributes(stream) == expected
        assert snapshot.list_others() == [each for each in queries if each.kind != "filter"]
        assert len(snapshot.list_others()) == 2 - (step > 1)
        queries = [each for each in queries if each.id not in ("counts", "wide")]
        queries = [*queries[:3], query(f"new{step}", f"client.name = '{step}'"), *queries[3:]]
        snapshot = write_snapshot(query_set(*queries), tmp_path / str(step), parent=snapshot)


def test_an_empty_set_is_a_snapshot_too(tmp_path: Path) -> None:
    first = write_snapshot(QuerySet(Schema()), tmp_path / "a")
    assert list(open_snapshot(tmp_path / "a").query_set()) == []
    write_snapshot(QuerySet(Schema()), tmp_path / "b", parent=first)
    assert len(open_snapshot(tmp_path / "b")) == 0


def test_equal_sets_give_equal_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_snapshot(varied(), tmp_path / name)
    for file in sorted(os.listdir(tmp_path / "a")):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_others_may_read_what_they_may_read_elsewhere(tmp_path: Path) -> None:
    directory = write_snapshot(varied(), tmp_path / "s").directory
    (tmp_path / "usual").mkdir()
    assert directory.stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_arrays_are_mapped_and_cannot_be_written(tmp_path: Path) -> None:
    base = write_snapshot(varied(), tmp_path / "s").segments[0]
    assert isinstance(base, Base)
    assert not base.queries.trees.program.flags.owndata
    assert not base.queries.trees.program.flags.writeable


def test_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    write_snapshot(varied(), tmp_path / "s")
    (tmp_path / "file").touch()
    for name in ("s", "file"):
        with pytest.raises(SnapshotError, match=f"{name}: exists already"):
            write_snapshot(varied(), tmp_path / name)
    assert sorted(os.listdir(tmp_path)) == ["file", "s"]


def test_a_directory_that_cannot_be_made_is_an_error_by_name(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SnapshotError, match="file/s: cannot be written"):
        write_snapshot(varied(), tmp_path / "file" / "s")


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    broken = query_set(*numbered(3))
    broken.schema = Schema((Stream("quotes", (Attribute("qty", INT),)),))
    with pytest.raises(UsageError, match="query `q0`: the schema has no stream `trades`"):
        write_snapshot(broken, tmp_path / "s")
    assert os.listdir(tmp_path) == []


def test_a_schema_that_sql_cannot_say_is_refused(tmp_path: Path) -> None:
    zones = (Attribute("a", Timestamp("UTC")), Attribute("b", Timestamp("Asia/Tokyo")))
    with pytest.raises(UsageError, match="this schema cannot be stored"):
        write_snapshot(QuerySet(Schema((Stream("s", zones),))), tmp_path / "s")


def test_one_changed_query_of_many_writes_a_small_file(tmp_path: Path) -> None:
    queries = numbered(20_000)
    first = write_snapshot(query_set(*queries), tmp_path / "a")
    queries[777] = query("q777", "side = 'sell'")
    second = write_snapshot(query_set(*queries), tmp_path / "b", parent=first)

    assert kinds(second) == ["base", "tombstones", "delta"]
    assert (tmp_path / "a/0-base.arrow").samefile(tmp_path / "b/0-base.arrow")
    base, *new = (entry.size for entry in second.manifest.segments)
    assert sum(new) < 20_000 < base
    assert list(open_snapshot(tmp_path / "b").query_set()) == queries

    shutil.rmtree(tmp_path / "a")
    assert list(open_snapshot(tmp_path / "b").query_set()) == queries


def test_where_there_are_no_links_files_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = write_snapshot(query_set(*numbered(100)), tmp_path / "a")

    def refuse(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    queries = [*numbered(100), query("more", "qty = 1")]
    second = write_snapshot(query_set(*queries), tmp_path / "b", parent=first)
    assert not (tmp_path / "a/0-base.arrow").samefile(tmp_path / "b/0-base.arrow")
    assert kinds(second) == ["base", "delta"]
    assert list(open_snapshot(tmp_path / "b").query_set()) == queries


def test_nothing_changed_writes_nothing(tmp_path: Path) -> None:
    first = write_snapshot(query_set(*numbered(100)), tmp_path / "a")
    second = write_snapshot(query_set(*numbered(100)), tmp_path / "b", parent=first)
    assert second.manifest == first.manifest


def test_a_large_change_and_another_schema_give_a_new_base(tmp_path: Path) -> None:
    first = write_snapshot(query_set(*numbered(100)), tmp_path / "a")
    large = write_snapshot(query_set(*numbered(100)[11:]), tmp_path / "b", parent=first)
    small = write_snapshot(query_set(*numbered(100)[10:]), tmp_path / "c", parent=first)
    assert kinds(large) == ["base"]
    assert kinds(small) == ["base", "tombstones"]
    other = query_set(*numbered(100))
    other.schema = Schema(SCHEMA.streams[:1])
    assert kinds(write_snapshot(other, tmp_path / "d", parent=first)) == ["base"]


def test_steps_add_up_until_a_new_base_is_smaller(tmp_path: Path) -> None:
    queries = numbered(100)
    snapshot = write_snapshot(query_set(*queries), tmp_path / "0")
    seen = []
    for step in range(1, 12):
        queries = [*queries, query(f"more {step}", "qty = 1")]
        snapshot = write_snapshot(query_set(*queries), tmp_path / str(step), parent=snapshot)
        assert list(open_snapshot(snapshot.directory).query_set()) == queries
        seen.append(len(snapshot.segments))
    assert seen == [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 1]


def test_many_steps_become_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "MAX_SEGMENTS", 6)
    queries = numbered(100)
    snapshot = write_snapshot(query_set(*queries), tmp_path / "0")
    seen = []
    for step in range(1, 6):
        queries[0] = query("q0", f"qty > {step}")
        snapshot = write_snapshot(query_set(*queries), tmp_path / str(step), parent=snapshot)
        assert list(open_snapshot(snapshot.directory).query_set()) == queries
        seen.append(len(snapshot.segments))
    assert seen == [3, 5, 3, 5, 3]


def test_positions_are_append_only(tmp_path: Path) -> None:
    queries = numbered(100)
    first = write_snapshot(query_set(*queries), tmp_path / "a")
    queries[3] = query("q3", "side = 'sell'")
    del queries[50]
    second = write_snapshot(query_set(*queries), tmp_path / "b", parent=first)
    assert second.order.tolist() == [0, 1, 2, 100, *range(4, 50), *range(51, 100)]
    _, tombstones, delta = second.segments
    assert isinstance(tombstones, Tombstones)
    assert isinstance(delta, Delta)
    assert tombstones.ids.arrow().to_pylist() == [b"q3", b"q50"]
    assert delta.places.tolist() == [3]


NAMES = [f"q{number}" for number in range(8)]
EDITS = st.lists(
    st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 2)), unique_by=lambda pair: pair[0]),
    min_size=1,
    max_size=4,
)


@settings(max_examples=30)
@given(EDITS)
def test_oracle_any_edits_come_back_in_exact_order(
    tmp_path_factory: pytest.TempPathFactory, edits: list[list[tuple[str, int]]]
) -> None:
    """Adding, removing, changing and reordering, however much, from parent to parent."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "MAX_CHANGE", 10**6)
        root = tmp_path_factory.mktemp("edits")
        snapshot = write_snapshot(query_set(*numbered(4)), root / "start")
        for number, pairs in enumerate(edits):
            queries = [query(name, f"qty > {limit}") for name, limit in pairs]
            snapshot = write_snapshot(query_set(*queries), root / str(number), parent=snapshot)
            assert list(open_snapshot(snapshot.directory).query_set()) == queries
        shutil.rmtree(root)


@given(st.permutations(range(7)))
def test_oracle_as_few_queries_as_possible_move(order: list[int]) -> None:
    step = compute_step(np.arange(7), np.array(order))
    runs = [0] * 7  # the longest increasing run of choices that ends here, the slow way
    for at, value in enumerate(order):
        runs[at] = 1 + max((runs[b] for b in range(at) if order[b] < value), default=0)
    assert len(step.places) == len(step.removed) == 7 - max(runs)


def test_a_long_shuffle_is_quick() -> None:
    values = list(range(100_000))
    random.Random(1).shuffle(values)
    places = longest_increasing(values)
    listed = [values[place] for place in places]
    assert listed == sorted(listed)
    assert 500 < len(listed) < 700  # about 2 √n (Vershik and Kerov)


def test_the_manifest_is_readable_json_without_a_time(tmp_path: Path) -> None:
    write_snapshot(varied(), tmp_path / "s")
    manifest = json.loads((tmp_path / "s/manifest.json").read_text())
    assert sorted(manifest) == [
        "checksum",
        "format",
        "queries",
        "schema",
        "segments",
        "version",
        "written_by",
    ]
    assert manifest["schema"].startswith("SET TIME ZONE 'Europe/Berlin';\nCREATE STREAM trades")


def test_an_id_stays_unique(tmp_path: Path) -> None:
    snapshot = write_snapshot(query_set(*numbered(3)), tmp_path / "s").query_set()
    with pytest.raises(QuerySetError):
        snapshot.add(query("q0", "qty = 1"))
    assert isinstance(snapshot["q0"], Query)
