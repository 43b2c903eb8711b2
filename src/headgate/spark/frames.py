"""What a DataFrame's schema says: the stream that it could be, and where the attributes are in it.

Spark's types are seen as the Arrow types in which their values cross to Python, so the rules for
tables of Arrow decide here too. A type that no attribute can have keeps Spark's name for it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as spark_types
from pyspark.sql.types import DataType, StructType

from headgate.errors import did_you_mean, shorten
from headgate.events.arrow_casts import cast_column
from headgate.events.inference import infer_types
from headgate.events.tables import locate_attributes
from headgate.schema import Attribute, Stream

SHOWN = 5
_OUR_SIDE = ("headgate", "pyspark")
_ARROW: dict[type[DataType], pa.DataType] = {
    spark_types.NullType: pa.null(),
    spark_types.BooleanType: pa.bool_(),
    spark_types.ByteType: pa.int8(),
    spark_types.ShortType: pa.int16(),
    spark_types.IntegerType: pa.int32(),
    spark_types.LongType: pa.int64(),
    spark_types.FloatType: pa.float32(),
    spark_types.DoubleType: pa.float64(),
    spark_types.CharType: pa.string(),
    spark_types.VarcharType: pa.string(),
    spark_types.DateType: pa.date32(),
    spark_types.TimestampType: pa.timestamp("us", tz="UTC"),
    spark_types.TimestampNTZType: pa.timestamp("us"),
}


class HeadgateWarning(UserWarning):
    """Something was left out, or counts as NULL; the message names it."""


class ForeignType(pa.ExtensionType):
    """A type of Spark that no attribute can have."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(pa.null(), "headgate.foreign")

    def __arrow_ext_serialize__(self) -> bytes:
        return self.name.encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, _: pa.DataType, serialized: bytes) -> ForeignType:
        return cls(serialized.decode())

    def __str__(self) -> str:
        return self.name


def stream_of(frame: DataFrame, name: str) -> Stream:
    """A stream with an attribute for each column, and for each field of a struct by its path.

    Columns for which there is no type here are left out, and a warning lists them. Drop them from
    the DataFrame first if that is meant.
    """
    types, skipped = infer_types(arrow_schema(frame.schema))
    if skipped:
        reasons = [f"`{column}` ({reason})" for column, reason in skipped.items()]
        warn(f"left out of stream {name}: {listed(reasons)}")
    return Stream(name, tuple(Attribute(column, type_) for column, type_ in types.items()))


def used_columns(
    frame: DataFrame, stream: Stream, attributes: Sequence[Attribute]
) -> dict[str, Column]:
    """The column of each attribute; an EventError if one can never have the attribute's type.

    An attribute without a column is NULL in every event, of which a warning tells.
    """
    schema = frame.schema
    arrow = arrow_schema(schema)
    ways = locate_attributes(stream, attributes, arrow)
    missing = [attribute.name for attribute in attributes if attribute.name not in ways]
    if missing:
        types, skipped = infer_types(arrow)
        hints = [f"`{name}` ({did_you_mean(name, [*types, *skipped])})" for name in missing]
        warn(f"NULL for lack of a column, though queries use them: {listed(hints)}")
    found = {}
    for attribute in attributes:
        if attribute.name in ways:
            column, type_ = _followed(schema, ways[attribute.name])
            none: Any = arrow_type(type_)
            cast_column(attribute, pa.nulls(0, none))
            found[attribute.name] = column
    return found


def arrow_schema(schema: StructType) -> pa.Schema:
    """The schema as Arrow has it."""
    return pa.schema([(field.name, arrow_type(field.dataType)) for field in schema.fields])


def arrow_type(given: DataType) -> pa.DataType:
    """The Arrow type in which Spark hands a column over.

    >>> arrow_type(spark_types.ShortType()), str(arrow_type(spark_types.BinaryType()))
    (DataType(int16), 'binary')
    """
    if isinstance(given, StructType):
        return pa.struct([(field.name, arrow_type(field.dataType)) for field in given.fields])
    if isinstance(given, spark_types.DecimalType):
        return pa.decimal128(given.precision, given.scale)
    if given == spark_types.StringType():  # others have a collation, by which they compare
        return pa.string()
    return _ARROW.get(type(given)) or ForeignType(shorten(given.simpleString()))


def quoted(name: str) -> str:
    """A column's name as Spark's parser takes it, whatever is in it.

    >>> quoted("a.b `c`")
    '`a.b ``c```'
    """
    return "`" + name.replace("`", "``") + "`"


def listed(texts: Sequence[str]) -> str:
    """The first few, and how many more there are.

    >>> listed(["a", "b", "c", "d", "e", "f"])
    'a, b, c, d, e and 1 more'
    """
    more = len(texts) - SHOWN
    return ", ".join(texts[:SHOWN]) + (f" and {more:,} more" if more > 0 else "")


def warn(message: str) -> None:
    """Warn at the line that called Headgate, be it through Spark."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in _OUR_SIDE:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, HeadgateWarning, stacklevel=level)


def _followed(schema: StructType, way: tuple[int, ...]) -> tuple[Column, DataType]:
    """The column at the end of a way from struct to struct, and its type."""
    field = schema.fields[way[0]]
    column = F.col(quoted(field.name))
    for number in way[1:]:
        assert isinstance(field.dataType, StructType)
        field = field.dataType.fields[number]
        column = column.getField(field.name)
    return column, field.dataType
