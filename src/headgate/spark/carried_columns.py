"""Columns that cross to Python and back with those that queries use, so that rows come back whole.

An Arrow UDF gives an array of pairs for each event, of which the JVM makes rows field by field:
with ten pairs an event, that took half of the time. What `mapInArrow` gives are rows already, but
the columns to keep must cross too. So this is for few columns, of types that return as they left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as spark_types
from pyspark.sql.types import DataType, StringType, StructField, StructType

from headgate.events.tables import locate_attributes
from headgate.schema import Attribute, Stream
from headgate.spark.frames import arrow_schema, quote_name

MAX_CARRIED_COLUMNS = 4  # that no query uses; with about so many, an Arrow UDF is as fast

_PLAIN_TYPES = (
    spark_types.BooleanType,
    spark_types.ByteType,
    spark_types.ShortType,
    spark_types.IntegerType,
    spark_types.LongType,
    spark_types.FloatType,
    spark_types.DoubleType,
    spark_types.DecimalType,
    spark_types.BinaryType,
    spark_types.DateType,
    spark_types.TimestampType,
    spark_types.TimestampNTZType,
)

MapRows = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class CarriedColumns:
    """What crosses: `columns`, first those of attributes.

    `kept` has those that come back: their numbers, and what they are in the DataFrame.
    """

    columns: tuple[Column, ...]
    kept: tuple[tuple[int, StructField], ...]

    @property
    def kept_names(self) -> list[tuple[int, str]]:
        """The number and the name of each column that comes back."""
        return [(number, field.name) for number, field in self.kept]

    def map(self, frame: DataFrame, map_rows: MapRows, added: StructType) -> DataFrame:
        """Return the rows of a function that gives the kept columns, and then the added ones."""
        # numbered on the way, as `mapInArrow` cannot take names with dots
        sent = [column.alias(f"c{number}") for number, column in enumerate(self.columns)]
        # named in its result: renaming them afterwards would copy each row
        kept = [StructField(field.name, field.dataType) for _, field in self.kept]
        return frame.select(*sent).mapInArrow(map_rows, StructType([*kept, *added.fields]))


def select_carried(
    frame: DataFrame,
    stream: Stream,
    attributes: Sequence[Attribute],
    inputs: dict[str, Column],
    keep: Sequence[str],
) -> CarriedColumns | None:
    """Return the columns of attributes and those to keep; None if these cannot cross cheaply.

    `inputs` are the columns of attributes, and `keep` names columns as the DataFrame has them.
    """
    schema = frame.schema
    fields = [field for name in keep for field in schema.fields if field.name == name]
    # Two of a name cannot come back in one batch, and Spark ignores their case.
    if len({name.lower() for name in keep}) != len(fields):
        return None
    # Metadata would be lost: a watermark, or the length of a CHAR.
    if any(field.metadata or not _is_plain(field.dataType) for field in fields):
        return None
    # a column that is an attribute crosses once
    paths = locate_attributes(stream, attributes, arrow_schema(schema))
    numbers = {
        schema.fields[paths[name][0]].name: number
        for number, name in enumerate(inputs)
        if len(paths[name]) == 1
    }
    columns = list(inputs.values()) or [F.lit(True)]
    for field in fields:
        if field.name not in numbers:
            numbers[field.name] = len(columns)
            columns.append(F.col(quote_name(field.name)))
    if len(columns) - max(len(inputs), 1) > MAX_CARRIED_COLUMNS:
        return None
    return CarriedColumns(tuple(columns), tuple((numbers[f.name], f) for f in fields))


def _is_plain(spark_type: DataType) -> bool:
    # a text with a collation is of another type
    return isinstance(spark_type, _PLAIN_TYPES) or spark_type == StringType()
