"""Compile a kernel once for all processes, and keep it in the user's cache directory.

Numba recompiles a kernel when its own file or the CPU changes, but does not notice a change in a
file whose kernels or constants it uses. Each package's compiled kernels therefore lie in a
directory that is named after a digest of all these sources.

Numba unpickles what it finds there and hands it to LLVM, which ends the process over damaged
machine code. So the directory is one in which no other user can write (`user_cache`), and every
file begins with a digest that is compared before anything else of it is read.
"""

from __future__ import annotations

import hashlib
import logging
import pickle
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
from numba.core.options import DefaultOptions

from headgate.portable import lock_descriptor
from headgate.user_cache import is_unused, open_user_cache

DIRECTORY_PREFIX = "kernels-"
LOCK_FILE = ".compiling"
DIGEST_SIZE = 16
MAX_WAIT_SECONDS = 120  # for another process that compiles
POLL_SECONDS = 0.05

_compiling: set[Path] = set()  # the packages whose kernels this process compiles now

_numba_config: Any = numba.config
_FunctionCache: Any = caching.FunctionCache
_IndexDataCacheFile: Any = caching.IndexDataCacheFile

# Numba's own switch for reference counting, which is private: without it, kernels are slower. A
# kernel that leaves it open is compiled as the one is that happens to call it first.
_HAS_SWITCH = hasattr(DefaultOptions, "_nrt")
_COUNTED, _UNCOUNTED = ({"_nrt": counted} if _HAS_SWITCH else {} for counted in (True, False))

_KERNEL = re.compile(rb"^@(?:inlined_|plain_)?kernel\b", re.MULTILINE)
_IMPORT = re.compile(rb"^from ([\w.]+) import (\([^)]*\)|.*)", re.MULTILINE)


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function with Numba on its first call; it releases the GIL while it runs."""
    return _compile_on_first_call(function, **_COUNTED)


def plain_kernel(function: Callable[..., Any]) -> Any:
    """Compile a kernel that allocates nothing, without counting references to arrays.

    Numba counts a reference to every array of every group of arrays that an inlined function is
    given, by an atomic addition each: in the innermost loop of a match that took five times as long
    as the match itself. A kernel that makes an array cannot be compiled so; and one must not return
    an array, nor call a kernel that does, because whoever gets it counts on its being counted.
    """
    return _compile_on_first_call(function, **_UNCOUNTED)


def _compile_on_first_call(function: Callable[..., Any], **options: Any) -> Any:
    directory = _cache_directory(_package_of(function.__module__))
    if directory is None:
        return njit(nogil=True, **options)(function)
    before = _numba_config.CACHE_DIR  # Numba reads it when a function is declared
    _numba_config.CACHE_DIR = str(directory)
    try:
        compiled: Any = njit(nogil=True, cache=True, **options)(function)
        if not _numba_config.DISABLE_JIT:
            compiled._cache = _ForgivingCache(function)
            compiled.compile = partial(_compile_in_turn, directory, compiled.compile)
        return compiled
    finally:
        _numba_config.CACHE_DIR = before


class _ForgivingCache(_FunctionCache):  # type: ignore[misc]
    """A kernel's cache that forgets what it cannot read, so that the kernel is compiled again.

    A file may be damaged. And an index pickles the types of arguments by the names of their
    modules: it cannot be read after one of these has moved.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _DigestedFile(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled kernel for a signature; None if there is none that can be read."""
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:
            _note_once("compiling kernels again: their cached form cannot be read", error)
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled kernel, if that is possible."""
        try:
            super().save_overload(sig, data)
        except Exception as error:
            _note_once("compiled kernels are not kept", error)


_noted: set[str] = set()


def _note_once(message: str, error: Exception) -> None:
    """Warn, once in a process: what befalls one kernel mostly befalls them all."""
    if message not in _noted:
        _noted.add(message)
        logging.getLogger("headgate").warning("%s (%s)", message, error)


class _DigestedFile(_IndexDataCacheFile):  # type: ignore[misc]
    """An index and its entries, each behind a digest without which nothing of it is unpickled."""

    def _load_index(self) -> Any:
        try:
            stamp, overloads = self._read(self._index_path)
        except FileNotFoundError:
            return {}
        # of another version of the kernel's source
        return overloads if stamp == self._source_stamp else {}

    def _save_index(self, overloads: Any) -> None:
        self._write(self._index_path, (self._source_stamp, overloads))

    def _load_data(self, name: str) -> Any:
        return self._read(self._data_path(name))

    def _save_data(self, name: str, data: Any) -> None:
        self._write(self._data_path(name), data)

    def _read(self, path: str) -> Any:
        content = Path(path).read_bytes()
        digest, data = content[:DIGEST_SIZE], content[DIGEST_SIZE:]
        if digest != _compute_digest(path, data):
            raise ValueError(f"{path} is damaged")
        return pickle.loads(data)

    def _write(self, path: str, content: Any) -> None:
        data = self._dump(content)
        with self._open_for_write(path) as file:
            file.write(_compute_digest(path, data) + data)


def _compute_digest(path: str, data: bytes) -> bytes:
    # of its name too: another kernel's file in this place would compute something else
    named = Path(path).name.encode() + b"\0" + data
    return hashlib.blake2b(named, digest_size=DIGEST_SIZE).digest()


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
    # a version of the sources has a directory of its own, so that versions can run side by side;
    # one of Numba has, too, since it pickles its own classes
    digest = hashlib.blake2b(f"{package} {numba.__version__}".encode(), digest_size=8)
    for _, source in sorted(_sources(package).items()):
        digest.update(source)
    directory = open_user_cache(f"{DIRECTORY_PREFIX}{digest.hexdigest()}")
    if directory is not None:
        _delete_unused(directory.parent)
    return directory


def _delete_unused(home: Path) -> None:
    """Delete the kernels of versions that were not used for a month."""
    for other in home.glob(f"{DIRECTORY_PREFIX}*"):
        if is_unused(other):
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
