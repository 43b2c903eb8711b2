"""Seven queries that bounded memory is enough for, and rows that seldom meet.

Q3, Q4, Q6 and Q7 of Table I of "Characterizing Memory Requirements for Queries over Continuous Data
Streams", those of inequalities alone with DISTINCT; the sum of its Example 8.7; a COUNT and a MAX.
About half of the rows fulfil what is asked of their own stream, so that a join must keep them. They
meet few rows of the other stream, so that the time is not that of the output: all meetings are with
the first row, or the first nine, of one stream.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.queries import Query
from headgate.schema import Schema
from headgate.sql import Script

STREAMS = "CREATE STREAM S (A INT, B INT, C INT); CREATE STREAM T (D INT, E INT);"
LARGE = 10_000


def dice(number: int, sides: int) -> str:
    """Return a number below `sides` that depends on the row, the seed, and which dice it is."""
    return f"pmod(xxhash64(value, {{seed}}, {number}), {sides})"


def half(number: int) -> str:
    return f"{dice(number, 2)} = 0"


@dataclass(frozen=True, slots=True)
class Case:
    """A query, and each attribute of its streams as SQL over the number of a row, `value`."""

    name: str
    outputs: str
    where: str
    s: dict[str, str]
    t: dict[str, str]
    distinct: bool = False
    group: str = ""
    joined: str = ""  # what the aggregates need of a joined row
    one_counts: bool = False  # of stream T, so that a join without a key has little to compare

    @property
    def select(self) -> str:
        return f"{self._outputs} FROM S, T WHERE {self.where}{self._grouped}"

    def query(self) -> Query:
        script = Script(Schema())
        *_, query = script.read(f"{STREAMS} CREATE QUERY {self.name} AS {self.select}")
        assert isinstance(query, Query), query
        return query

    @property
    def of_joined(self) -> str:
        """The answer, from the rows of the join alone."""
        return f"{self._outputs} FROM joined{self._grouped}"

    @property
    def _outputs(self) -> str:
        return f"SELECT {'DISTINCT ' * self.distinct}{self.outputs}"

    @property
    def _grouped(self) -> str:
        return f" GROUP BY {self.group}" if self.group else ""

    @property
    def has_equality(self) -> bool:
        """Else Spark joins only by a key that is the same in all rows."""
        return "A = D" in self.where

    def columns(self, stream: str, seed: int) -> list[str]:
        """Return columns for `selectExpr` over `value`, with the key that all rows have."""
        expressions = self.s if stream == "S" else self.t
        columns = [f"INT({text}) AS {name}" for name, text in expressions.items()]
        return [each.format(seed=seed) for each in (*columns, f"pmod(value, 1) AS key_{stream}")]


# A is 11 to 15 and D 15 to 19, where they are not outside; D is 15 in the first row only
EQUAL = "A = D AND A > 10 AND D < 20"
MEETS = f"value = 0 OR {dice(2, 20)} = 0"
A_TO_15 = f"IF({half(1)} OR value = 0, IF({MEETS}, 15, 11 + {dice(3, 4)}), {dice(3, 11)})"
D_FROM_15 = f"IF(value = 0, 15, IF({half(1)}, 16 + {dice(2, 4)}, 20 + {dice(2, 10)}))"

# B and C are above every D and E, but for the first row
ABOVE = f"{LARGE} + {{}}"
A_TEN = f"IF({half(1)} OR value = 0, 10, 20)"
A_NINE = f"IF(value < 9, 11 + value, IF({half(1)}, 11 + {dice(2, 9)}, 20 + {dice(2, 9)}))"

CASES = (
    Case("q3", "A", EQUAL, {"A": A_TO_15}, {"D": D_FROM_15}),
    Case(
        "q4_distinct",
        "A",
        "B < D AND A = 10",
        {"A": A_TEN, "B": f"IF(value = 0, 9500, {ABOVE.format(dice(2, LARGE))})"},
        {"D": f"IF(value = 0, 9990, {dice(1, LARGE)})"},
        distinct=True,
    ),
    Case(
        "q6_distinct",
        "A",
        "B < D AND C < E AND B < E AND C < D AND A = 10",
        {
            "A": A_TEN,
            "B": f"IF(value = 0, 8000, {ABOVE.format(dice(2, LARGE))})",
            "C": f"IF(value = 0, 8000, {ABOVE.format(dice(3, LARGE))})",
        },
        {
            "D": f"IF(value = 0, 9990, {dice(1, LARGE)})",
            "E": f"IF(value = 0, 9990, {dice(2, LARGE)})",
        },
        distinct=True,
    ),
    Case(
        "q7",
        "A",
        "B < D AND D > 10 AND B < 20 AND A = 10",
        {"A": A_TEN, "B": f"IF(value = 0, 14, 15 + {dice(2, 5)})"},
        {"D": f"IF({half(1)} OR value = 0, IF({MEETS}, 15, 11 + {dice(3, 4)}), {dice(3, 11)})"},
    ),
    Case(
        "sum",
        "A, D, SUM(B) AS total",
        "A > 10 AND A < 20 AND D > 10 AND D < 20",
        {"A": A_NINE, "B": dice(3, 1_000)},
        {"D": f"IF(value = 0, 15, 20 + {dice(1, 10)})"},
        group="A, D",
        joined="A, D, B",
        one_counts=True,
    ),
    Case(
        "count",
        "A, COUNT(*) AS pairs",
        EQUAL,
        {"A": A_TO_15},
        {"D": D_FROM_15},
        group="A",
        joined="A",
    ),
    Case(
        "max",
        "A, MAX(D) AS greatest",
        "B < D AND A BETWEEN 11 AND 19",
        {"A": A_NINE, "B": f"IF(value < 9, 9900, {ABOVE.format(dice(3, LARGE))})"},
        {"D": f"IF(value = 0, 9990, {dice(1, LARGE)})"},
        group="A",
        joined="A, D",
    ),
)
