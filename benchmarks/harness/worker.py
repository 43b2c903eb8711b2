"""The far end of a `Process`: serves commands, a line of JSON for each line of JSON that it reads.

It runs as a script and imports nothing of Headgate itself, because the finder below must be in
place before anything imports the package that it is about.

    worker.py PACKAGE MODULE FUNCTION ARGUMENT…

FUNCTION of MODULE is called with the arguments and gives the commands by name. PACKAGE, unless
empty, is imported from its Python sources.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from types import ModuleType
from typing import Any, TextIO

Commands = dict[str, Callable[[], Any]]


class PurePython(MetaPathFinder):
    """Finds the modules of one package, and among their files only the sources.

    `sqlglot[c]` lays a compiled `parser.so` beside `parser.py`, and Python prefers the former.
    """

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] != self.package:
            return None
        # Finders that know the suffix of sources only, one for each directory of the path.
        places = (FileFinder(p, (SourceFileLoader, SOURCE_SUFFIXES)) for p in path or sys.path)
        specs = (place.find_spec(fullname, target) for place in places)
        return next((spec for spec in specs if spec is not None), None)


def serve(commands: Commands, requests: Iterable[str], replies: TextIO) -> None:
    """Answer each request until there are no more; a failure is an answer, too."""
    for request in requests:
        try:
            reply = {"value": commands[json.loads(request)]()}
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), file=replies, flush=True)


def main(package: str, module: str, function: str, *arguments: str) -> None:
    if package:
        # Before Python's own finders, which prefer compiled modules.
        sys.meta_path.insert(0, PurePython(package))
    commands = getattr(import_module(module), function)(*arguments)
    serve(commands, sys.stdin, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
