"""A TOML file that is read key by key: every mistake is an error with its line and a hint."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from headgate.errors import PipelineError, did_you_mean, shorten

Value = TypeVar("Value")

# Seconds by unit, in all its spellings.
_UNITS = {
    unit: seconds
    for units, seconds in (
        ("ms millisecond milliseconds", 0.001),
        ("s second seconds", 1.0),
        ("min minute minutes", 60.0),
        ("h hour hours", 3600.0),
    )
    for unit in units.split()
}
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.ASCII)
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+)://?", re.ASCII | re.IGNORECASE)

MAX_NESTING = 100  # tables and lists inside one another, or parts of a dotted key
MAX_WHOLE_NUMBER = 2**31 - 1  # unless a key allows more: what Spark takes for most of its numbers
MAX_SECONDS = 100 * 365 * 86_400  # of a length of time: 100 years

KeyPath = tuple[str | int, ...]

# Strings in triple quotes before other strings, then comments, signs, and all else as words.
_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\''
    r"|\#[^\n]*|[\[\]{}=,.\n]|[^\s\[\]{}=,.\#\"\']+",
    re.DOTALL,
)
_AFTER_A_VALUE = (",", "]", "}", "\n")


def read_toml(path: Path, page: str = "docs/reference/pipeline.md") -> TomlTable:
    """Read a file; return its root table, whose keys a page of the documentation explains."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise PipelineError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise PipelineError(f"{path}: is not UTF-8 ({error.reason})") from None
    # Python's own reader recurses as deep as a text is nested.
    if line_too_deep := _find_deep_nesting(text):
        raise PipelineError(
            f"{path}:{line_too_deep}: not TOML that can be read: "
            f"it is nested more than {MAX_NESTING} deep"
        )
    try:
        values = tomllib.loads(text)
    # Not a TOMLDecodeError where a number has thousands of digits.
    except ValueError as error:
        # `tomllib` says the place in its message only, or that it is the end of the file.
        place = re.fullmatch(r"(.*) \(at line (\d+), column \d+\)", str(error))
        message, line = (place[1], place[2]) if place else (str(error), str(text.count("\n") + 1))
        raise PipelineError(f"{path}:{line}: not TOML: {message}") from None
    return TomlTable(path, page, find_lines(text), (), values)


