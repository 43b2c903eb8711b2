"""Compiled kernels: what their directory depends on, who compiles them, and damaged files."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from headgate.jit import cache
from headgate.portable import lock_descriptor
from tests.scale import slow_unless_in

KERNELS = """
from headgate.jit import kernel

@kernel
def increase(x):
    return x + 1

@kernel
def double(x):
    return increase(x) + x - 1
"""
CALL = """
import numba.core.event as event

class Listener(event.Listener):
    def on_start(self, started):
        print("compiled", started.data["dispatcher"].py_func.__name__)
    def on_end(self, ended):
        pass

event.register("numba:compile", Listener())
from tiny.kernels import double
print(double(21))
"""
BOTH = ["compiled double", "compiled increase"]


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A package with two kernels, which processes started from here can import."""
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "__init__.py").touch()
    (tmp_path / "tiny" / "kernels.py").write_text(KERNELS)
    path = os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", "")))
    monkeypatch.setenv("PYTHONPATH", path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def start() -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", CALL], stdout=pipe, stderr=pipe, text=True)


def lines_of(process: subprocess.Popen[str]) -> tuple[list[str], str]:
    """Return the lines that a process printed, and its errors."""
    printed, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    return printed.splitlines(), errors


def test_sources_include_called_kernels_and_imported_constants() -> None:
    sources = cache._sources("benchmarks.rivals.kernels")
    called = {module for module in sources if module.startswith("headgate.matching.asc.")}
    assert any(cache._KERNEL.search(sources[module]) for module in called)
    assert "headgate.snapshot.arrays.atoms" in cache._sources("headgate.matching.keyed")
    assert "headgate.jit.intrinsics" in sources


def test_a_changed_source_changes_the_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    before = cache._cache_directory.__wrapped__("headgate.sharing")
    read = cache._read

    def change(module: str) -> bytes | None:
        source = read(module)
        return source and source + b"# changed"

    monkeypatch.setattr(cache, "_read", change)
    after = cache._cache_directory.__wrapped__("headgate.sharing")
    assert before is not None
    assert after is not None
    assert before != after


@pytest.mark.usefixtures("tiny")
def test_one_process_compiles_for_all_that_start_together() -> None:
    outputs = [lines_of(process)[0] for process in [start() for _ in range(4)]]
    assert [output[-1] for output in outputs] == ["42"] * 4
    assert sorted(line for output in outputs for line in output[:-1]) == BOTH


def test_a_process_that_never_ends_is_waited_for_only_so_long(
    monkeypatch: pytest.MonkeyPatch, tiny: Path
) -> None:
    monkeypatch.setattr(cache, "MAX_WAIT_SECONDS", 0.2)
    lock = tiny / cache.LOCK_FILE
    with lock.open("a") as file:
        assert lock_descriptor(file.fileno(), wait=False)
        assert cache._compile_in_turn(tiny, lambda signature: signature, "compiled") == "compiled"
    assert not cache._compiling


MOVED = b"cheadgate.no_such_module\nMoved\n."


@pytest.mark.parametrize("content", slow_unless_in([MOVED], [MOVED, b"", b"cut off"]))
def test_a_cache_that_cannot_be_read_is_compiled_again(content: bytes, tiny: Path) -> None:
    """Cut off, damaged, or with the types of a module that has moved since."""
    assert lines_of(start())[0] == [*BOTH, "42"]
    indexes = list(tiny.rglob("*.nbi"))
    assert len(indexes) == 2
    for index in indexes:
        # behind Numba's version, without which nothing of it is read
        index.write_bytes(pickle.dumps(numba.__version__) + content)
    lines, errors = lines_of(start())
    assert lines == [*BOTH, "42"]
    assert "compiling the kernel double again: its cached form cannot be read" in errors
    assert lines_of(start()) == (["42"], "")
