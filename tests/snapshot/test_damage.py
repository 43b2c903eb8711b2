"""A damaged snapshot is refused by the name of the file, and what is wrong with it."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headgate.errors import SnapshotError
from headgate.queries import Query
from headgate.snapshot import (
    Base,
    Delta,
    Segment,
    Tombstones,
    is_complete,
    open_snapshot,
    write_snapshot,
)
from headgate.snapshot.arrays import encode_queries
from headgate.snapshot.arrays.texts import pack
from headgate.snapshot.files import checksum, flatten_arrays, write_arrays
from headgate.snapshot.segments import kind_of
from tests.scale import slow_unless_in
from tests.snapshot.sets import SCHEMA, numbered, query, query_set

FILES = ("manifest.json", "0-base.arrow", "1-tombstones.arrow", "2-delta.arrow")
QUERIES = [*numbered(39), query("q39", "side = 'ü'", "{}")]
Change = Callable[[dict[str, Any]], None]


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("pristine")
    first = write_snapshot(query_set(*numbered(40)), root / "a")
    return write_snapshot(query_set(*QUERIES), root / "b", parent=first).directory


@pytest.fixture
def snapshot(pristine: Path, tmp_path: Path) -> Path:
    """A snapshot of each kind of file, to be damaged."""
    shutil.copytree(pristine, tmp_path / "s")
    assert sorted(os.listdir(tmp_path / "s")) == sorted(FILES)
    return tmp_path / "s"


def refused(directory: Path, file: str) -> str:
    """What is said about a file that is refused."""
    with pytest.raises(SnapshotError) as caught:
        open_snapshot(directory)
    path = str(directory / file) if file else str(directory)
    assert str(caught.value).startswith(f"{path}: ")
    return str(caught.value).removeprefix(f"{path}: ")


@pytest.mark.parametrize("file", FILES)
def test_a_flipped_byte_is_detected_wherever_it_is(snapshot: Path, file: str) -> None:
    path = snapshot / file
    content = path.read_bytes()
    rolls = random.Random(file)
    places = {0, len(content) - 1, *(rolls.randrange(len(content)) for _ in range(25))}
    for place in places:
        flipped = bytearray(content)
        flipped[place] ^= 1 << rolls.randrange(8)
        path.write_bytes(flipped)
        if file == "manifest.json" and content[place : place + 1].isspace():
            continue  # may be another white space now, and say the same
        assert refused(snapshot, file)


@pytest.mark.parametrize("file", FILES)
def test_a_truncated_file_is_detected_without_reading_it(snapshot: Path, file: str) -> None:
    content = (snapshot / file).read_bytes()
    for length in (0, 1, len(content) // 2, len(content) - 1):
        (snapshot / file).write_bytes(content[:length])
        if file == "manifest.json" and length == len(content) - 1:
            continue  # the newline at its end
        assert not is_complete(snapshot)
        said = refused(snapshot, file)
        assert said.startswith("not JSON" if file == "manifest.json" else f"has {length:,} bytes")


@pytest.mark.parametrize("file", FILES)
def test_a_missing_file_is_detected(snapshot: Path, file: str) -> None:
    (snapshot / file).unlink()
    assert refused(snapshot, file).startswith("is missing")
    assert not is_complete(snapshot)
    (snapshot / file).mkdir()
    assert refused(snapshot, file)


def test_a_directory_that_is_none_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path / "nowhere", "manifest.json").startswith("is missing")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"format": ' + b"9" * 5000 + b"}", "not JSON"),
        (b"[]", "not a JSON object"),
        (b"{}", "`format` is missing or not of type int"),
        (b'{"format": true}', "`format` is missing or not of type int"),
        (b'{"format": "1"}', "`format` is missing or not of type int"),
        (b'{"format": 2}', "format 2 is not known here, only 1; update Headgate"),
        (b'{"format": 0}', "format 0 is not known here, only 1; publish the queries again"),
        (b'{"format": 1}', "its checksum is another"),
    ],
)
def test_a_manifest_that_is_none_is_refused(snapshot: Path, text: bytes, said: str) -> None:
    (snapshot / "manifest.json").write_bytes(text)
    assert refused(snapshot, "manifest.json").startswith(said)


def test_a_manifest_of_absurd_size_is_not_even_read(snapshot: Path) -> None:
    with (snapshot / "manifest.json").open("r+b") as file:
        file.truncate(1 << 40)
    assert refused(snapshot, "manifest.json") == "larger than 67,108,864 bytes"


def forge(directory: Path, change: Change) -> None:
    """A manifest that says something else, and has the right checksum for it."""
    path = directory / "manifest.json"
    content = json.loads(path.read_text())
    del content["checksum"]
    change(content)
    text = json.dumps(content, sort_keys=True).encode()
    content["checksum"] = hashlib.blake2b(text, digest_size=16).hexdigest()
    path.write_text(json.dumps(content))


def put(*keys: str | int, value: object) -> Change:
    def change(content: Any) -> None:
        for key in keys[:-1]:
            content = content[key]
        content[keys[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (put("version", value=1.5), "`version` is neither a number nor a hash"),
        (put("version", value=None), "`version` is neither a number nor a hash"),
        (put("queries", value=-1), "`queries` is -1, which cannot be"),
        (put("queries", value=10**30), f"`queries` is {10**30}, which cannot be"),
        (put("schema", value=["x"]), "`schema` is missing or not of type str"),
        (put("schema", value="CREATE TABLE x"), "its schema is not SQL"),
        (put("segments", value={}), "`segments` is missing or not of type list"),
        (put("segments", value=[]), "its segments do not begin with their only base"),
        (put("segments", value=[3]), "segment 0 is not an object"),
        (put("segments", 0, "kind", value="pickle"), "`pickle` is not a kind of segment"),
        (put("segments", 0, "size", value=10**30), f"`size` is {10**30}, which cannot be"),
        (put("segments", 0, "count", value=-5), "`count` is -5, which cannot be"),
        (put("segments", 0, "blake2b", value=5), "`blake2b` is missing or not of type str"),
    ],
)
def test_a_forged_manifest_is_refused(snapshot: Path, change: Change, said: str) -> None:
    forge(snapshot, change)
    assert refused(snapshot, "manifest.json").startswith(said)


@pytest.mark.parametrize(
    "name", ["../x", "../b/0-base.arrow", "/etc/passwd", "", ".", "0-base.arrow\0", "1-base.arrow"]
)
def test_a_file_outside_the_snapshot_is_refused(snapshot: Path, name: str) -> None:
    forge(snapshot, put("segments", 0, "file", value=name))
    said = refused(snapshot, "manifest.json")
    assert said == f"`{name}` is not a file of this snapshot; it should be 0-base.arrow"


@pytest.mark.parametrize(
    ("change", "file", "said"),
    [
        (put("segments", 0, "size", value=1 << 50), "0-base.arrow", "has "),
        (put("segments", 0, "count", value=1 << 50), "0-base.arrow", "holds 40 entries"),
        (put("segments", 2, "blake2b", value="00"), "2-delta.arrow", "its checksum is another"),
        (put("queries", value=1 << 50), "", "its segments hold 40 queries"),
    ],
)
def test_a_manifest_that_does_not_fit_its_files_is_refused(
    snapshot: Path, change: Change, file: str, said: str
) -> None:
    forge(snapshot, change)
    assert refused(snapshot, file).startswith(said)


def rewrite(directory: Path, place: int, segment: Segment) -> None:
    """Another segment in the place of one, with a manifest that vouches for it."""
    content = json.loads((directory / "manifest.json").read_text())
    path = directory / content["segments"][place]["file"]
    write_arrays(path, flatten_arrays(segment))
    entry = {
        "kind": kind_of(segment),
        "file": path.name,
        "count": len(segment),
        "size": path.stat().st_size,
        "blake2b": checksum(path),
    }
    forge(directory, put("segments", place, value=entry))


def delta(places: list[int], *queries: Query) -> Delta:
    return Delta(encode_queries(queries, SCHEMA), np.array(places, np.int64))


@pytest.mark.parametrize(
    ("place", "segment", "said"),
    [
        (1, Tombstones(pack(["nobody"])), "a tombstone is for no query that lives"),
        (1, Tombstones(pack(["q1", "q1"])), "a tombstone is for no query that lives"),
        (2, delta([99], query("q39", "qty = 1")), "the places of a delta do not ascend"),
        (2, delta([-1], query("q39", "qty = 1")), "the places of a delta do not ascend"),
        (2, delta([39], query("q3", "qty = 1")), "two queries have the same id"),
    ],
)
def test_segments_that_contradict_each_other_are_refused(
    snapshot: Path, place: int, segment: Segment, said: str
) -> None:
    rewrite(snapshot, place, segment)
    assert refused(snapshot, "").startswith(f"its segments contradict each other; {said}")


def test_wrong_arrays_under_a_right_checksum_are_refused(snapshot: Path) -> None:
    encoded = encode_queries(numbered(40), SCHEMA)
    encoded.trees.program[0] = 10**6
    rewrite(snapshot, 0, Base(encoded))
    assert (
        refused(snapshot, "0-base.arrow")
        == "trees.program[0] is 1000000, but there is no such atom"
    )


def test_a_delta_without_all_its_places_is_refused(snapshot: Path) -> None:
    rewrite(snapshot, 2, delta([], query("q39", "qty = 1")))
    assert refused(snapshot, "2-delta.arrow") == "places and queries are not equally many"


def vouch(directory: Path, place: int) -> None:
    """Have the manifest say what a file is."""
    file = (
        directory / json.loads((directory / "manifest.json").read_text())["segments"][place]["file"]
    )
    forge(directory, put("segments", place, "size", value=file.stat().st_size))
    forge(directory, put("segments", place, "blake2b", value=checksum(file)))


def test_a_file_of_other_arrays_is_refused(snapshot: Path) -> None:
    shutil.copyfile(snapshot / "1-tombstones.arrow", snapshot / "2-delta.arrow")
    vouch(snapshot, 2)
    assert refused(snapshot, "2-delta.arrow") == "its arrays are not those of such a segment"
    (snapshot / "2-delta.arrow").write_bytes(bytes(1000))
    vouch(snapshot, 2)
    assert refused(snapshot, "2-delta.arrow").startswith("not an Arrow file")


def test_what_is_whole_is_not_refused(snapshot: Path) -> None:
    assert is_complete(snapshot)
    assert list(open_snapshot(snapshot).query_set()) == QUERIES


@pytest.mark.parametrize("rows", [0, 2])
def test_arrays_in_other_than_one_row_are_refused(snapshot: Path, rows: int) -> None:
    path = snapshot / "1-tombstones.arrow"
    with pa.ipc.open_file(str(path)) as reader:
        batch = reader.get_batch(0)
    with pa.ipc.new_file(str(path), batch.schema) as writer:
        for _ in range(rows):
            writer.write_batch(batch)
    vouch(snapshot, 1)
    assert refused(snapshot, path.name) == "its arrays are not those of such a segment"


@pytest.mark.parametrize("values", [[[0, None]], [None]])
def test_an_array_with_a_null_is_refused(snapshot: Path, values: list[Any]) -> None:
    path = snapshot / "1-tombstones.arrow"
    with pa.ipc.open_file(str(path)) as reader:
        batch = reader.get_batch(0)
    offsets = pa.array(values, batch.schema.field("ids.offsets").type)
    changed = batch.set_column(0, batch.schema.field(0), offsets)
    with pa.ipc.new_file(str(path), batch.schema) as writer:
        writer.write_batch(changed)
    vouch(snapshot, 1)
    assert refused(snapshot, path.name) == "ids.offsets has a NULL"


CUT = """
import os, sys
from headgate.matching import build_index_from_snapshot
from headgate.snapshot import open_snapshot
from headgate.snapshot.files import checksum

snapshot = open_snapshot(sys.argv[1])
for file in snapshot.directory.glob("*.arrow"):
    if sys.argv[2] == "cut":
        os.truncate(file, 100)
    else:
        file.write_bytes(bytes([255]) * file.stat().st_size)
index = build_index_from_snapshot(snapshot, "keyed", stream="trades").index
print(len(snapshot.query_set()), index.match([{"qty": 1, "price": 38}]).total)
"""


@pytest.mark.parametrize("damage", slow_unless_in(["cut"], ["cut", "overwritten"]))
def test_what_happens_to_the_files_of_an_open_snapshot_does_no_harm(
    tmp_path: Path, damage: str
) -> None:
    """A mapped file that is cut ends the process with SIGBUS."""
    write_snapshot(query_set(*numbered(3000)), tmp_path / "s")
    done = subprocess.run(
        [sys.executable, "-c", CUT, str(tmp_path / "s"), damage],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "3000 2962\n"
