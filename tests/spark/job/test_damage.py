"""Damage to what a job keeps is refused by name at the next start, before a batch runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

import headgate as hg
from headgate.cli.app import app
from headgate.errors import HeadgateError
from headgate.snapshot import publish
from headgate.spark.job.commit.compaction import compact
from headgate.spark.job.commit.log import BatchLog, Counts
from headgate.spark.job.commit.output import Part, parse_span
from headgate.spark.job.runner import run
from tests.scale import slow_unless_in
from tests.spark.job.jobs import WHERES, events, matches_in, queries

PIPELINE = """
[queries]
published = "queries"
[source]
kind = "files"
path = "events"
files_per_trigger = 1
[sink]
kind = "{kind}"
path = "out"
[run]
trigger = "available"
"""
BATCHES = 4
SUMS = "CREATE QUERY `sums/x` AS SELECT side, COUNT(*) AS n FROM orders GROUP BY side;"
FIRST, SECOND = "batches=0000000000-0000000000", "batches=0000000001-0000000001"

Damage = Callable[[Path], object]


class FinishedJob:
    """A job that has run, and can be brought back to what it was then."""

    def __init__(self, folder: Path, spark: SparkSession, kind: str, more: str) -> None:
        self.folder = folder / "job"
        self.out = self.folder / "out"
        self._spark = spark
        (self.folder / "events").mkdir(parents=True)
        self.pipeline = self.folder / "pipeline.toml"
        self.pipeline.write_text(PIPELINE.format(kind=kind))
        for number in range(BATCHES):
            (self.folder / "events" / f"{number}.jsonl").write_text(events(30, number))
        for wheres in (WHERES, {**WHERES, "new": "qty = 1"}):
            script = self.folder / "queries.sql"
            script.write_text(queries(wheres) + more)
            publish(hg.read_queries(script, strict=True), self.folder / "queries")
        self.run()
        self._saved = folder / "saved"
        shutil.copytree(self.folder, self._saved)

    def run(self, *, verify: bool = False) -> None:
        run(self.pipeline, spark=self._spark, verify=verify)

    def restore(self) -> None:
        shutil.rmtree(self.folder)
        shutil.copytree(self._saved, self.folder)


@pytest.fixture(scope="module")
def stateful_job(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> FinishedJob:
    return FinishedJob(tmp_path_factory.mktemp("stateful"), spark, "parquet", SUMS)


@pytest.fixture(scope="module")
def plain_job(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> FinishedJob:
    """A job without stateful queries, whose log alone says what is finished."""
    return FinishedJob(tmp_path_factory.mktemp("plain"), spark, "jsonl", "")


def cut(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def change_lines(path: Path, change: Callable[[list[bytes]], object]) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    change(lines)
    path.write_bytes(b"".join(lines))


def change_digit(path: Path) -> None:
    """Change a count in the middle of the log into another number."""

    def change(lines: list[bytes]) -> None:
        lines[3] = lines[3].replace(b'"rows": ', b'"rows": 1', 1)

    change_lines(path, change)


OUTPUT_DAMAGE: dict[str, tuple[Damage, str]] = {
    "a deleted batch": (
        lambda out: shutil.rmtree(out / "matches" / SECOND),
        rf"matches/{SECOND}: is gone",
    ),
    "a deleted part": (
        lambda out: (out / "matches" / SECOND / "part-0000.parquet").unlink(),
        rf"matches/{SECOND}/part-0000.parquet: is gone",
    ),
    "a cut part": (
        lambda out: cut(out / "matches" / FIRST / "part-0000.parquet"),
        rf"matches/{FIRST}/part-0000.parquet: has \d+ bytes, and the log says \d+",
    ),
    "a flipped bit": (
        lambda out: flip(next((out / "dead").glob("*/part-*.parquet"))),
        r"dead/batches=[0-9-]+/part-\d+\.parquet: was changed or damaged",
    ),
    "a doubled part": (
        lambda out: shutil.copy(
            out / "matches" / FIRST / "part-0000.parquet",
            out / "matches" / FIRST / "part-0001.parquet",
        ),
        rf"matches/{FIRST}/part-0001.parquet: is not in the log",
    ),
    "deleted answers": (
        lambda out: shutil.rmtree(out / "answers" / "sums%2Fx"),
        rf"answers/sums%2Fx/{FIRST}: is gone \(and 3 more\)",
    ),
    "a batch from elsewhere": (
        lambda out: shutil.copytree(out / "matches" / FIRST, out / "answers" / "old" / FIRST),
        rf"answers/old/{FIRST}: is not in the log",
    ),
}

LOG_DAMAGE: dict[str, tuple[Damage, str]] = {
    "a changed digit": (
        lambda state: change_digit(state / "log.jsonl"),
        r"log.jsonl:4: was changed or damaged",
    ),
    "a removed line": (
        lambda state: change_lines(state / "log.jsonl", lambda lines: lines.pop(2)),
        r"log.jsonl:3: record 4 follows record 2",
    ),
    "a doubled line": (
        lambda state: change_lines(state / "log.jsonl", lambda lines: lines.insert(2, lines[2])),
        r"log.jsonl:4: record 3 follows record 3",
    ),
    "the first line": (
        lambda state: change_lines(state / "log.jsonl", lambda lines: lines.pop(0)),
        r"log.jsonl:1: record 2 is the first",
    ),
    "the last line": (
        lambda state: change_lines(state / "log.jsonl", lambda lines: lines.pop()),
        r"log.jsonl: ends with record 7, and log.head names record 8",
    ),
    "half of the last line": (
        lambda state: change_lines(
            state / "log.jsonl", lambda lines: lines.append(lines.pop()[:-30])
        ),
        r"log.jsonl: ends with record 7, and log.head names record 8",
    ),
    "the pointer to the last line": (
        lambda state: (state / "log.head").unlink(),
        r"log.jsonl: ends with record 8, and log.head is missing",
    ),
    "a changed path in the source log": (
        lambda state: _change_path(state / "spark" / "sources" / "0" / "2"),
        r"sources/0/2: was changed or damaged: .* checksum",
    ),
    "a changed path in the newest source log, without its checksum": (
        lambda state: _change_unchecked(
            state / "spark" / "sources" / "0" / "3", b".jsonl", b".jsonx"
        ),
        r"sources/0/3: was changed or damaged: the log has another digest",
    ),
    "a lost newest source log": (
        lambda state: _change_unchecked(state / "spark" / "sources" / "0" / "3", b"", b""),
        r"sources/0/3: is gone: the log has another digest",
    ),
    "a changed newest offset, without its checksum": (
        lambda state: _change_unchecked(state / "spark" / "offsets" / "3", b":3}", b":2}"),
        r"offsets/3: was changed or damaged: the log has another digest",
    ),
    "a checksum of Spark's": (
        lambda state: (state / "spark" / "sources" / "0" / ".1.crc").unlink(),
        r"sources/0/\.1\.crc: Hadoop's checksum of 1 is gone",
    ),
    "a cut offset": (
        lambda state: cut(state / "spark" / "offsets" / "2"),
        r"offsets/2: was changed or damaged: .* checksum",
    ),
}


def _change_path(path: Path) -> None:
    text = path.read_text()
    assert ".jsonl" in text
    path.write_text(text.replace(".jsonl", ".jsonx"))


def _change_unchecked(path: Path, old: bytes, new: bytes) -> None:
    """Change or delete a file and delete what Hadoop knows of it."""
    content = path.read_bytes()
    path.with_name(f".{path.name}.crc").unlink()
    path.unlink()
    if old:
        assert old in content
        path.write_bytes(content.replace(old, new))


@pytest.mark.parametrize("damage", slow_unless_in(list(OUTPUT_DAMAGE)[:4], OUTPUT_DAMAGE))
def test_damaged_output_is_refused(stateful_job: FinishedJob, damage: str) -> None:
    stateful_job.restore()
    apply, said = OUTPUT_DAMAGE[damage]
    apply(stateful_job.out)
    with pytest.raises(HeadgateError, match=said):
        stateful_job.run()


@pytest.mark.parametrize("damage", slow_unless_in(list(LOG_DAMAGE)[-7:], LOG_DAMAGE))
def test_a_damaged_log_is_refused(plain_job: FinishedJob, damage: str) -> None:
    plain_job.restore()
    apply, said = LOG_DAMAGE[damage]
    apply(plain_job.out / "state")
    with pytest.raises(HeadgateError, match=said):
        plain_job.run()


def test_a_crash_may_leave_the_newest_file_without_its_checksum(plain_job: FinishedJob) -> None:
    """Hadoop renames a file before its checksums; what a crash left out is written at the start."""
    plain_job.restore()
    checksums = plain_job.out / "state" / "spark" / "commits" / ".3.crc"
    written = checksums.read_bytes()
    checksums.unlink()
    plain_job.run()
    assert checksums.read_bytes() == written


def test_a_log_that_lost_its_end_with_its_pointer_is_behind_spark(plain_job: FinishedJob) -> None:
    """Both were restored from an older copy: Spark has committed what the log does not know."""
    plain_job.restore()
    state = plain_job.out / "state"
    change_lines(state / "log.jsonl", lambda lines: lines.pop())
    last = json.loads((state / "log.jsonl").read_bytes().splitlines()[-1])
    head = {"sequence": last["sequence"], "checksum": last["checksum"]}
    (state / "log.head").write_text(json.dumps(head) + "\n")
    with pytest.raises(HeadgateError, match=r"the log has batches up to 2, .* committed up to 3"):
        plain_job.run()


def test_a_flipped_pointer_does_not_bring_back_an_old_version(plain_job: FinishedJob) -> None:
    plain_job.restore()
    pointer = plain_job.folder / "queries" / "CURRENT"
    pointer.write_bytes(pointer.read_bytes().replace(b"2", b"1", 1))
    with pytest.raises(HeadgateError, match="CURRENT: was changed or damaged"):
        plain_job.run()


def test_a_job_does_not_start_under_a_smaller_version(plain_job: FinishedJob) -> None:
    """As when the published directory was replaced by another one, or by an old copy."""
    plain_job.restore()
    shutil.rmtree(plain_job.folder / "queries")
    script = plain_job.folder / "queries.sql"
    publish(hg.read_queries(script, strict=True), plain_job.folder / "queries")
    with pytest.raises(HeadgateError, match="version 1 is current, and this job has used 2"):
        plain_job.run()


@pytest.mark.parametrize("name", ["plain_job", "stateful_job"])
def test_a_compacted_output_is_sound_and_its_damage_is_refused(
    name: str, request: pytest.FixtureRequest
) -> None:
    job: FinishedJob = request.getfixturevalue(name)
    job.restore()
    before = matches_in(job.out)
    assert compact(job.out, every=2) > 0
    assert matches_in(job.out) == before
    job.run(verify=True)
    (merged,) = (job.out / "matches").glob("batches=0000000000-*")
    (part,) = merged.iterdir()
    content = part.read_bytes()
    flip(part)
    with pytest.raises(HeadgateError, match=rf"{merged.name}/part-0000.*: was changed or damaged"):
        job.run()
    part.write_bytes(content[:-1])
    with pytest.raises(HeadgateError, match=rf"{merged.name}/part-0000.*: has \d+ bytes"):
        job.run()
    part.unlink()
    with pytest.raises(HeadgateError, match=rf"{merged.name}/part-0000.*: is gone"):
        job.run()
    shutil.rmtree(merged)
    with pytest.raises(HeadgateError, match=rf"{FIRST}: is gone \(and 2 more\)"):
        job.run()


def test_a_compaction_does_not_hide_that_a_batch_was_lost(plain_job: FinishedJob) -> None:
    plain_job.restore()
    shutil.rmtree(plain_job.out / "matches" / SECOND)
    compact(plain_job.out, every=2)
    with pytest.raises(HeadgateError, match=r"0000000002: has \d+ rows, and the log counts \d+"):
        plain_job.run()


def forget(job: FinishedJob, *more: str) -> Result:
    return CliRunner().invoke(app, ["forget", str(job.pipeline), *more])


def test_batches_that_were_removed_on_purpose_are_forgotten(plain_job: FinishedJob) -> None:
    """Just these: what is still there, and what is lost later, is checked as before."""
    plain_job.restore()
    out = plain_job.out
    assert "so nothing was forgotten" in forget(plain_job, "--through", "3").stdout
    rows = [count_lines(out / "matches" / span) for span in (FIRST, SECOND)]
    # not every batch has dead letters
    letters = min((out / "dead").iterdir())
    number = str(parse_span(letters).last)
    dead = shutil.move(letters, plain_job.folder / "dead")
    for span in (FIRST, SECOND):
        shutil.rmtree(out / "matches" / span)
    with pytest.raises(HeadgateError, match=r"is gone.*headgate forget PIPELINE --through N"):
        plain_job.run()
    result = forget(plain_job, "--through", "1", "--folder", "matches", "--format", "json")
    assert json.loads(result.stdout)["forgotten"] == [
        {"folder": "matches", "directories": 2, "rows": sum(rows)}
    ]
    with pytest.raises(HeadgateError, match=rf"dead/{letters.name}: is gone"):
        plain_job.run()
    assert "dead: 1 directory forgotten" in forget(plain_job, "--through", number).stdout
    # the job goes on, and merges around the gap
    (plain_job.folder / "events" / "9.jsonl").write_text(events(30, 9))
    plain_job.run(verify=True)
    assert compact(out, every=2) > 0
    plain_job.run(verify=True)
    (merged,) = (out / "matches").glob("batches=0000000002-*")
    saved = shutil.move(merged, plain_job.folder / "merged")
    beyond = forget(plain_job, "--through", "2").exception
    assert "had batches up to 3; restore it, or give --through 3" in str(beyond)
    with pytest.raises(HeadgateError, match=r"matches/batches=0000000002-[0-9]+: is gone"):
        plain_job.run()
    shutil.move(saved, merged)
    plain_job.run(verify=True)
    shutil.move(dead, letters)
    with pytest.raises(HeadgateError, match=rf"dead/{letters.name}: is not in the log"):
        plain_job.run()


def test_forgetting_refuses_what_is_no_batch_and_no_folder(plain_job: FinishedJob) -> None:
    plain_job.restore()
    for arguments, said in (
        (("--through", "4"), "the last finished batch is 3; give --through a batch up to that"),
        (("--through", "1", "--folder", "match"), "did you mean `matches`"),
    ):
        assert said in str(forget(plain_job, *arguments).exception)
    (plain_job.folder / "none.toml").write_text(
        plain_job.pipeline.read_text().replace('path = "out"', 'path = "none"')
    )
    result = CliRunner().invoke(
        app, ["forget", str(plain_job.folder / "none.toml"), "--through", "1"]
    )
    assert "no job has run with this state" in str(result.exception)
    assert not (plain_job.folder / "none").exists()


def test_forgotten_parts_stay_forgotten_when_the_log_is_folded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.spark.job.commit.log.MAX_LOG_LINES", 6)
    log = BatchLog(tmp_path / "log.jsonl", tmp_path)
    names = [f"matches/batches={batch:010}-{batch:010}" for batch in range(5)]
    for batch, name in enumerate(names):
        log.begin(batch, 1)
        log.finish(batch, Counts(rows=1), [Part(f"{name}/part-0000.jsonl", 1, 2, "ab")])
        if batch == 1:
            log.forget(names[:1])
            assert list(BatchLog(tmp_path / "log.jsonl", tmp_path).parts) == names[1:2]
    again = BatchLog(tmp_path / "log.jsonl", tmp_path)
    assert list(again.parts) == names[1:]
    assert again.totals.rows == 5


def count_lines(folder: Path) -> int:
    return sum(len(part.read_bytes().splitlines()) for part in folder.iterdir())
