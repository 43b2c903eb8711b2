"""Tables whose columns are read where Arrow has them, with no work in Python for each column.

`batch_from_table` makes typed columns of a table, one after the other: that costs 10 µs a column
and batch, which is most of what matching a small batch takes. Columns of numbers, days, moments and
truth values need none of it: they are checked by one kernel, and read by another. All that depends
on the schema of the table alone is worked out once, as a `TablePlan`. Other columns are cast as
always, and a table with a row that is in doubt is left to `batch_from_table`, which says why.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.errors import EventError
from headgate.events.arrow_casts import cast_column
from headgate.events.assembly import find_violations
from headgate.events.batch import Numbers
from headgate.events.columns import MAX_CODED_DIGITS
from headgate.events.kernels import arrow as kernels
from headgate.events.tables import locate_attributes, take_array
from headgate.schema import (
    Attribute,
    Boolean,
    Date,
    DecimalType,
    Double,
    Integer,
    Stream,
    String,
    Timestamp,
    Type,
)

MAX_PLANS = 16  # schemas of tables that are remembered
STRUCT_SIZE = 10  # of `struct ArrowArray`, in words of 64 bits
RELEASE_AT = 8

# the forms of integers in Arrow, and the least and greatest that each can write
_INTEGERS: dict[pa.DataType, tuple[int, int, int]] = {
    pa.int8(): (kernels.INT8, -(1 << 7), (1 << 7) - 1),
    pa.int16(): (kernels.INT16, -(1 << 15), (1 << 15) - 1),
    pa.int32(): (kernels.INT32, -(1 << 31), (1 << 31) - 1),
    pa.int64(): (kernels.INT64, -(1 << 63), (1 << 63) - 1),
    pa.uint8(): (kernels.UINT8, 0, (1 << 8) - 1),
    pa.uint16(): (kernels.UINT16, 0, (1 << 16) - 1),
    pa.uint32(): (kernels.UINT32, 0, (1 << 32) - 1),
}

_RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_int64)


@dataclass(frozen=True, slots=True)
class PlainColumn:
    """A column that is read where it lies: its attribute, number, and how its values are written.

    Unless all values that can be written so are values of the attribute, `bounds` are the least and
    the greatest ordinal that is one.
    """

    attribute: Attribute
    number: int
    form: int
    bounds: tuple[int, int] | None


@dataclass(frozen=True, eq=False)
class TablePlan:
    """How the columns of a schema are read: those of `cast` are lists of numbers into structs."""

    schema: pa.Schema
    plain: tuple[PlainColumn, ...]
    cast: tuple[tuple[Attribute, tuple[int, ...]], ...] = ()
    # attributes that may not be NULL, and have no column
    missing: tuple[Attribute, ...] = ()

    @cached_property
    def numbers(self) -> Numbers:
        """The numbers of the plain columns."""
        return np.array([column.number for column in self.plain], np.int64)

    @cached_property
    def places(self) -> dict[str, int]:
        """The place of each attribute among the plain columns."""
        return {column.attribute.name: place for place, column in enumerate(self.plain)}

    @cached_property
    def checks(self) -> tuple[Numbers, ...]:
        """The columns that are checked, by place, with form, whether required, and both bounds."""
        rows = [
            (place, column.form, not column.attribute.nullable, *(column.bounds or _ANYTHING))
            for place, column in enumerate(self.plain)
            if column.bounds is not None or not column.attribute.nullable
        ]
        return tuple(np.array(rows, np.int64).reshape(-1, 5).T.copy())


_LIMITS = np.iinfo(np.int64)
_ANYTHING = int(_LIMITS.min), int(_LIMITS.max)


@dataclass(frozen=True, slots=True, eq=False)
class TypedTable:
    """Rows of which every value is one of its attribute: plain columns, and others that were cast.

    `layout` has a row for each plain column: where in memory its bits and values are, which stay
    there as long as `batch` does. An attribute that is in neither is NULL.
    """

    batch: pa.RecordBatch
    rows: int  # a batch without columns does not know
    plan: TablePlan
    layout: npt.NDArray[np.int64] = field(repr=False)
    cast: Mapping[str, pa.Array[Any]] = field(default_factory=dict, repr=False)

    def column(self, name: str, type_: Type, first: int, rows: int) -> pa.Array[Any]:
        """Return some rows of an attribute, in the type that Arrow has for it."""
        arrow: Any = type_.arrow
        column: Any = self.cast.get(name)
        if column is None and (place := self.plan.places.get(name)) is not None:
            column = self.batch.column(self.plan.plain[place].number)
        if column is None:
            column = pa.nulls(rows, arrow)
        part: pa.Array[Any] = column if rows == len(column) else column.slice(first, rows)
        if part.type != arrow:
            part = part.cast(arrow)
        return part


def read_typed_batch(batch: pa.RecordBatch, rows: int) -> TypedTable:
    """Return the columns of an `EventBatch`, which have the types of their attributes already.

    >>> batch = pa.record_batch({"a": pa.array([3, None], pa.int32()), "b": ["x", "y"]})
    >>> table = read_typed_batch(batch, 2)
    >>> table.layout.shape, list(table.cast)
    ((1, 4), ['b'])
    """
    plan = _find_plan(None, (), batch.schema)
    if plan is None:
        plan = _remember(None, (), _plan_typed(batch.schema))
    layout = _read_layout(batch, plan)
    names = batch.schema.names
    cast = {names[number]: batch.column(number) for _, (number,) in plan.cast}
    return TypedTable(batch, rows, plan, layout, cast)


def read_typed_table(
    data: pa.Table | pa.RecordBatch, stream: Stream, attributes: tuple[Attribute, ...]
) -> TypedTable | None:
    """Return a table as it is, if every row is an event of the stream; otherwise None.

    >>> from headgate.schema import INT
    >>> a = Attribute("a", INT)
    >>> read_typed_table(pa.table({"A": [3, None]}), Stream("s", (a,)), (a,)).rows
    2
    >>> read_typed_table(pa.table({"a": [1 << 40]}), Stream("s", (a,)), (a,)) is None
    True
    """
    plan = _find_plan(stream, attributes, data.schema)
    if plan is None:
        try:
            plan = _plan_table(stream, attributes, data.schema)
        except EventError:
            return None
        _remember(stream, attributes, plan)
    if plan.missing or not data.num_rows:
        return None
    if isinstance(data, pa.Table):
        return _read_chunks(data, plan, stream, attributes)
    cast: dict[str, pa.Array[Any]] = {}
    for attribute, path in plan.cast:
        try:
            column = cast_column(attribute, take_array(data, path))
        except EventError:
            return None
        if column.unfit or any(find_violations(column.array, attribute)):
            return None
        cast[attribute.name] = column.array
    layout = _read_layout(data, plan)
    places, forms, required, low, high = plan.checks
    if len(places) and not kernels.are_within(
        layout[places], data.num_rows, forms, required, low, high
    ):
        return None
    return TypedTable(data, data.num_rows, plan, layout, cast)


def _read_chunks(
    table: pa.Table, plan: TablePlan, stream: Stream, attributes: tuple[Attribute, ...]
) -> TypedTable | None:
    batches = table.to_batches()
    if len(batches) > 1:
        # only what is used is copied together
        used = {column.number for column in plan.plain} | {path[0] for _, path in plan.cast}
        batches = table.select(sorted(used)).combine_chunks().to_batches()
    # more than one is left where a column has more than 2 GB of text
    return read_typed_table(batches[0], stream, attributes) if len(batches) == 1 else None


def _read_layout(batch: pa.RecordBatch, plan: TablePlan) -> npt.NDArray[np.int64]:
    """Return where the plain columns lie; the batch keeps what is there in memory."""
    layout = np.empty((len(plan.plain), kernels.LAYOUT_FIELDS), np.int64)
    if plan.plain:
        struct = (ctypes.c_int64 * STRUCT_SIZE)()
        address = ctypes.addressof(struct)
        batch._export_to_c(address)
        try:
            kernels.read_layout(address, plan.numbers, layout)
        finally:
            _RELEASE(struct[RELEASE_AT])(address)
    return layout


def _plan_table(stream: Stream, attributes: tuple[Attribute, ...], schema: pa.Schema) -> TablePlan:
    paths = locate_attributes(stream, attributes, schema)
    plain: list[PlainColumn] = []
    cast: list[tuple[Attribute, tuple[int, ...]]] = []
    missing: list[Attribute] = []
    for attribute in attributes:
        path = paths.get(attribute.name)
        source: Any = None if path is None else schema.field(path[0]).type
        if path is None or (len(path) == 1 and pa.types.is_null(source)):
            if not attribute.nullable:
                missing.append(attribute)
            continue
        column = _plan_column(attribute, path[0], source) if len(path) == 1 else None
        if column is None:
            cast.append((attribute, path))
        else:
            plain.append(column)
    return TablePlan(schema, tuple(plain), tuple(cast), tuple(missing))


def _plan_column(attribute: Attribute, number: int, source: Any) -> PlainColumn | None:
    """Return how a column is read where it lies; None if that is not possible."""
    bounds = _find_bounds(attribute)
    if bounds is None:
        return None
    form: int | None = None
    is_sure = attribute.domain.is_everything  # whether every value is one of the attribute
    match attribute.type:
        case Boolean() if pa.types.is_boolean(source):
            form = kernels.BIT
        case Integer() as type_ if source in _INTEGERS:
            form, least, most = _INTEGERS[source]
            is_sure = is_sure and type_.minimum <= least and most <= type_.maximum
        case Double() if source == pa.float64():
            form = kernels.DOUBLE
        case DecimalType() as type_ if _has_plain_digits(source, type_):
            form = kernels.DECIMAL
        case Date() if source == pa.date32():
            form, is_sure = kernels.INT32, False
        case Timestamp() as type_ if _is_plain_time(source, type_):
            form, is_sure = kernels.INT64, False
    if form is None:
        return None
    return PlainColumn(attribute, number, form, None if is_sure else bounds)


def _has_plain_digits(source: pa.DataType, type_: DecimalType) -> bool:
    return (
        isinstance(source, pa.Decimal128Type)
        and source.scale == type_.scale
        and source.precision <= type_.precision <= MAX_CODED_DIGITS
    )


def _is_plain_time(source: pa.DataType, type_: Timestamp) -> bool:
    """Return whether the numbers are microseconds in UTC: clock times are, if the zone is UTC."""
    if not isinstance(source, pa.TimestampType) or source.unit != "us":
        return False
    return source.tz is not None or type_.zone == "UTC"


def _find_bounds(attribute: Attribute) -> tuple[int, int] | None:
    """Return the least and greatest ordinal of an attribute; None if a CHECK is no range."""
    type_, domain = attribute.type, attribute.domain
    if isinstance(type_, String) or (
        isinstance(type_, DecimalType) and type_.precision > MAX_CODED_DIGITS
    ):
        return None
    low, high = int(type_.minimum), int(type_.maximum or 0)  # only a STRING has no maximum
    cuts = [int(cut) for cut in domain.cuts]
    if domain.starts_inside and len(cuts) <= 1:
        return low, min([high, *(cut - 1 for cut in cuts)])
    if not domain.starts_inside and len(cuts) in (1, 2):
        return max(low, cuts[0]), min([high, *(cut - 1 for cut in cuts[1:])])
    return None


def _plan_typed(schema: pa.Schema) -> TablePlan:
    """Return the plan of columns that have the types of their attributes: nothing is checked."""
    plain: list[PlainColumn] = []
    cast: list[tuple[Attribute, tuple[int, ...]]] = []
    for number, column in enumerate(schema):
        type_ = _PLAIN_TYPES.get(column.type)
        if isinstance(column.type, pa.Decimal128Type) and column.type.precision <= MAX_CODED_DIGITS:
            type_ = DecimalType(column.type.precision, column.type.scale)
        if type_ is None:
            cast.append((Attribute(column.name, String()), (number,)))
            continue
        in_place = _plan_column(Attribute(column.name, type_), number, column.type)
        assert in_place is not None
        plain.append(replace(in_place, bounds=None))
    return TablePlan(schema, tuple(plain), tuple(cast))


_PLAIN_TYPES: dict[pa.DataType, Type] = {
    type_.arrow: type_
    for type_ in (Boolean(), Integer(32), Integer(64), Double(), Date(), Timestamp())
}

# The plans of the schemas that were seen last. A schema is compared, not hashed: those of one
# source are most often one object, and to hash one looks at every column.
_plans: list[tuple[Stream | None, Sequence[Attribute], TablePlan]] = []


def _find_plan(
    stream: Stream | None, attributes: Sequence[Attribute], schema: pa.Schema
) -> TablePlan | None:
    for known_stream, known_attributes, plan in _plans:
        if (
            known_stream is stream
            and (known_attributes is attributes or known_attributes == attributes)
            and plan.schema.equals(schema)
        ):
            return plan
    return None


def _remember(stream: Stream | None, attributes: Sequence[Attribute], plan: TablePlan) -> TablePlan:
    # a thread that reads the list meanwhile may miss a plan, and then makes it again
    _plans.insert(0, (stream, attributes, plan))
    del _plans[MAX_PLANS:]
    return plan
