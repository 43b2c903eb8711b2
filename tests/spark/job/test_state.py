"""What continuous queries store is found again as it was, or missed; ids and folders agree."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headgate as hg
from headgate.errors import JobError
from headgate.spark.job.commit.checkpoint import list_planned_files
from headgate.spark.job.commit.log import BatchLog, Counts
from headgate.spark.job.commit.output import Part, decode_folder, encode_folder, list_spans
from headgate.spark.job.event_reduction import ContinuousQuery
from headgate.spark.job.sinks import DirectorySink
from headgate.spark.job.state import StateFiles

SQL = "CREATE STREAM s (a INT CHECK (a IN ({values}))); CREATE QUERY q AS SELECT {what} FROM s;"


def standing(folder: Path, values: str = "1, 2", what: str = "DISTINCT a") -> ContinuousQuery:
    (folder / "q.sql").write_text(SQL.format(values=values, what=what))
    actual = hg.read_queries(folder / "q.sql", strict=True)
    return ContinuousQuery.from_query(actual["q"], actual.schema)


def test_a_definition_is_the_query_and_its_streams(tmp_path: Path) -> None:
    """With another CHECK the same text keeps other things."""
    one = standing(tmp_path)
    assert one == standing(tmp_path, what="distinct  a")
    assert one != standing(tmp_path, values="1, 2, 3")
    assert one != standing(tmp_path, what="COUNT(*) AS n")


def test_states_are_restored(tmp_path: Path) -> None:
    one, other = standing(tmp_path), standing(tmp_path, what="COUNT(*) AS n")
    synopses = StateFiles(tmp_path / "synopses")
    checksum = synopses.write(3, {one: b"\n\x00state", other: b""})
    actual = StateFiles(tmp_path / "synopses").read(3, checksum)
    assert actual == {("q", one.definition): b"\n\x00state", ("q", other.definition): b""}
    assert synopses.write(3, {one: b"x"}) != checksum, "a replay writes it again"
    with pytest.raises(JobError, match="its checksum is another"):
        synopses.read(3, checksum)


def test_a_state_that_stays_is_not_written_again(tmp_path: Path) -> None:
    synopses = StateFiles(tmp_path)
    checksum = synopses.write(3, {})
    synopses.copy(4, before=3)
    synopses.copy(4, before=3)
    assert os.path.samefile(tmp_path / "3", tmp_path / "4")
    synopses.delete_before(4)
    assert sorted(path.name for path in tmp_path.glob("[0-9]*")) == ["4"]
    assert synopses.read(4, checksum) == {}


def test_every_damage_is_noticed(tmp_path: Path) -> None:
    one = standing(tmp_path)
    synopses = StateFiles(tmp_path)
    checksum = synopses.write(0, {one: b"state"})
    whole = (tmp_path / "0").read_bytes()
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 4
        (tmp_path / "0").write_bytes(damaged)
        with pytest.raises(JobError, match="was changed or damaged"):
            synopses.read(0, checksum)
    (tmp_path / "0").unlink()
    with pytest.raises(
        JobError, match="0: the state of the continuous queries is gone; restore it"
    ):
        synopses.read(0, checksum)


def test_a_replayed_batch_leaves_no_answer_that_it_does_not_give(tmp_path: Path) -> None:
    """Though the query may not be among those that run any more."""
    sink = DirectorySink(tmp_path, "jsonl")
    sink.stages.mkdir()
    for batch, ids in ((0, "ab"), (1, "ab"), (1, "b")):
        staged = {encode_folder(name): [Part(str(sink.stages / name), 1, 3, "")] for name in ids}
        for (part,) in staged.values():
            Path(part.path).write_text("{}\n")
        placed = sink.write_batch(batch, {"matches": [], **staged})
        assert [part.path.split("/")[1] for part in placed] == list(ids)
    assert [span.last for span in list_spans(tmp_path / "answers" / "a")] == [0]
    assert [span.last for span in list_spans(tmp_path / "answers" / "b")] == [0, 1]


@given(st.text(min_size=1).filter(lambda text: text.isprintable()))
def test_folders_of_ids_are_safe_and_reversible(query_id: str) -> None:
    folder = encode_folder(query_id)
    assert decode_folder(folder) == query_id
    parent, name = folder.split("/")
    assert parent == "answers"
    assert name.isascii()
    assert not name.startswith((".", "_"))
    assert "=" not in name


def test_the_log_knows_the_last_state_also_when_it_is_folded(tmp_path: Path) -> None:
    log = BatchLog(tmp_path / "log")
    log.begin(0, 1)
    log.finish(0, Counts(rows=1), state_checksum="abc")
    assert BatchLog(tmp_path / "log").state_checksum == "abc"
    log._fold()
    assert BatchLog(tmp_path / "log").state_checksum == "abc"
    log.begin(1, 2)
    log.finish(1, Counts(rows=1))
    assert BatchLog(tmp_path / "log").state_checksum is None, "no query was left"


def test_planned_files_of_many_sources(tmp_path: Path) -> None:
    """Each has its own log, and a line in the offsets of a batch."""
    for name, text in {
        "offsets/0": 'v1\n{}\n{"logOffset":0}\n-',
        "offsets/1": 'v1\n{}\n{"logOffset":0}\n{"logOffset":0}',
        "offsets/2": 'v1\n{}\n{"logOffset":2}\n{"logOffset":0}',
        "sources/0/0": 'v1\n{"path":"file:///a/0","batchId":0}',
        "sources/0/1": 'v1\n{"path":"file:///a/1","batchId":1}',
        "sources/0/2": 'v1\n{"path":"file:///a/2","batchId":2}',
        "sources/1/0": 'v1\n{"path":"file:///b/0","batchId":0}',
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    actual = [
        [list_planned_files(tmp_path, source, batch) for batch in range(3)] for source in (0, 1)
    ]
    assert actual == [[["/a/0"], [], ["/a/1", "/a/2"]], [[], ["/b/0"], []]]
