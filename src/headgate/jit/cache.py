"""Compile a kernel once for all processes, and keep it in the user's cache directory.

Numba recompiles a kernel when its own file or the CPU changes, but does not notice a change in a
file whose kernels or constants it uses. Each package's compiled kernels therefore lie in a
directory that is named after a digest of all these sources.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import numba
from numba import njit
from numba.core import caching
from numba.core.compiler_lock import global_compiler_lock

from headgate.portable import lock_descriptor

DIRECTORY_PREFIX = "kernels-"
LOCK_FILE = ".compiling"
MAX_UNUSED_SECONDS = 30 * 24 * 3600
MAX_WAIT_SECONDS = 120  # for another process that compiles
POLL_SECONDS = 0.05

_compiling: set[Path] = set()  # the packages whose kernels this process compiles now

_numba_config: Any = numba.config
_FunctionCache: Any = caching.FunctionCache

_KERNEL = re.compile(rb"^@(?:inlined_)?kernel\b", re.MULTILINE)
_IMPORT = re.compile(rb"^from ([\w.]+) import (\([^)]*\)|.*)", re.MULTILINE)


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function with Numba on its first call; it releases the GIL while it runs."""
    directory = _cache_directory(_package_of(function.__module__))
    if directory is None:
        return njit(nogil=True)(function)
    before = _numba_config.CACHE_DIR  # Numba reads it when a function is declared
    _numba_config.CACHE_DIR = str(directory)
    try:
        compiled: Any = njit(nogil=True, cache=True)(function)
        if not _numba_config.DISABLE_JIT:
            compiled._cache = _ForgivingCache(function)
            compiled.compile = partial(_compile_in_turn, directory, compiled.compile)
        return compiled
    finally:
        _numba_config.CACHE_DIR = before


class _ForgivingCache(_FunctionCache):  # type: ignore[misc]
    """A kernel's cache that forgets what it cannot read, so that the kernel is compiled again.

    An index of Numba's pickles the types of arguments by the names of their modules: it cannot be
    read after one of these has moved, nor if the file is damaged.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled kernel for a signature; None if there is none that can be read."""
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:
            name = self._py_func.__qualname__
            logging.getLogger("headgate").warning(
                "compiling the kernel %s again: its cached form cannot be read (%s)", name, error
            )
            self.flush()
            return None


def _compile_in_turn(directory: Path, compile_kernel: Callable[[Any], Any], signature: Any) -> Any:
    """Compile a kernel while no other process compiles one of the same package.

    Workers that start together need the same kernels: one of them compiles, and the others then
    load what it has cached. They wait for a limited time only, and compile for themselves after it.
    """
    # Numba's own lock, so that there is no second one to be taken in another order
    with global_compiler_lock, ExitStack() as stack:
        # a kernel that calls others compiles them meanwhile, and has the file already
        if directory not in _compiling:
            _compiling.add(directory)
            stack.callback(_compiling.discard, directory)
            with suppress(OSError):  # a file system without locks
                file = stack.enter_context((directory / LOCK_FILE).open("a"))
                _wait_for_lock(file.fileno())
        return compile_kernel(signature)


def _wait_for_lock(descriptor: int) -> None:
    deadline = time.monotonic() + MAX_WAIT_SECONDS
    while not lock_descriptor(descriptor, wait=False) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)


def inlined_kernel(function: Callable[..., Any]) -> Any:
    """Compile a function into each kernel that calls it.

    A call would pass every array of every group, two kilobytes of them, in the innermost loop.
    """
    return njit(inline="always")(function)


@cache
def warn_before_compiling(package: str) -> None:
    """Warn, once in a process, if the kernels of a package must be compiled first."""
    directory = _cache_directory(package)
    if not _numba_config.DISABLE_JIT and (directory is None or not any(directory.rglob("*.nbc"))):
        where = "no place to keep them" if directory is None else "kept for the next time"
        logging.getLogger("headgate").warning(
            "compiling the matching kernels, which takes about half a minute; %s", where
        )


def _package_of(module: str) -> str:
    """Return the package that a kernel belongs to: the parent of its module or package `kernels`.

    >>> _package_of("headgate.sharing.kernels"), _package_of("headgate.matching.kernels.match")
    ('headgate.sharing', 'headgate.matching')
    """
    package = module.rpartition(".")[0] or __package__
    return package.removesuffix(".kernels")


@cache
def _cache_directory(package: str) -> Path | None:
    """Return where the compiled kernels of a package are kept; None if nothing can be written."""
    # a version of the sources has a directory of its own, so that versions can run side by side
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path(os.path.expanduser("~"), ".cache"))
    digest = hashlib.blake2b(package.encode(), digest_size=8)
    for _, source in sorted(_sources(package).items()):
        digest.update(source)
    directory = home / "headgate" / f"{DIRECTORY_PREFIX}{digest.hexdigest()}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        os.utime(directory)  # used now, so not deleted for a month
        _delete_unused(directory.parent)
    except OSError:
        return None
    return directory if os.access(directory, os.W_OK) else None


def _delete_unused(home: Path) -> None:
    """Delete the kernels of versions that nobody has used for a month."""
    for other in home.glob(f"{DIRECTORY_PREFIX}*"):
        if time.time() - other.stat().st_mtime > MAX_UNUSED_SECONDS:
            shutil.rmtree(other, ignore_errors=True)


def _sources(package: str) -> dict[str, bytes]:
    """Return the sources, by module, that the compiled kernels of a package depend on.

    These are `jit`, the package's modules with kernels, and the modules that they import. Imports
    are followed through modules with kernels, whose kernels become part of ours. From any other
    module only constants enter a kernel: it is read, but what it imports is not.
    """
    # a decorator or an intrinsic is part of every kernel
    sources = {module: _read(module) or b"" for module in _modules_in(__package__)}
    modules = [*_modules_in(package), *_modules_in(f"{package}.kernels")]
    pending = [module for module in modules if _KERNEL.search(_read(module) or b"")]
    while pending:
        module = pending.pop()
        source = None if module in sources else _read(module)
        if source is not None:
            sources[module] = source
            if _KERNEL.search(source):
                pending.extend(_imports(source, module.partition(".")[0]))
    return sources


def _modules_in(package: str) -> list[str]:
    """Return the names of the modules that lie directly in a package."""
    top, *parts = package.split(".")
    folder = files(top).joinpath(*parts)
    if not folder.is_dir():
        return []
    stems = (file.name.removesuffix(".py") for file in folder.iterdir() if ".py" in file.name)
    return [f"{package}.{stem}" for stem in stems if stem.isidentifier()]


def _imports(source: bytes, top: str) -> Iterator[str]:
    """Return the modules of ours that a source may import: `from module import module_or_name`."""
    for statement in _IMPORT.finditer(source):
        module = statement[1].decode()
        if module.partition(".")[0] in (top, "headgate"):
            yield module
            yield from (f"{module}.{name}" for name in re.findall(r"\w+", statement[2].decode()))


def _read(module: str) -> bytes | None:
    """Return the source of a module; None if there is no module of that name."""
    top, *parts, name = module.split(".")
    folder = files(top).joinpath(*parts)
    for file in (folder / f"{name}.py", folder / name / "__init__.py"):
        if file.is_file():
            return file.read_bytes()
    return None
