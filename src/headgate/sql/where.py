"""WHERE clauses: fast where that is possible, through sqlglot where it is not."""

from __future__ import annotations

from headgate.predicate import Predicate
from headgate.schema import Stream
from headgate.sql.binder import parse_condition
from headgate.sql.fast_path import FastPath
from headgate.sql.query import Source
from headgate.sql.scope import Scope


class WhereReader:
    """A reader of the WHERE clauses of one stream; it remembers the atoms that it has seen.

    `sources` is the FROM of all queries on the stream, which share it.
    """

    def __init__(self, stream: Stream) -> None:
        self.sources = (Source(stream, stream.name),)
        self.scope = Scope.of(stream)
        self._fast_path = FastPath(self.scope)

    def read(self, text: str) -> Predicate:
        """Return the predicate that the text means; raise an SqlError where it means none."""
        plain = self.read_plain(text)
        return parse_condition(text, self.scope) if plain is None else plain

    def read_plain(self, text: str) -> Predicate | None:
        """Return the predicate of a plain condition; None where the fast path declines."""
        return self._fast_path.parse(text)


def parse_where(text: str, stream: Stream) -> Predicate:
    """Return the predicate that a WHERE clause on one stream means.

    Parameters
    ----------
    text
        The condition, without the word WHERE.
    stream
        The stream whose attributes the condition names.

    Returns
    -------
    Predicate
        The condition with every name resolved and every literal typed.

    Raises
    ------
    SqlError
        Where the text is no condition on this stream; the error has the line and the column.

    Examples
    --------
    >>> from headgate.predicate import simplify
    >>> from headgate.schema import INT, Attribute
    >>> trades = Stream("trades", (Attribute("qty", INT),))
    >>> between = parse_where("qty > 3 AND qty <= 9", trades)
    >>> simplify(between) == parse_where("qty BETWEEN 4 AND 9", trades)
    True
    """
    return WhereReader(stream).read(text)
