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
from tests.scale import case_count, seed, slow_unless_in

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


DAMAGE = """
import importlib, logging, pathlib, random, sys
import tiny.kernels

cache, count, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rolls = random.Random(seed)
logging.basicConfig(format="%(message)s", stream=sys.stdout)
tiny.kernels.double(21)
for case in range(count):
    file = rolls.choice(sorted(cache.rglob("*.nb[ic]")))
    content = bytearray(file.read_bytes())
    place = rolls.randrange(len(content))
    match rolls.randrange(5):
        case 0:  # a bit
            content[place] ^= 1 << rolls.randrange(8)
        case 1:  # cut off, such as the machine code of an entry
            del content[place:]
        case 2:  # a stretch of other bytes
            content[place : place + 64] = rolls.randbytes(64)
        case 3:  # nothing of it is left
            content[:] = rolls.randbytes(len(content))
        case 4:  # another file of the cache
            content[:] = rolls.choice(sorted(cache.rglob("*.nb[ic]"))).read_bytes()
    print("case", case, file.name, flush=True)
    file.write_bytes(content)
    # loads what is there, as another process would
    importlib.reload(tiny.kernels)
    assert tiny.kernels.double(21) == 42
"""


def test_a_damaged_cache_is_compiled_again(tiny: Path) -> None:
    """Wherever it is damaged, nothing of it is used, and a single note says so."""
    command = [sys.executable, "-c", DAMAGE, str(tiny / "cache")]
    done = subprocess.run(
        [*command, str(case_count(100)), str(seed())],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    notes = [line for line in done.stdout.splitlines() if not line.startswith("case ")]
    assert len(notes) == 1
    assert notes[0].startswith("compiling kernels again: ")


class Shape:
    """A pickle of this class runs code when it is read."""

    def __reduce__(self) -> tuple[object, tuple[str, ...]]:
        return os.mkdir, (os.environ["PLANTED"],)


SHAPES = [b"", b"cut off", pickle.dumps(5), pickle.dumps((1, 2)), b"cheadgate.gone\nMoved\n."]


@pytest.mark.parametrize("content", slow_unless_in(SHAPES[-1:], SHAPES))
def test_an_index_of_another_shape_is_compiled_again(content: bytes, tiny: Path) -> None:
    assert lines_of(start())[0] == [*BOTH, "42"]
    indexes = list(tiny.rglob("*.nbi"))
    assert len(indexes) == 2
    for index in indexes:
        index.write_bytes(pickle.dumps(numba.__version__) + content)
    lines, errors = lines_of(start())
    assert lines == [*BOTH, "42"]
    assert errors.count("compiling kernels again: ") == 1
    assert lines_of(start()) == (["42"], "")


@pytest.mark.parametrize("shared", slow_unless_in(["."], [".", "headgate"]))
def test_nothing_is_read_from_where_others_can_write(
    monkeypatch: pytest.MonkeyPatch, tiny: Path, shared: str
) -> None:
    """Another user could put a pickle there, which runs code when it is read."""
    assert lines_of(start())[0] == [*BOTH, "42"]
    monkeypatch.setenv("PLANTED", str(tiny / "planted"))
    for index in tiny.rglob("*.nbi"):
        planted = pickle.dumps(Shape())
        index.write_bytes(cache._compute_digest(str(index), planted) + planted)
    directory = tiny / "cache" / shared
    directory.chmod(0o777)
    monkeypatch.setenv("TMPDIR", str(tiny))
    lines, errors = lines_of(start())
    assert not (tiny / "planted").exists()
    assert lines == [*BOTH, "42"]
    assert errors.count(f"run `chmod go-w {directory.resolve()}`") == 1
    # kept in a directory of this user's own, so that the next process need not compile
    assert lines_of(start())[0] == ["42"]


def test_without_a_private_directory_nothing_is_kept(
    monkeypatch: pytest.MonkeyPatch, tiny: Path
) -> None:
    tiny.chmod(0o777)
    monkeypatch.setenv("TMPDIR", str(tiny))
    for _ in range(2):
        lines, errors = lines_of(start())
        assert lines == [*BOTH, "42"]
        assert "other users can write there" in errors
    assert not list(tiny.rglob("*.nb?"))
