from collections.abc import Iterator

class error(Exception): ...  # noqa: N801

class Options:
    max_mem: int
    log_errors: bool

class _Match:
    def start(self) -> int: ...
    def end(self) -> int: ...

class _Regexp:
    programsize: int
    def search(self, text: str) -> _Match | None: ...
    def finditer(self, text: str) -> Iterator[_Match]: ...

class Set:
    @classmethod
    def SearchSet(cls, options: Options | None = None) -> Set: ...  # noqa: N802
    def Add(self, pattern: str) -> int: ...  # noqa: N802
    def Compile(self) -> None: ...  # noqa: N802
    def Match(self, text: str | bytes) -> list[int] | None: ...  # noqa: N802

def compile(pattern: str, options: Options | None = None) -> _Regexp: ...
