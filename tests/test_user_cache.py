"""A cache is used only where no other user could have put something."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headgate.user_cache import find_shared_directory, open_user_cache

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has access lists instead")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    return tmp_path


def test_a_new_directory_is_private(home: Path) -> None:
    directory = open_user_cache("a")
    assert directory == home / "cache" / "headgate" / "a"
    assert directory.stat().st_mode & 0o777 == 0o700
    assert find_shared_directory(directory) is None


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
@pytest.mark.parametrize("shared", ["cache", "cache/headgate", "cache/headgate/a"])
def test_what_others_can_write_is_passed_over(home: Path, shared: str, mode: int) -> None:
    directory = open_user_cache("a")
    assert directory is not None
    (home / shared).chmod(mode)
    assert find_shared_directory(directory) == home / shared
    assert open_user_cache("a") == home / "temporary" / f"headgate-cache-{os.getuid()}" / "a"


def test_the_sticky_bit_keeps_what_is_ours(home: Path) -> None:
    directory = open_user_cache("a")
    (home / "cache").chmod(0o1777)
    assert open_user_cache("a") == directory
    # but it does not keep others from writing into the directory itself
    (home / "cache" / "headgate" / "a").chmod(0o1777)
    assert open_user_cache("a") != directory


@pytest.mark.usefixtures("home")
def test_what_belongs_to_others_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    directory = open_user_cache("a")
    assert directory is not None
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert find_shared_directory(directory) == directory


def test_a_link_is_followed_once(home: Path) -> None:
    """What a link points to later, somebody else may decide."""
    (home / "real").mkdir()
    (home / "cache").symlink_to(home / "real")
    assert open_user_cache("a") == home / "real" / "headgate" / "a"
    (home / "real" / "headgate" / "b").symlink_to(home)
    assert open_user_cache("b") == home / "temporary" / f"headgate-cache-{os.getuid()}" / "b"


def test_without_a_place_there_is_no_cache(home: Path) -> None:
    (home / "cache").write_text("a file")
    (home / "temporary").write_text("a file")
    assert open_user_cache("a") is None
