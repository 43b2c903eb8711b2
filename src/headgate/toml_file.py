"""A TOML file that is read key by key: every mistake is an error with its line and a hint."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from headgate.errors import PipelineError, did_you_mean, shorten
from headgate.toml_lines import Place, lines_of

Value = TypeVar("Value")

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


def read_toml(path: Path, page: str = "docs/reference/pipeline.md") -> Table:
    """The table at the root of a file, whose keys a page explains."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise PipelineError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise PipelineError(f"{path}: is not UTF-8 ({error.reason})") from None
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.fullmatch(r"(.*) \(at line (\d+), column \d+\)", str(error))
        said, line = (place[1], place[2]) if place else (str(error), str(text.count("\n") + 1))
        raise PipelineError(f"{path}:{line}: not TOML: {said}") from None
    return Table(path, page, lines_of(text), (), values)


class Table:
    """A table whose keys are taken one after the other; at the `end`, none may be left."""

    def __init__(
        self,
        path: Path,
        page: str,
        lines: Mapping[Place, int],
        place: Place,
        values: dict[str, Any],
    ) -> None:
        self.path = path
        self._page = page
        self._lines = lines
        self._place = place
        self._values = values
        self._asked: list[str] = []

    @property
    def title(self) -> str:
        """The table as its header is written."""
        name = ".".join(part for part in self._place if isinstance(part, str))
        return f"[[{name}]]" if self._place and isinstance(self._place[-1], int) else f"[{name}]"

    @property
    def keys(self) -> list[str]:
        return list(self._values)

    def __contains__(self, key: str) -> bool:
        self._asked.append(key)
        return key in self._values

    def table(self, key: str, *, required: bool = False) -> Table:
        """The table of that name; an empty one if it is not there."""
        inner = Table(self.path, self._page, self._lines, (*self._place, key), {})
        if required and key not in self._values:
            near = [word for word in self._values if did_you_mean(word, [key]).startswith("did")]
            if near:
                hint = f"did you mean {inner.title}?"
                raise self.error(near[0], f"`{near[0]}` has no meaning", hint)
            message = f"{self.path}: there is no {inner.title}; {self._page} shows one"
            raise PipelineError(message)
        inner._values = self._take(key, dict, f"a table, written {inner.title}", {})
        return inner

    def elements(self, key: str) -> list[Table]:
        """The tables of an array; none if it is not there."""
        found: list[Any] = self._take(key, list, f"tables, each written [[{key}]]", [])
        for number, item in enumerate(found):
            if not isinstance(item, dict):
                hint = f"give tables, each written [[{key}]]"
                raise self.error((key, number), f"`{key}` holds {shorten(repr(item))}", hint)
        places = ((*self._place, key, number) for number in range(len(found)))
        return [
            Table(self.path, self._page, self._lines, place, item)
            for place, item in zip(places, found, strict=True)
        ]

    def tables(self) -> dict[str, Table]:
        """All that is in the table, which must be tables."""
        return {key: self.table(key) for key in self._values}

    def text(self, key: str, default: str | None = None) -> str:
        found = self.optional_text(key) or default
        if found is None:
            raise self.lacks(key)
        return found

    def optional_text(self, key: str) -> str | None:
        found = self._take(key, str, 'a text, as in "…"', None)
        if found == "":
            raise self.error(key, f"`{key}` is empty", "leave it out, or give it a value")
        return found

    def choice(self, key: str, choices: Sequence[str], default: str | None = None) -> str:
        found = self.text(key, default)
        if found not in choices:
            raise self.error(key, f"no {key} `{shorten(found)}`", did_you_mean(found, choices))
        return found

    def whole(self, key: str, default: int, *, least: int = 0) -> int:
        found = self.optional_whole(key, least=least)
        return default if found is None else found

    def optional_whole(self, key: str, *, least: int = 0) -> int | None:
        found = self._take(key, int, "a whole number", None)
        if found is not None and found < least:
            raise self.error(key, f"`{key}` is {found}", f"the least is {least}")
        return found

    def number(self, key: str, default: float | None = None) -> float:
        """A number, whole or not."""
        found = default if (given := self.value(key)) is None else given
        if found is None:
            raise self.lacks(key)
        if type(found) not in (int, float):
            raise self.error(key, f"`{key}` is {shorten(repr(found))}", "give a number")
        return float(found)

    def is_text(self, key: str) -> bool:
        return isinstance(self._values.get(key), str)

    def texts(self, key: str) -> tuple[str, ...]:
        found: list[Any] = self._take(key, list, 'a list of texts, as in ["a", "b"]', [])
        for number, item in enumerate(found):
            if not isinstance(item, str) or not item:
                hint = 'give texts, as in ["a", "b"]'
                raise self.error((key, number), f"`{key}` holds {item!r}", hint)
        return tuple(found)

    def values(self, key: str) -> list[Any]:
        """A list of whatever stands there."""
        found: list[Any] = self._take(key, list, "a list, as in [1, 2]", [])
        return found

    def value(self, key: str) -> Any:
        """Whatever stands there."""
        self._asked.append(key)
        return self._values.get(key)

    def flag(self, key: str) -> bool:
        return bool(self._take(key, bool, "true or false", False))

    def seconds(self, key: str) -> float | None:
        """A length of time."""
        found = self.optional_text(key)
        return None if found is None else self.duration(key, found)

    def duration(self, key: str, text: str) -> float:
        parts = _DURATION.fullmatch(text)
        if parts is None or parts[2] not in _UNITS:
            hint = 'write it as in "500 ms", "1 second", "10 minutes" or "2 hours"'
            raise self.error(key, f"`{key}` is `{shorten(text)}`, not a length of time", hint)
        return float(parts[1]) * _UNITS[parts[2]]

    def optional_place(self, key: str) -> Path | None:
        """A path, from where the file is."""
        found = self.optional_text(key)
        return None if found is None else self.located(key, found)

    def place(self, key: str) -> Path:
        return self.located(key, self.text(key))

    def located(self, key: str, text: str) -> Path:
        scheme = _SCHEME.match(text)
        if scheme and scheme[1].lower() != "file":
            raise self.error(
                key,
                f"`{key}` is at {scheme[1]}://, which cannot be reached",
                "give a path that the driver and all workers have, mounted if need be",
            )
        local = "/" + text[scheme.end() :].lstrip("/") if scheme else text
        return (self.path.absolute().parent / Path(local).expanduser()).resolve()

    def settings(self) -> dict[str, str]:
        """All that is in the table, by dotted names, as texts."""
        self._asked += list(self._values)
        return dict(_flat("", self._values))

    def end(self) -> None:
        """An error for a key that nobody asked for."""
        for key in self._values:
            if key not in self._asked:
                where = f" in {self.title}" if self._place else ""
                hint = did_you_mean(key, dict.fromkeys(self._asked))
                raise self.error(key, f"`{key}` has no meaning{where} here", hint)

    def lacks(self, key: str) -> PipelineError:
        for written in self._values:
            hint = did_you_mean(written, [key])
            if written not in self._asked and hint.startswith("did"):
                return self.error(written, f"`{written}` has no meaning in {self.title}", hint)
        owner = self.title if self._place else "the file"
        return self.error((), f"{owner} has no `{key}`", f"{self._page} tells its meaning")

    def error(self, key: str | Place, message: str, hint: str) -> PipelineError:
        """A mistake at a key of the table, or deeper inside it."""
        place = (key,) if isinstance(key, str) else key
        return self.at(place, f"{message}; {hint}")

    def at(self, place: Place, error: object) -> PipelineError:
        """What others found wrong, with the line of what it is about."""
        return PipelineError(f"{self.path}:{self.line_of(place)}: {error}")

    def line_of(self, place: Place) -> int:
        """The line of a place in the table, or as near as can be."""
        whole = (*self._place, *place)
        while whole and whole not in self._lines:
            whole = whole[:-1]
        return self._lines.get(whole, 1)

    def _take(
        self, key: str, kind: Callable[..., Value], what: str, default: Value | Any
    ) -> Value | Any:
        self._asked.append(key)
        if key not in self._values:
            return default
        found = self._values[key]
        if type(found) is not kind:  # bool is an int, but not a whole number
            raise self.error(key, f"`{key}` is {shorten(repr(found))}", f"give {what}")
        return found


def _flat(prefix: str, values: dict[str, Any]) -> list[tuple[str, str]]:
    found = []
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            found += _flat(f"{name}.", value)
        else:
            found.append((name, str(value).lower() if isinstance(value, bool) else str(value)))
    return found
