"""A stream is named attributes with types and domains.

Types order their values by *ordinals* (`types`), sets of values are unions of ranges of ordinals
(`values`), and a stream names attributes, each with a type and the set of values it may take
(`stream`). A schema has streams, and the aggregates that its user declares.
"""

from headgate.schema.stream import Attribute, Category, DeclaredAggregate, Schema, Stream
from headgate.schema.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    Boolean,
    Date,
    DecimalType,
    Double,
    Integer,
    Ordinal,
    String,
    Timestamp,
    Type,
    Value,
    successor,
)
from headgate.schema.values import EVERYTHING, NOTHING, Interval, ValueSet, intersection, union

__all__ = [
    "BIGINT",
    "BOOLEAN",
    "DATE",
    "DOUBLE",
    "EVERYTHING",
    "INT",
    "NOTHING",
    "STRING",
    "TIMESTAMP",
    "Attribute",
    "Boolean",
    "Category",
    "Date",
    "DecimalType",
    "DeclaredAggregate",
    "Double",
    "Integer",
    "Interval",
    "Ordinal",
    "Schema",
    "Stream",
    "String",
    "Timestamp",
    "Type",
    "Value",
    "ValueSet",
    "intersection",
    "successor",
    "union",
]
