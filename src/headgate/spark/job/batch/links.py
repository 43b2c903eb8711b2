"""Which files Spark lists again, under another path, because a symbolic link leads back.

Spark follows symbolic links, so a loop makes it list a file some forty times. A file is left out if
its path can be shortened: a part of it that goes through a link is replaced by the way to the same
place without a link, from a directory on the path, and Spark lists that path too. Each step takes a
link away, so one path of each file stays. A link to what is not listed by itself is followed.

This depends on the path alone and not on what was read before, so that it is the same in every
batch and every replay.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice, takewhile
from pathlib import Path

GLOB_SIGNS = "*?[{"
MAX_SEARCHED_DIRECTORIES = 10_000  # for links that lead back
_ALTERNATIVES = re.compile(r"\{([^{}]*)\}")


def is_glob(path: str) -> bool:
    """Return whether a path is a pattern."""
    return any(sign in path for sign in GLOB_SIGNS)


@dataclass(frozen=True, slots=True)
class LinkFilter:
    """The files of a source that are listed again; pickled to the tasks.

    `root` are the parts of the directory that is walked, and `patterns` those of the path below it.
    `name_filter` is Spark's `pathGlobFilter`.
    """

    root: tuple[str, ...]
    patterns: tuple[str, ...]
    name_filter: str | None

    @staticmethod
    def from_source(path: Path, name_filter: str | None) -> LinkFilter:
        """Return the filter of a directory or pattern."""
        parts = path.parts
        # a directory that looks like a pattern is none
        root = parts if path.is_dir() else tuple(takewhile(lambda part: not is_glob(part), parts))
        return LinkFilter(root, parts[len(root) :], name_filter)

    def is_repeated(self, path: str) -> bool:
        """Return whether Spark lists the file of this path under another one, too."""
        parts = Path(path).parts
        start = len(self.root)
        real = os.path.realpath(os.path.join(*self.root))
        # most paths have no link, and one look shows it
        if os.path.realpath(path) == os.path.join(real, *parts[start:]):
            return False
        # by the number of parts so far: the real directory that they lead to
        walked = [real]
        for end in range(start + 1, len(parts) + 1):
            real = os.path.realpath(os.path.join(real, parts[end - 1]))
            for begin, directory in enumerate(walked, start):
                inside = _find_way(directory, real)
                if inside is None:
                    continue
                other = (*parts[:begin], *inside, *parts[end:])
                if other != parts and self._lists(other, inside):
                    return True
            walked.append(real)
        return False

    def find_loops(self) -> Iterator[str]:
        """Yield links to directories that lead to one above them, in the first directories.

        Spark follows each some forty times, and each time lists every file again.
        """
        if self.patterns:
            return
        walk = islice(os.walk(os.path.join(*self.root)), MAX_SEARCHED_DIRECTORIES)
        for place, folders, _ in walk:
            real = os.path.realpath(place)
            for name in folders:
                link = os.path.join(place, name)
                shown = os.path.islink(link) and not _is_hidden(name)
                if shown and _find_way(os.path.realpath(link), real) is not None:
                    yield link

    def _lists(self, parts: tuple[str, ...], added: Iterable[str]) -> bool:
        """Return whether Spark lists a path whose `added` parts it has not shown yet."""
        names = parts[len(self.root) :]
        if len(names) < len(self.patterns):
            return False
        # parts of a pattern stand for one part of a path each
        if not all(map(_matches, self.patterns, names)):
            return False
        if self.name_filter is not None and not _matches(self.name_filter, parts[-1]):
            return False
        return not any(_is_hidden(name) for name in added)


def _find_way(directory: str, place: str) -> tuple[str, ...] | None:
    """Return the parts of the way down from a directory to a place; None if it is elsewhere."""
    if place == directory:
        return ()
    prefix = directory.rstrip("/") + "/"
    return tuple(place.removeprefix(prefix).split("/")) if place.startswith(prefix) else None


def _is_hidden(name: str) -> bool:
    """Return whether Spark passes over a name."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _matches(pattern: str, name: str) -> bool:
    """Return whether a name matches a part of a pattern, as Hadoop reads it.

    >>> _matches("{a,b}*", "b1"), _matches("[^a]", "a")
    (True, False)
    """
    # innermost alternatives first, each as a pattern of its own
    group = _ALTERNATIVES.search(pattern)
    if group is not None:
        before, after = pattern[: group.start()], pattern[group.end() :]
        return any(_matches(f"{before}{each}{after}", name) for each in group[1].split(","))
    return fnmatchcase(name, pattern.replace("[^", "[!"))
