"""Random CREATE STREAM, CREATE AGGREGATE and CREATE QUERY statements, as text."""

from __future__ import annotations

from headgate.schema import Attribute, Stream
from tests.boundaries import STREAM
from tests.strategies import Clauses, Dice, pick

ALIASES = ("x", "y", "Left Side", "select", "a`b")
FUNCTIONS = ("COUNT", "SUM", "MIN", "MAX", "AVG", "MEDIAN", "geo_mean", "`Any Of`", "STDDEV")
AGGREGATES = """
CREATE AGGREGATE geo_mean (DOUBLE) RETURNS DOUBLE ALGEBRAIC;
CREATE AGGREGATE `any of` (DECIMAL(9, 2)) RETURNS TIMESTAMP DISTRIBUTIVE DUPLICATE INSENSITIVE;
CREATE AGGREGATE stddev (INT) RETURNS DOUBLE HOLISTIC DUPLICATE SENSITIVE;
"""


class Statements:
    """A schema of two streams and three aggregates, and queries over it."""

    def __init__(self, dice: Dice) -> None:
        self.dice = dice
        self.streams = [self.stream("trades"), self.stream("Order Book")]

    def stream(self, name: str) -> Stream:
        """Some of the attributes of `STREAM`, at least one of them a number."""
        chosen = [a for a in STREAM if self.dice.below(2) or a.name == "qty"]
        return Stream(name, tuple(chosen))

    def schema(self) -> str:
        return "\n".join(self.create_stream(stream) for stream in self.streams) + AGGREGATES

    def create_stream(self, stream: Stream) -> str:
        lines = ", ".join(self.attribute(attribute) for attribute in stream)
        return f"CREATE STREAM {quoted(stream.name)} ({lines});"

    def attribute(self, attribute: Attribute) -> str:
        text = f"{attribute.name} {attribute.type.sql}"
        if self.dice.below(3) == 1:
            text += " NOT NULL"
        if self.dice.below(3) == 1:
            text += f" CHECK ({self.check(attribute)})"
        return text

    def check(self, attribute: Attribute) -> str:
        """A condition on one attribute that leaves a set of values."""
        clauses = Clauses(self.dice, [Attribute(attribute.name, attribute.type)])
        clauses.palette = [attribute]
        forms = [clauses.comparison, clauses.membership, clauses.between]
        parts = [pick(self.dice, forms)(attribute) for _ in range(1 + self.dice.below(3))]
        return pick(self.dice, (" AND ", " OR ")).join(parts).replace("trades.", "")

    def queries(self, count: int) -> str:
        return ";\n".join(self.create_query(f"query {n}") for n in range(count))

    def create_query(self, name: str) -> str:
        kind = self.dice.below(4)
        sources = self.sources(join=kind == 2)
        text = f"CREATE QUERY {quoted(name)} AS SELECT {self.select(sources, kind)}"
        return text.replace("{from}", ", ".join(self.source(alias, s) for alias, s in sources))

    def sources(self, *, join: bool) -> list[tuple[str, Stream]]:
        count = 1 + (1 + self.dice.below(2)) * join
        aliases = [ALIASES[(self.dice.below(3) + n) % len(ALIASES)] for n in range(count)]
        aliases = list(dict.fromkeys(aliases))
        return [(alias, pick(self.dice, self.streams)) for alias in aliases]

    def source(self, alias: str, stream: Stream) -> str:
        read = quoted(stream.name)
        if self.dice.below(4) == 1:
            read = f"{pick(self.dice, ('last_rows', 'Last_Rows '))}({read}, {self.rows()})"
        return f"{read} {pick(self.dice, ('AS ', ''))}{quoted(alias)}"

    def rows(self) -> int:
        return pick(self.dice, (1, 100, 1_000_000_000))

    def select(self, sources: list[tuple[str, Stream]], kind: int) -> str:
        """All that stands between SELECT and the end, `{from}` for the streams."""
        where = f" WHERE {self.where(sources)}" if self.dice.below(4) else ""
        if kind == 3:
            return self.aggregate(sources, where)
        distinct = "DISTINCT " if kind == 1 else ""
        outputs = "*"
        if self.dice.below(2):
            listed = [self.column(sources) for _ in range(1 + self.dice.below(3))]
            outputs = ", ".join(f"{column} AS c{n}" for n, column in enumerate(listed))
        return f"{distinct}{outputs} FROM {{from}}{where}"

    def aggregate(self, sources: list[tuple[str, Stream]], where: str) -> str:
        grouped = [self.column(sources) for _ in range(self.dice.below(3))]
        listed = [f"{column} AS g{n}" for n, column in enumerate(grouped)]
        for n in range(1 + self.dice.below(2)):
            function = pick(self.dice, FUNCTIONS)
            argument = f"{quoted(sources[0][0])}.qty"
            if self.dice.below(3) == 1:
                argument = f"DISTINCT {argument}"
            elif function == "COUNT" and self.dice.below(2):
                argument = "*"
            listed.append(f"{function}({argument}) AS `total {n}`")
        group_by = f" GROUP BY {', '.join(grouped)}" if grouped else ""
        return f"{', '.join(listed)} FROM {{from}}{where}{group_by}"

    def column(self, sources: list[tuple[str, Stream]]) -> str:
        alias, stream = pick(self.dice, sources)
        return f"{quoted(alias)}.{pick(self.dice, stream.attributes).name}"

    def where(self, sources: list[tuple[str, Stream]]) -> str:
        """Conditions on each source, and comparisons between two."""
        parts = []
        for alias, stream in sources:
            clauses = Clauses(self.dice, stream.attributes)
            clauses.palette = [pick(self.dice, stream.attributes)]
            literal = clauses.literal(clauses.palette[0])
            parts.append(
                f"{quoted(alias)}.{clauses.palette[0].name} {clauses.operator()} {literal}"
            )
        (first, _), (last, _) = sources[0], sources[-1]
        operator = pick(self.dice, ("=", "<", ">=", "<>"))
        parts.append(f"{quoted(first)}.qty {operator} {quoted(last)}.qty")
        return pick(self.dice, (" AND ", " OR ")).join(parts)


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
