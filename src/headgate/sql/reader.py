"""Reading WHERE clauses: fast where that is possible, through sqlglot where it is not."""

from __future__ import annotations

from headgate.predicate import Predicate
from headgate.schema import Stream
from headgate.sql import fast
from headgate.sql.scope import Scope
from headgate.sql.where import parse_condition


class WhereReader:
    """Reads the WHERE clauses of one stream; conditions seen before are remembered."""

    def __init__(self, stream: Stream) -> None:
        self.scope = Scope.of(stream)
        self._atoms: dict[str, Predicate] = {}

    def read(self, text: str) -> Predicate:
        """The predicate that the text means; an SqlError with its position when it means none."""
        found = fast.condition(text, self.scope, self._atoms)
        return parse_condition(text, self.scope) if found is None else found


def parse_where(text: str, stream: Stream) -> Predicate:
    """The predicate that a WHERE clause on one stream means (without the word WHERE).

    >>> from headgate.schema import INT, Attribute
    >>> from headgate.predicate import simplify
    >>> trades = Stream("trades", (Attribute("qty", INT),))
    >>> either = parse_where("qty > 3 AND qty <= 9", trades)
    >>> simplify(either) == parse_where("qty BETWEEN 4 AND 9", trades)
    True
    """
    return WhereReader(stream).read(text)
