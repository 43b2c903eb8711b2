class error(Exception): ...  # noqa: N801

class Options:
    max_mem: int
    log_errors: bool

class _Match: ...

class _Regexp:
    def search(self, text: str) -> _Match | None: ...

def compile(pattern: str, options: Options | None = None) -> _Regexp: ...
