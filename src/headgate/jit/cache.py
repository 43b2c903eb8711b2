"""Kernels compiled once for all processes: kept in the user's cache, for this very source and CPU.

Numba notices a change in a kernel's own file, but not in a file whose kernels it calls. So the
directory of a package's kernels is named after its source and that of this package, which all
others call; the CPU is Numba's own care.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import time
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import numba
from numba import njit

PREFIX = "kernels-"
FORGOTTEN = 30 * 24 * 3600  # seconds

_settings: Any = numba.config


@cache
def cache_directory(package: str = __package__) -> Path | None:
    """Where the compiled kernels of a package are kept; None where nothing can be written."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path(os.path.expanduser("~"), ".cache"))
    digest = hashlib.blake2b(digest_size=8)
    packages = sorted({__package__, package})
    kernels = [source for one in packages for source in _sources(one)]
    for source in (*kernels, files("headgate.snapshot.arrays") / "atoms.py"):
        if source.name.endswith(".py"):
            digest.update(source.read_bytes())
    directory = home / "headgate" / f"{PREFIX}{digest.hexdigest()}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        os.utime(directory)
        _forget_old(directory.parent)
    except OSError:
        return None
    return directory if os.access(directory, os.W_OK) else None


def _sources(package: str) -> list[Traversable]:
    return sorted(files(package).iterdir(), key=lambda file: file.name)


def _forget_old(home: Path) -> None:
    """Delete the kernels of versions that nobody has used for a month."""
    for other in home.glob(f"{PREFIX}*"):
        if time.time() - other.stat().st_mtime > FORGOTTEN:
            shutil.rmtree(other, ignore_errors=True)


@cache
def announce(package: str = __package__) -> None:
    """Say so, once in a process, if the kernels of a package have to be compiled first."""
    directory = cache_directory(package)
    if not _settings.DISABLE_JIT and (directory is None or not any(directory.rglob("*.nbc"))):
        where = "no place to keep them" if directory is None else "kept for the next time"
        logging.getLogger("headgate").warning(
            "compiling the matching kernels, which takes about half a minute; %s", where
        )


def kernel(function: Callable[..., Any]) -> Any:
    """A function for Numba, which holds no lock of Python while it runs."""
    directory = cache_directory(function.__module__.rpartition(".")[0] or __package__)
    if directory is None:
        return njit(nogil=True)(function)
    before = _settings.CACHE_DIR  # Numba reads it when a function is declared
    _settings.CACHE_DIR = str(directory)
    try:
        return njit(nogil=True, cache=True)(function)
    finally:
        _settings.CACHE_DIR = before


def part_of_kernel(function: Callable[..., Any]) -> Any:
    """A function that becomes part of each kernel that calls it.

    A call would hand over every array of every group, two kilobytes of them, in the innermost loop.
    """
    return njit(inline="always")(function)