class TomlTable:
    """A table whose keys are read one by one, each with its type checked.

    `check_all_used` refuses what was not read. Every error has the line of what it is about.
    """

    def __init__(
        self,
        path: Path,
        page: str,
        lines: Mapping[KeyPath, int],
        place: KeyPath,
        values: dict[str, Any],
    ) -> None:
        self.path = path
        self._page = page
        self._lines = lines
        self._place = place
        self._values = values
        # The keys that were read: what is not among them is refused, and hints name them.
        self._used: list[str] = []

    @property
    def title(self) -> str:
        """The header of the table as it is written."""
        name = ".".join(part for part in self._place if isinstance(part, str))
        return f"[[{name}]]" if self._place and isinstance(self._place[-1], int) else f"[{name}]"

    @property
    def keys(self) -> list[str]:
        return list(self._values)

    def __contains__(self, key: str) -> bool:
        self._used.append(key)
        return key in self._values

    def get_table(self, key: str, *, required: bool = False) -> TomlTable:
        """Return the table of that name; an empty one if there is none."""
        inner = TomlTable(self.path, self._page, self._lines, (*self._place, key), {})
        if required and key not in self._values:
            # A key that is nearly the missing one is probably a misspelling of it.
            near = [word for word in self._values if did_you_mean(word, [key]).startswith("did")]
            if near:
                hint = f"did you mean {inner.title}?"
                raise self.make_error(near[0], f"`{near[0]}` has no meaning", hint)
            message = f"{self.path}: there is no {inner.title}; {self._page} shows one"
            raise PipelineError(message)
        inner._values = self._take(key, dict, f"a table, written {inner.title}", {})
        return inner

    def get_array(self, key: str) -> list[TomlTable]:
        """Return the tables of an array, written [[key]]; none if there are none."""
        items: list[Any] = self._take(key, list, f"tables, each written [[{key}]]", [])
        for number, item in enumerate(items):
            if not isinstance(item, dict):
                hint = f"give tables, each written [[{key}]]"
                raise self.make_error((key, number), f"`{key}` holds {shorten(repr(item))}", hint)
        places = ((*self._place, key, number) for number in range(len(items)))
        return [
            TomlTable(self.path, self._page, self._lines, place, item)
            for place, item in zip(places, items, strict=True)
        ]

    def get_tables(self) -> dict[str, TomlTable]:
        """Return everything in the table by key; all of it must be tables."""
        return {key: self.get_table(key) for key in self._values}

    def get_text(self, key: str, default: str | None = None) -> str:
        """Return a text that is not empty; a missing one without default is an error."""
        value = self.get_optional_text(key) or default
        if value is None:
            raise self.make_missing_error(key)
        return value

    def get_optional_text(self, key: str) -> str | None:
        """Return a text that is not empty, or None if there is none."""
        value = self._take(key, str, 'a text, as in "…"', None)
        if value == "":
            raise self.make_error(key, f"`{key}` is empty", "leave it out, or give it a value")
        if value is not None and "\0" in value:
            raise self.make_nul_error(key, key)
        return value

    def get_choice(self, key: str, choices: Sequence[str], default: str | None = None) -> str:
        """Return a text that is one of some choices."""
        value = self.get_text(key, default)
        if value not in choices:
            raise self.make_error(key, f"no {key} `{shorten(value)}`", did_you_mean(value, choices))
        return value

    def get_integer(
        self, key: str, default: int, *, least: int = 0, limit: int = MAX_WHOLE_NUMBER
    ) -> int:
        """Return a whole number from the least to the limit."""
        value = self.get_optional_integer(key, least=least, limit=limit)
        return default if value is None else value

    def get_optional_integer(
        self, key: str, *, least: int = 0, limit: int = MAX_WHOLE_NUMBER
    ) -> int | None:
        """Return a whole number from the least to the limit, or None if there is none."""
        value = self._take(key, int, "a whole number", None)
        if value is not None and not least <= value <= limit:
            hint = f"the least is {least}" if value < least else f"the most is {limit:,}"
            raise self.make_error(key, f"`{key}` is {shorten(str(value))}", hint)
        return value

    def get_number(self, key: str, default: float | None = None) -> float:
        """Return a number, whole or not; a missing one without default is an error."""
        value = default if (written := self.get_value(key)) is None else written
        if value is None:
            raise self.make_missing_error(key)
        if type(value) not in (int, float):
            raise self.make_error(key, f"`{key}` is {shorten(repr(value))}", "give a number")
        try:
            return float(value)
        except OverflowError:
            message = f"`{key}` is {shorten(repr(value))}"
            raise self.make_error(key, message, "give a smaller number") from None

    def is_text(self, key: str) -> bool:
        """Return whether a key has a text."""
        return isinstance(self._values.get(key), str)

    def get_texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts, none of them empty."""
        items: list[Any] = self._take(key, list, 'a list of texts, as in ["a", "b"]', [])
        for number, item in enumerate(items):
            if not isinstance(item, str) or not item:
                hint = 'give texts, as in ["a", "b"]'
                raise self.make_error((key, number), f"`{key}` holds {item!r}", hint)
            if "\0" in item:
                raise self.make_nul_error(key, key, number)
        return tuple(items)

    def get_values(self, key: str) -> list[Any]:
        """Return a list of values of any types."""
        items: list[Any] = self._take(key, list, "a list, as in [1, 2]", [])
        return items

    def get_value(self, key: str) -> Any:
        """Return a value of any type, or None."""
        self._used.append(key)
        return self._values.get(key)

    def get_flag(self, key: str) -> bool:
        """Return true or false; false if it is left out."""
        return bool(self._take(key, bool, "true or false", False))

    def get_seconds(self, key: str) -> float | None:
        """Return a length of time in seconds, or None if there is none."""
        value = self.get_optional_text(key)
        return None if value is None else self.parse_duration(key, value)

    def parse_duration(self, key: str, text: str) -> float:
        """Return the seconds of a text such as "10 minutes"."""
        parts = _DURATION.fullmatch(text)
        if parts is None or parts[2] not in _UNITS:
            hint = 'write it as in "500 ms", "1 second", "10 minutes" or "2 hours"'
            raise self.make_error(key, f"`{key}` is `{shorten(text)}`, not a length of time", hint)
        seconds = float(parts[1]) * _UNITS[parts[2]]
        if seconds > MAX_SECONDS:
            hint = f"the most is {MAX_SECONDS // 3600:,} hours"
            raise self.make_error(key, f"`{key}` is `{shorten(text)}`", hint)
        return seconds

    def get_optional_path(self, key: str) -> Path | None:
        """Return a path, relative to the directory of the file, or None if there is none."""
        value = self.get_optional_text(key)
        return None if value is None else self.resolve_path(key, value)

    def get_path(self, key: str) -> Path:
        """Return a path, relative to the directory of the file."""
        return self.resolve_path(key, self.get_text(key))

    def resolve_path(self, key: str, text: str) -> Path:
        """Return an absolute path; a location that is not on a file system is an error."""
        scheme = _SCHEME.match(text)
        if scheme and scheme[1].lower() != "file":
            raise self.make_error(
                key,
                f"`{key}` is at {scheme[1]}://, which cannot be read",
                "give a path that the driver and all workers can read, mounted if need be",
            )
        # `file:` is taken off; whatever its number of slashes, the path is absolute.
        local = "/" + text[scheme.end() :].lstrip("/") if scheme else text
        try:
            path = (self.path.absolute().parent / Path(local).expanduser()).resolve()
            path.is_dir()  # too long a name, or no permission, is an error here
        # A RuntimeError is a link that leads to itself, or the home of a user that is not there.
        except (OSError, RuntimeError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            message = f"`{key}` cannot be used as a path: {reason}"
            raise self.make_error(key, message, "give another") from None
        return path

    def get_settings(self) -> dict[str, str]:
        """Return everything in the table as texts, by dotted names."""
        self._used += list(self._values)
        return dict(self._flatten((), self._values))

    def get_options(self) -> dict[str, str]:
        """Return everything in the table as texts; a table inside it is an error."""
        for key, value in self._values.items():
            if isinstance(value, dict):
                raise self._make_setting_error((key,), "a table")
        return self.get_settings()

    def _flatten(self, place: tuple[str, ...], values: dict[str, Any]) -> list[tuple[str, str]]:
        flat = []
        for key, value in values.items():
            inner = (*place, key)
            if isinstance(value, dict):
                flat += self._flatten(inner, value)
            elif isinstance(value, list):
                raise self._make_setting_error(inner, "a list")
            elif "\0" in (text := str(value)):
                raise self.make_nul_error(".".join(inner), *inner)
            else:
                flat.append((".".join(inner), text.lower() if isinstance(value, bool) else text))
        return flat

    def _make_setting_error(self, place: tuple[str, ...], kind: str) -> PipelineError:
        message = f"`{'.'.join(place)}` in {self.title} is {kind}"
        return self.make_error(place, message, "an option is a text, a number, true or false")

    def check_all_used(self) -> None:
        """Raise an error for a key that was not read."""
        for key in self._values:
            if key not in self._used:
                where = f" in {self.title}" if self._place else ""
                hint = did_you_mean(key, dict.fromkeys(self._used))
                raise self.make_error(key, f"`{key}` has no meaning{where} here", hint)

    def make_missing_error(self, key: str) -> PipelineError:
        """Return the error for a missing key; a similar one that was not read may be meant."""
        # A key that was not read and that is close to the missing one is the likely mistake.
        for written in self._values:
            hint = did_you_mean(written, [key])
            if written not in self._used and hint.startswith("did"):
                return self.make_error(written, f"`{written}` has no meaning in {self.title}", hint)
        owner = self.title if self._place else "the file"
        return self.make_error((), f"{owner} has no `{key}`", f"{self._page} explains it")

    def make_nul_error(self, name: str, *place: str | int) -> PipelineError:
        """Return the error for a text that no file system and no process takes."""
        return self.make_error(place, f"`{name}` holds a NUL character", "leave it out of the text")

    def make_error(self, key: str | KeyPath, message: str, hint: str) -> PipelineError:
        """Return an error at a key of the table, or deeper inside it."""
        place = (key,) if isinstance(key, str) else key
        return self.locate_error(place, f"{message}; {hint}")

    def locate_error(self, place: KeyPath, error: object) -> PipelineError:
        """Return an error of another reader with the line of what it is about."""
        return PipelineError(f"{self.path}:{self.get_line(place)}: {error}")

    def get_line(self, place: KeyPath) -> int:
        """Return the line of a key or element, or of the nearest one that contains it."""
        whole = (*self._place, *place)
        # Inner values may have no line of their own: then the key that holds them has.
        while whole and whole not in self._lines:
            whole = whole[:-1]
        return self._lines.get(whole, 1)

    def _take(
        self, key: str, kind: Callable[..., Value], expected: str, default: Value | Any
    ) -> Value | Any:
        self._used.append(key)
        if key not in self._values:
            return default
        value = self._values[key]
        if type(value) is not kind:  # bool is an int, but not a whole number
            raise self.make_error(key, f"`{key}` is {shorten(repr(value))}", f"give {expected}")
        return value


def find_lines(text: str) -> Mapping[KeyPath, int]:
    r"""Return the line of each key and element of a TOML text, which `tomllib` does not tell.

    A path leads there from the root: names of keys, and positions in arrays.

    >>> lines = find_lines('a = 1\n[[b]]\nc.d = [\n2]')
    >>> lines[("a",)], lines[("b", 0)], lines[("b", 0, "c", "d")], lines[("b", 0, "c", "d", 0)]
    (1, 2, 3, 4)
    """
    return _LineFinder(text).read()


class _LineFinder:
    """Goes through the tokens once, and notes the line of each key and element."""

    def __init__(self, text: str) -> None:
        self._tokens = [*_tokenize(text), ("\n", 0)]
        self._at = 0
        self._lines_by_key: dict[KeyPath, int] = {}
        # By array of tables: how many of its tables were met so far.
        self._counts: dict[KeyPath, int] = {}

    def read(self) -> Mapping[KeyPath, int]:
        table: KeyPath = ()
        while self._at < len(self._tokens):
            token, line = self._tokens[self._at]
            if token == "\n":
                self._at += 1
            elif token == "[":
                table = self._read_header(line)
            else:
                self._read_pair(table)
        return self._lines_by_key

    def _read_header(self, line: int) -> KeyPath:
        self._at += 1
        is_element = self._skip("[")
        *names, last = self._read_key()
        table: KeyPath = ()
        # A name that leads through an array of tables means its latest one.
        for name in names:
            table = self._find_latest(self._mark((*table, name), line))
        table = self._mark((*table, last), line)
        if is_element:
            number = self._counts.get(table, 0)
            self._counts[table] = number + 1
            table = self._mark((*table, number), line)
        while self._skip("]"):
            pass
        return table

    def _find_latest(self, table: KeyPath) -> KeyPath:
        """Return the last table of an array of tables."""
        count = self._counts.get(table)
        return table if count is None else (*table, count - 1)

    def _read_pair(self, table: KeyPath) -> None:
        line = self._tokens[self._at][1]
        for name in self._read_key():
            table = self._mark((*table, name), line)
        self._skip("=")
        self._read_value(table)

    def _read_key(self) -> list[str]:
        """Return the names up to `=` or `]`."""
        names = []
        while (token := self._tokens[self._at][0]) not in ("=", "]"):
            if token != ".":
                names.append(_unquote_key(token))
            self._at += 1
        return names

    def _read_value(self, place: KeyPath) -> None:
        # Arrays and inline tables are entered; of any other value only the end matters.
        if self._skip("["):
            number = 0
            while not self._skip_closing("]"):
                self._read_value(self._mark((*place, number), self._tokens[self._at][1]))
                number += 1
        elif self._skip("{"):
            while not self._skip_closing("}"):
                self._read_pair(place)
        else:
            while self._tokens[self._at][0] not in _AFTER_A_VALUE:
                self._at += 1  # 1.5 is several tokens, and so is a date with a time

    def _mark(self, place: KeyPath, line: int) -> KeyPath:
        self._lines_by_key.setdefault(place, line)
        return place

    def _skip_closing(self, sign: str) -> bool:
        """Return whether an array or inline table ends here; skip what separates elements."""
        while self._tokens[self._at][0] in (",", "\n"):
            self._at += 1
        return self._skip(sign)

    def _skip(self, sign: str) -> bool:
        is_next = self._at < len(self._tokens) and self._tokens[self._at][0] == sign
        self._at += is_next
        return is_next


def _find_deep_nesting(text: str) -> int | None:
    """Return the line on which brackets or dots nest too deeply; None if they do nowhere."""
    depth = dots = 0
    for token, line in _tokenize(text):
        depth += (token in ("[", "{")) - (token in ("]", "}"))
        # Dots make a key of parts, up to the next sign of another kind.
        dots = dots + 1 if token == "." else 0 if token in ("=", ",", "\n") else dots
        if max(depth, dots) > MAX_NESTING:
            return line
    return None


def _tokenize(text: str) -> Iterator[tuple[str, int]]:
    line, before = 1, 0
    for match in _TOKEN.finditer(text):
        # Lines are counted from token to token, so that the text is passed over once.
        line += text.count("\n", before, match.start())
        before = match.start()
        if not match[0].startswith("#"):
            yield match[0], line


def _unquote_key(token: str) -> str:
    """Return a key without quotes and escapes."""
    if token[0] not in "\"'":
        return token
    # TOML's own reader undoes the escapes.
    (name,) = tomllib.loads(f"{token} = 0")
    return name
