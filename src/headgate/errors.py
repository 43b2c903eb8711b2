"""Everything that Headgate raises on purpose, in one tree.

HeadgateError
├── SqlError                text that is not accepted; has its file, line, column and a hint
│   ├── SqlSyntaxError      it is not SQL
│   ├── UnsupportedSql      it is SQL, but outside the language of standing queries
│   ├── UnknownName         no such stream, attribute or alias
│   ├── TypeMismatch        types that cannot be compared, a literal that does not fit
│   ├── InvalidPattern      a LIKE or RLIKE pattern that has no meaning, or another one, here
│   └── TooLarge            too long, too deep, too large a literal
├── ExpansionTooLarge       an exponential rewrite was estimated, and declined
├── QuerySetError           duplicate or unknown ids, a file of queries that cannot be read
│   └── QueriesRejected     a strict load met bad rows; has the errors
├── EventError              a file or table of events that cannot be read at all
│   └── EventsUnreachable   the file is missing, or its disk fails: a retry may succeed
├── SnapshotError           a snapshot that is damaged, missing or of another format
├── PipelineError           a pipeline or network file with a mistake; says the line
├── NetworkError            a network that is inconsistent, or has no capacity; says where
├── JobError                a streaming job that cannot start or continue
├── Unbounded               a query that bounded memory cannot answer; has the verdict
├── StateError              stored state that is damaged, or belongs to another query
├── Overflow                a count or sum that no longer fits its type
├── NotInstalled            libraries of an optional part are missing; says how to install them
└── UsageError              a request that makes no sense: no such index, which stream?

Messages say what is wrong, where, and what to do. `did_you_mean` writes the hint for a name that
does not exist. Names and texts of others stand in messages as they are: `make_printable` is for
whoever prints one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

MAX_MESSAGE_LENGTH = 400

# What a terminal obeys, shows as something else or cannot encode: C0 but tab and line feed, DEL and
# C1, separators of lines, overrides of the direction of writing, halves of surrogate pairs.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


class HeadgateError(Exception):
    """The base of all errors that Headgate raises on purpose.

    Catch it to handle whatever is wrong with queries, events, snapshots or jobs. Anything else that
    is raised is a bug.

    Examples
    --------
    >>> import headgate as hg
    >>> from headgate.schema import INT, Attribute
    >>> trades = hg.Stream("trades", (Attribute("price", INT),))
    >>> try:
    ...     hg.parse_where("prise > 3", trades)
    ... except hg.HeadgateError as error:
    ...     print(error)
    <text>:1:1: no attribute `prise` in stream trades; did you mean `price`?
    """


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a text: file, line and column. Lines and columns count from 1."""

    file: str | None = None
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file or '<text>'}:{self.line}:{self.column}"

    @staticmethod
    def of(text: str, offset: int, file: str | None = None) -> Position:
        r"""Return the line and column of a character offset.

        >>> str(Position.of("a\nbc", 3, "x.sql"))
        'x.sql:2:2'
        """
        line = text.count("\n", 0, offset) + 1
        return Position(file, line, offset - (text.rfind("\n", 0, offset) + 1) + 1)

    def after(self, start: Position) -> Position:
        """Return this position in a file in which the text begins at `start`."""
        # Only the first line of the text has something before it in the file.
        column = self.column + start.column - 1 if self.line == 1 else self.column
        return Position(start.file, self.line + start.line - 1, column)


class SqlError(HeadgateError):
    """Text that is not accepted: what is wrong, where, the offending text, and a hint."""

    def __init__(
        self,
        message: str,
        *,
        text: str = "",
        hint: str = "",
        position: Position | None = None,
        topic: str = "",
    ) -> None:
        super().__init__(message)
        is_long = len(message) > MAX_MESSAGE_LENGTH
        self.message = message[: MAX_MESSAGE_LENGTH - 1] + "…" if is_long else message
        self.text = shorten(text)
        self.hint = hint
        self.position = position or Position()
        # What errors are grouped by: the message, unless it holds names that differ.
        self.topic = topic or message

    def shift_to(self, start: Position) -> SqlError:
        """Return the same error in a file in which the text begins at `start`."""
        return type(self)(
            self.message,
            text=self.text,
            hint=self.hint,
            position=self.position.after(start),
            topic=self.topic,
        )

    def __str__(self) -> str:
        near = f" at `{self.text}`" if self.text and self.text not in self.message else ""
        return f"{self.position}: {self.message}{near}" + (f"; {self.hint}" if self.hint else "")


