"""State and output belong together; what does not is refused with a way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.errors import JobError
from headgate.spark.job.commit.claim import MARK_FILE, claim_output, hold_lock


def test_a_job_finds_its_output_again(tmp_path: Path) -> None:
    claim_output(tmp_path / "state", tmp_path / "out", began=False)
    claim_output(tmp_path / "state", tmp_path / "out", began=True)


def test_state_inside_the_output(tmp_path: Path) -> None:
    claim_output(tmp_path / "out" / "state", tmp_path / "out", began=False)
    claim_output(tmp_path / "out" / "state", tmp_path / "out", began=True)


def test_a_crash_between_the_two_marks_is_healed(tmp_path: Path) -> None:
    claim_output(tmp_path / "state", tmp_path / "out", began=False)
    (tmp_path / "out" / MARK_FILE).unlink()
    claim_output(tmp_path / "state", tmp_path / "out", began=False)


def test_the_output_of_another_job_is_refused(tmp_path: Path) -> None:
    claim_output(tmp_path / "state", tmp_path / "out", began=False)
    with pytest.raises(JobError, match="output of another job"):
        claim_output(tmp_path / "other", tmp_path / "out", began=False)


def test_rows_without_a_mark_are_refused(tmp_path: Path) -> None:
    (tmp_path / "out" / "matches" / "batches=0000000000-0000000000").mkdir(parents=True)
    with pytest.raises(JobError, match="output of another job"):
        claim_output(tmp_path / "state", tmp_path / "out", began=False)


def test_a_lost_output_is_refused(tmp_path: Path) -> None:
    claim_output(tmp_path / "state", tmp_path / "out", began=False)
    (tmp_path / "out" / MARK_FILE).unlink()
    with pytest.raises(JobError, match="is gone"):
        claim_output(tmp_path / "state", tmp_path / "out", began=True)


def test_one_at_a_time(tmp_path: Path) -> None:
    with (
        hold_lock(tmp_path, ".lock", "another job"),
        pytest.raises(JobError, match="another job is at work there"),
        hold_lock(tmp_path, ".lock", "another job"),
    ):
        pass
