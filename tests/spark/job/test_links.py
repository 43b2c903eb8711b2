"""A file is read once, whatever symbolic links lead to it again."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from headgate.schema import Schema, Stream
from headgate.spark.job.batch.links import LinkFilter
from headgate.spark.job.batch.work import FileReader
from headgate.sql import Script
from tests.scale import case_count, seed
from tests.spark.job.test_run import Workshop, shop  # noqa: F401

MAX_DEPTH = 9  # of the walk; an operating system allows forty links in a path


def walk(folder: Path, depth: int = MAX_DEPTH) -> list[str]:
    """All files as Spark lists them: links are followed, hidden names are not."""
    listed = []
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.name[0] in "._":
            continue
        if entry.is_dir() and depth:
            listed += walk(Path(entry.path), depth - 1)
        elif entry.is_file():
            listed.append(entry.path)
    return listed


def keep(root: Path, pattern: str = "", name_filter: str | None = None) -> list[str]:
    """The files that are read, relative to the root."""
    filter_ = LinkFilter.from_source(root / pattern, name_filter)
    kept = [file for file in walk(root) if not filter_.is_repeated(file)]
    return sorted(os.path.relpath(file, root) for file in kept)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("in/a/x.jsonl", "in/b/y.jsonl", "in/.hidden/h.jsonl", "other/c/z.jsonl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")
    return tmp_path / "in"


FILES = ["a/x.jsonl", "b/y.jsonl"]


def test_loops_are_not_followed(root: Path) -> None:
    """To itself, to a directory above, to one another, and to one above the root."""
    (root / "loop").symlink_to(".")
    assert len(walk(root)) == 2 * MAX_DEPTH
    assert keep(root) == FILES
    (root / "loop").unlink()
    (root / "a" / "up").symlink_to("..")
    assert keep(root) == FILES
    (root / "a" / "up").unlink()
    (root / "a" / "to_b").symlink_to("../b")
    (root / "b" / "to_a").symlink_to("../a")
    assert keep(root) == FILES
    (root / "a" / "to_b").unlink()
    (root / "b" / "to_a").unlink()
    (root / "above").symlink_to("..")
    assert keep(root) == sorted([*FILES, "above/other/c/z.jsonl"])


def test_links_to_places_that_are_not_listed_themselves_are_followed(root: Path) -> None:
    """Nothing is lost: outside of the tree, hidden, or with a name that a filter refuses."""
    (root / "other").symlink_to("../other")
    (root / "shown").symlink_to(".hidden")
    assert keep(root) == [*FILES, "other/c/z.jsonl", "shown/h.jsonl"]
    (root.parent / "other" / "again").symlink_to(".")  # a loop out there
    assert keep(root) == [*FILES, "other/c/z.jsonl", "shown/h.jsonl"]
    (root / "latest.jsonl").symlink_to("a/x.jsonl")
    assert "latest.jsonl" not in keep(root)
    (root / "a" / "raw.data").write_text("{}")
    (root / "named.jsonl").symlink_to("a/raw.data")
    assert "named.jsonl" in keep(root, name_filter="*.jsonl")
    assert "named.jsonl" not in keep(root)


def test_patterns_say_what_is_listed(root: Path) -> None:
    (root / "a2").symlink_to("a")
    (root / "a" / "to_b").symlink_to("../b")
    files = [f"{root}/a2/x.jsonl", f"{root}/a/to_b/y.jsonl"]
    for pattern, repeated in (
        ("*", [True, True]),
        ("a*", [True, False]),  # b is not listed by itself
        ("{a2,b}", [False, True]),
        ("[!a]*", [False, True]),
        ("a?/*.jsonl", [False, False]),
    ):
        links = LinkFilter.from_source(root / pattern, None)
        assert [links.is_repeated(file) for file in files] == repeated, pattern


@pytest.mark.parametrize("case", range(case_count(60)))
def test_oracle_each_file_of_a_random_tree_once(tmp_path: Path, case: int) -> None:
    """With links from anywhere to anywhere in the tree, each file is read under its own path."""
    random = Random(seed(case))
    root = tmp_path / "in"
    folders = [root]
    root.mkdir()
    for number in range(random.randint(1, 5)):
        folders.append(random.choice(folders) / f"d{number}")
        folders[-1].mkdir()
    own = []
    for number in range(random.randint(1, 5)):
        file = random.choice(folders) / f"f{number}.jsonl"
        file.write_text("{}")
        own.append(str(file))
    for number in range(random.randint(0, 3)):
        target = random.choice([*folders, *map(Path, own)])
        (random.choice(folders) / f"l{number}").symlink_to(target)
    links = LinkFilter.from_source(root, None)
    kept = [file for file in walk(root, 5) if not links.is_repeated(file)]
    assert Counter(kept) == Counter(own)


def test_a_job_reads_a_loop_once(shop: Workshop) -> None:  # noqa: F811
    """In small batches, so that no batch has all paths of a file."""
    shop.publish({"all": "TRUE"})
    shop.write("a.jsonl", 30, seed=1)
    (shop.events / "loop").symlink_to(".")
    source = {"kind": "files", "path": "events", "files_per_trigger": 7}
    result = shop.run(shop.pipeline(source=source))
    assert result.stats.counts.total == len((shop.events / "a.jsonl").read_text().splitlines())
    assert result.stats.batches > 1
    (note,) = (note for note in shop.notes if "leads back" in note)
    assert note.startswith(f"{shop.events}/loop leads back to a directory above it")


def test_links_that_lead_back_are_named(root: Path) -> None:
    """Only those by which the listing never ends by itself."""
    links = LinkFilter.from_source(root, None)
    (root / "other").symlink_to("../other")
    (root / "a" / "to_b").symlink_to("../b")
    (root / "again.jsonl").symlink_to("a/x.jsonl")
    (root / ".seen").symlink_to(".")
    assert list(links.find_loops()) == []
    (root / "a" / "up").symlink_to("..")
    (root / "b" / "top").symlink_to("../..")
    assert sorted(links.find_loops()) == [f"{root}/a/up", f"{root}/b/top"]
    assert list(LinkFilter.from_source(root / "*", None).find_loops()) == []


def test_tasks_of_unbounded_queries_leave_them_out_too(root: Path) -> None:
    (root / "a" / "x.jsonl").write_text('{"a": 1}\n')
    (root / "loop").symlink_to(".")
    (stream,) = Script(Schema()).read("CREATE STREAM s (a INT)")
    assert isinstance(stream, Stream)
    reader = FileReader(stream, ("a",), None, LinkFilter.from_source(root, None))
    paths = pa.record_batch({"path": [f"file:{root}/a/x.jsonl", f"file:{root}/loop/a/x.jsonl"]})
    assert [batch.num_rows for batch in reader.read([paths])] == [1]