class SqlSyntaxError(SqlError):
    """The text is not SQL."""


class UnsupportedSql(SqlError):
    """The text is SQL, but outside the language of standing queries."""


class UnknownName(SqlError):
    """No such stream, attribute or alias."""


class TypeMismatch(SqlError):
    """Types that cannot be compared, or a literal that does not fit its type."""


class InvalidPattern(SqlError):
    """A LIKE or RLIKE pattern without a meaning, or one that RE2 cannot give it as Java does."""


class TooLarge(SqlError):
    """Text over the limits that keep parsing fast and safe."""


class ExpansionTooLarge(HeadgateError):
    """An exponential rewrite that was estimated first, and declined."""


class QuerySetError(HeadgateError):
    """Duplicate or unknown ids, or a file of queries that cannot be read."""


class QueriesRejected(QuerySetError):
    """A strict load that met bad rows; `errors` are theirs."""

    def __init__(self, message: str, errors: tuple[SqlError, ...] = ()) -> None:
        super().__init__(message)
        self.errors = errors


class EventError(HeadgateError):
    """A file or table of events that cannot be read at all."""


class EventsUnreachable(EventError):
    """A file of events that is missing, or whose disk fails; a retry may succeed."""


class SnapshotError(HeadgateError):
    """A snapshot that is damaged, missing, or written in another format."""


class PipelineError(HeadgateError):
    """A file that describes a pipeline or a network, with a mistake in it."""


class NetworkError(HeadgateError):
    """A network that is inconsistent, or has no capacity for a query; `about` is at fault."""

    def __init__(self, message: str, *, about: object = None) -> None:
        super().__init__(message)
        self.about = about


class JobError(HeadgateError):
    """A streaming job that cannot start or continue: its state, its output, or a failed batch."""


class Unbounded(HeadgateError):
    """A query that cannot be run in bounded memory, or for which that is not known.

    `verdict` is that of the analysis, a `headgate.stateful.analysis.verdict.Verdict`.
    """

    def __init__(self, message: str, verdict: object = None) -> None:
        super().__init__(message)
        self.verdict = verdict


class StateError(HeadgateError):
    """Stored state of a query that is damaged, or belongs to another query."""


class Overflow(HeadgateError):
    """A count or a sum that its type cannot hold; it is never wrapped around or rounded."""


class NotInstalled(HeadgateError, ImportError):
    """Libraries of an optional part of Headgate that are not installed."""


class UsageError(HeadgateError):
    """A request that makes no sense, such as an index that does not exist."""


def shorten(text: str, limit: int = 60) -> str:
    r"""Return the text as one line of at most `limit` characters.

    >>> shorten("a  >\n 3")
    'a > 3'
    """
    # Only a prefix is looked at: a text may have millions of characters, or lone surrogates.
    start = text[: 4 * limit].encode(errors="replace").decode()
    line = " ".join(start.replace("\0", "\ufffd").split())
    if len(line) <= limit and len(text) <= 4 * limit:
        return line
    return line[: limit - 1] + "…"


def make_printable(text: str) -> str:
    r"""Return the text with every character that a terminal would obey written as JSON escapes it.

    Tabs and line feeds stay. JSON stays the same JSON.

    >>> print(make_printable("a\x1b[31m"), make_printable('"\u202e"'))
    a\u001b[31m "\u202e"
    """
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return a hint that names the closest choice, or lists a few when none is close.

    >>> did_you_mean("prise", ["price", "side"])
    'did you mean `price`?'
    >>> did_you_mean("zzz", ["price", "side"])
    'there are `price`, `side`'
    """
    names = list(choices)
    # By lower case, so that a wrong case is close.
    folded = {name.lower(): name for name in names}
    # What is only the beginning of a name is meant to be that one.
    begun = [name for name in folded if len(word) > 2 and name.startswith(word.lower())]
    close = begun[:1] or get_close_matches(word.lower(), folded, n=1, cutoff=0.6)
    if close:
        return f"did you mean `{folded[close[0]]}`?"
    if not names:
        return "there are none"
    listed = ", ".join(f"`{name}`" for name in names[:6])
    return f"there are {listed}" + (f" and {len(names) - 6} more" if len(names) > 6 else "")
