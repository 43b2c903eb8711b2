"""A bound query: every name resolved, every expression typed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from headgate.predicate import Column, Predicate
from headgate.schema import BIGINT, DOUBLE, Attribute, DecimalType, Double, Schema, Type

AggregateFunction = Literal["COUNT", "SUM", "MIN", "MAX", "AVG", "MEDIAN"]
Kind = Literal["filter", "distinct", "join", "aggregate"]


@dataclass(frozen=True, slots=True)
class Source:
    """A stream in FROM, under the alias by which the query calls it."""

    stream: str
    alias: str


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate of a column, or COUNT(*) where there is no argument."""

    function: AggregateFunction
    argument: Column | None = None
    distinct: bool = False

    @property
    def type(self) -> Type:
        """The type of the result, as in Spark."""
        if self.function == "COUNT" or self.argument is None:
            return BIGINT
        argument = self.argument.type
        if self.function in ("MIN", "MAX"):
            return argument
        if self.function == "MEDIAN":
            return DOUBLE
        if isinstance(argument, DecimalType):
            return _wider(argument, 10, 0) if self.function == "SUM" else _wider(argument, 4, 4)
        whole_sum = self.function == "SUM" and not isinstance(argument, Double)
        return BIGINT if whole_sum else DOUBLE


def _wider(type_: DecimalType, digits: int, scale: int) -> DecimalType:
    return DecimalType(min(38, type_.precision + digits), min(38, type_.scale + scale))


@dataclass(frozen=True, slots=True)
class Output:
    """A column of the result."""

    name: str
    expression: Column | Aggregate

    @property
    def type(self) -> Type:
        return self.expression.type


@dataclass(frozen=True, slots=True)
class Query:
    """A standing query. No outputs means all columns (`SELECT *`).

    `metadata` is JSON text that belongs to whoever registered the query.
    """

    id: str
    sources: tuple[Source, ...]
    where: Predicate
    outputs: tuple[Output, ...] = ()
    distinct: bool = False
    group_by: tuple[Column, ...] = ()
    metadata: str | None = None

    @property
    def kind(self) -> Kind:
        """A filter decides on each event alone; the others need to remember."""
        if self.group_by or any(isinstance(o.expression, Aggregate) for o in self.outputs):
            return "aggregate"
        if len(self.sources) > 1:
            return "join"
        return "distinct" if self.distinct else "filter"

    @property
    def stream(self) -> str:
        """The stream of the first source; the only one for a filter."""
        return self.sources[0].stream


def attribute_of(query: Query, column: Column, schema: Schema) -> Attribute:
    """The attribute that a column of a query stands for."""
    source = next(s for s in query.sources if column.source in ("", s.alias))
    return schema.the_stream(source.stream)[column.name]
