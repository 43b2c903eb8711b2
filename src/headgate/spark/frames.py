"""DataFrames as streams: the stream that a schema describes, and the column of each attribute.

Spark's types are seen as the Arrow types in which their values cross to Python, so the rules for
tables of Arrow decide here too. A type that no attribute can have keeps Spark's name for it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as spark_types
from pyspark.sql.types import DataType, StructType

from headgate.errors import UsageError, did_you_mean, shorten
from headgate.events.arrow_casts import cast_column
from headgate.events.inference import infer_types
from headgate.events.tables import locate_attributes
from headgate.schema import Attribute, Stream

if TYPE_CHECKING:
    Array = pa.Array[Any]
else:
    Array = pa.Array  # Spark evaluates the hints of its UDFs

MAX_LISTED = 5
NO_ATTRIBUTE = ""  # the name of a column that is sent only so that events can be counted

_LIBRARIES = ("headgate", "pyspark")
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
    """A warning that something was left out, or counts as NULL; the message names it."""


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
    """Return a stream with an attribute for each column, and each field of a struct by its path.

    Columns of types that no attribute can have are left out, and a `HeadgateWarning` lists them.
    Drop them from the DataFrame first to avoid it.

    Parameters
    ----------
    frame : DataFrame
        Any DataFrame, streaming or not.
    name : str
        The name of the stream.

    Returns
    -------
    Stream
        The declaration, as CREATE STREAM would give it.

    Examples
    --------
    Declare a stream by the schema of a DataFrame::

        stream = hg.spark.stream_of(trades, "trades")
        print(stream["price"].type)
    """
    types, skipped = infer_types(arrow_schema(frame.schema))
    if skipped:
        reasons = [f"`{column}` ({reason})" for column, reason in skipped.items()]
        warn(f"left out of stream {name}: {join_first(reasons)}")
    return Stream(name, tuple(Attribute(column, type_) for column, type_ in types.items()))


def select_columns(
    frame: DataFrame, stream: Stream, attributes: Sequence[Attribute]
) -> dict[str, Column]:
    """Return the column of each attribute; raise an EventError if its type can never fit.

    An attribute without a column is NULL in every event, and a warning lists it.
    """
    schema = frame.schema
    arrow = arrow_schema(schema)
    paths = locate_attributes(stream, attributes, arrow)
    missing = [attribute.name for attribute in attributes if attribute.name not in paths]
    # a typo in a column's name is the usual cause, so similar names are suggested
    if missing:
        # columns that are left out for their type are suggested too: the user may mean one of them
        types, skipped = infer_types(arrow)
        hints = [f"`{name}` ({did_you_mean(name, [*types, *skipped])})" for name in missing]
        warn(f"NULL for lack of a column, though queries use them: {join_first(hints)}")
    selected = {}
    for attribute in attributes:
        if attribute.name in paths:
            column, type_ = _resolve_column(schema, paths[attribute.name])
            arrow_null: Any = arrow_type(type_)
            # raises if no value of this type can fit
            cast_column(attribute, pa.nulls(0, arrow_null))
            selected[attribute.name] = column
    return selected


def select_kept(
    frame: DataFrame, keep: tuple[str, ...] | None, added: tuple[str, ...]
) -> list[Column] | None:
    """Return the columns to keep; None for all. None may have the name of one that is added."""
    names = frame.columns if keep is None else find_columns(frame, keep)
    for name in names:
        if name.lower() in added:
            raise UsageError(
                f"the DataFrame has a column `{name}` already; rename it, or leave it out of `keep`"
            )
    return None if keep is None else [F.col(quote_name(name)) for name in names]


def find_columns(frame: DataFrame, names: Sequence[str]) -> list[str]:
    """Return the columns of these names, in the case that they have in the DataFrame."""
    return [_find_column(frame, name) for name in names]


def _find_column(frame: DataFrame, name: str) -> str:
    """Return the column of this name, in the case that it has in the DataFrame."""
    alike = [column for column in frame.columns if column.lower() == name.lower()]
    if not alike:
        raise UsageError(f"no column `{name}` to keep; {did_you_mean(name, frame.columns)}")
    return name if name in alike else alike[0]


def select_numbered(
    frame: DataFrame, stream: Stream, used: tuple[str, ...]
) -> tuple[DataFrame, tuple[str, ...]]:
    """Return the columns of used attributes as `c0`, `c1` and so on, and what attributes they are.

    `mapInArrow` cannot take names with dots. Without any attribute there is one column that only
    says how many rows there are.
    """
    selected = select_columns(frame, stream, [stream[name] for name in used])
    columns = list(selected.values()) or [F.lit(True)]
    numbered = [column.alias(f"c{number}") for number, column in enumerate(columns)]
    return frame.select(*numbered), tuple(selected) or (NO_ATTRIBUTE,)


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return a schema of Spark as one of Arrow."""
    return pa.schema([(field.name, arrow_type(field.dataType)) for field in schema.fields])


def arrow_type(spark_type: DataType) -> pa.DataType:
    """Return the Arrow type in which Spark hands a column over.

    >>> arrow_type(spark_types.ShortType()), str(arrow_type(spark_types.BinaryType()))
    (DataType(int16), 'binary')
    """
    if isinstance(spark_type, StructType):
        return pa.struct([(field.name, arrow_type(field.dataType)) for field in spark_type.fields])
    if isinstance(spark_type, spark_types.DecimalType):
        return pa.decimal128(spark_type.precision, spark_type.scale)
    if spark_type == spark_types.StringType():  # others have a collation, by which they compare
        return pa.string()
    return _ARROW.get(type(spark_type)) or ForeignType(shorten(spark_type.simpleString()))


def quote_name(name: str) -> str:
    """Return a column's name as Spark's parser takes it, whatever is in it.

    >>> quote_name("a.b `c`")
    '`a.b ``c```'
    """
    return "`" + name.replace("`", "``") + "`"


def join_first(texts: Sequence[str]) -> str:
    """Return the first few texts, and how many more there are.

    >>> join_first(["a", "b", "c", "d", "e", "f"])
    'a, b, c, d, e and 1 more'
    """
    more = len(texts) - MAX_LISTED
    return ", ".join(texts[:MAX_LISTED]) + (f" and {more:,} more" if more > 0 else "")


def warn(message: str) -> None:
    """Warn at the line that called Headgate, be it through Spark."""
    # skip our frames and Spark's, so that the warning shows the user's line
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in _LIBRARIES:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, HeadgateWarning, stacklevel=level)


def _resolve_column(schema: StructType, path: tuple[int, ...]) -> tuple[Column, DataType]:
    """Return the column at the end of a path from struct to struct, and its type."""
    field = schema.fields[path[0]]
    # quoted, as a dot in a column's name would be a path to Spark
    column = F.col(quote_name(field.name))
    for number in path[1:]:
        assert isinstance(field.dataType, StructType)
        field = field.dataType.fields[number]
        column = column.getField(field.name)
    return column, field.dataType
