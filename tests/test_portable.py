"""Calls that differ between operating systems behave in one way."""

from __future__ import annotations

import os
from pathlib import Path

from headgate.portable import count_processors, lock_file


def test_a_lock_excludes_others_until_it_is_released(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    with lock_file(path) as is_held:
        assert is_held
        with lock_file(path, wait=False) as is_held_twice:
            assert not is_held_twice
    with lock_file(path, wait=False) as is_held_again:
        assert is_held_again


def test_no_more_processors_than_there_are() -> None:
    assert 1 <= count_processors() <= (os.cpu_count() or 1)
