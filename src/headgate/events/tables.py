"""Events that are rows already: a table of Arrow, pandas or Polars, or a list of dicts."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import NoneType
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.errors import EventError
from headgate.events.arrow_casts import cast_column
from headgate.events.assembly import ConvertedColumn, RowPlaces, assemble_batch, convert_column
from headgate.events.attribute_paths import (
    Node,
    build_path_tree,
    count_undeclared_keys,
    find_undeclared_columns,
    limit_names,
    locate_columns,
)
from headgate.events.batch import (
    DeadLetter,
    EventBatch,
    select_attributes,
    show_value,
    truncate_text,
)
from headgate.events.conversion import make_python_rule
from headgate.schema import Attribute, Stream

if TYPE_CHECKING:
    import pandas as pd


class ArrowStream(Protocol):
    """A table of any library that offers Arrow's C stream interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


def batch_from_rows(
    data: pa.Table | pa.RecordBatch | pd.DataFrame | ArrowStream | Sequence[Mapping[str, Any]],
    stream: Stream,
    *,
    columns: Collection[str] | None = None,
) -> EventBatch:
    """Return the events of a table, a DataFrame or a list of dicts, checked as a file's would be.

    Anything that has `__arrow_c_stream__`, such as a Polars DataFrame, is a table. A column that is
    missing is NULL, and so is NaN in pandas, and only there.

    >>> from headgate.schema import INT
    >>> trades = Stream("trades", (Attribute("qty", INT),))
    >>> batch = batch_from_rows([{"Qty": 3}, {"qty": "3"}], trades)
    >>> batch.table.to_pylist(), batch.dead[0].reason, batch.dead[0].raw
    ([{'qty': 3}], "`qty` is '3', which is not an INT", '{"qty":"3"}')
    """
    attributes = select_attributes(stream, columns)
    if isinstance(data, pa.Table | pa.RecordBatch):
        return batch_from_table(data, stream, attributes)
    if _is_pandas(data):
        return _batch_from_pandas(data, stream, attributes)
    if isinstance(data, list | tuple):
        return _batch_from_dicts(data, stream, attributes)
    # Arrow's own protocol, which Polars and others offer.
    if hasattr(data, "__arrow_c_stream__"):
        return batch_from_table(pa.table(data), stream, attributes)
    raise EventError(
        f"events cannot be read from {type(data).__name__}; "
        "give a pyarrow Table, a DataFrame of pandas or Polars, or a list of dicts"
    )


def batch_from_table(
    table: pa.Table | pa.RecordBatch,
    stream: Stream,
    attributes: Sequence[Attribute],
    *,
    source: str = "<table>",
    first_event: int = 0,
    first_line: int = 1,
    unknown: Sequence[str] | None = None,
    dead_letter_errors: bool = False,
) -> EventBatch:
    """Return the events of an Arrow table, of which the first has the given number and line.

    `unknown` names the undeclared columns where the table has them no more. A column that cannot be
    the attribute's is an error, or, with `dead_letter_errors`, a dead letter for each row with a
    value there; columns among which an attribute cannot be found make one of every row.
    """
    rows = table.num_rows

    def write_letter(row: int, reason: str) -> DeadLetter:
        return DeadLetter(
            source, first_line + row, reason, _show_row(table, row), first_event + row
        )

    try:
        places, reasons = locate_attributes(stream, attributes, table.schema), {}
    except EventError as error:
        if not dead_letter_errors:
            raise
        # no column can be trusted: all are NULL, and every row is a dead letter
        places, reasons = {}, dict.fromkeys(range(rows), str(error))
    names = find_undeclared_columns(stream, table.schema) if unknown is None else unknown
    return assemble_batch(
        stream,
        [
            _cast_or_refuse(a, take_array(table, places.get(a.name)), dead_letter_errors)
            for a in attributes
        ],
        RowPlaces(
            np.arange(first_event, first_event + rows),
            np.arange(first_line, first_line + rows),
            write_letter,
        ),
        reasons=reasons,
        unknown=limit_names(dict.fromkeys(names, rows)),
    )


def _cast_or_refuse(
    attribute: Attribute, array: pa.Array[Any], dead_letter_errors: bool
) -> ConvertedColumn:
    try:
        return cast_column(attribute, array)
    except EventError as error:
        if not dead_letter_errors:
            raise
        # A NULL fits every type, so only rows with a value here are dead letters.
        present = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False))
        nothing = pa.nulls(len(array)).cast(attribute.type.arrow)
        return ConvertedColumn(attribute, nothing, dict.fromkeys(present.tolist(), str(error)))


def locate_attributes(
    stream: Stream, attributes: Sequence[Attribute], schema: pa.Schema
) -> dict[str, tuple[int, ...]]:
    """Return the way to each attribute: the number of its column, then of each struct's field."""
    places: dict[str, tuple[int, ...]] = {}
    _locate_fields(build_path_tree(stream, attributes), list(schema), (), places)
    return places


def _locate_fields(
    nodes: Mapping[str, Node],
    fields: Sequence[pa.Field[Any]],
    path: tuple[int, ...],
    places: dict[str, tuple[int, ...]],
) -> None:
    for number, field in enumerate(fields):
        node = nodes.get(field.name.lower())
        if node is None:
            continue
        if node.name in places:
            raise EventError(f"attribute `{node.name}` has two columns; rename or drop one")
        places[node.name] = (*path, number)
        if node.inside and isinstance(field.type, pa.StructType):
            _locate_fields(node.inside, list(field.type), places[node.name], places)
        elif node.inside and not pa.types.is_null(field.type):
            attribute = next(iter(node.inside.values())).name
            raise EventError(
                f"column `{node.name}` is {field.type}, and the stream declares `{attribute}` in "
                "it; make the column a struct or change the declaration"
            )


def take_array(table: pa.Table | pa.RecordBatch, path: tuple[int, ...] | None) -> pa.Array[Any]:
    """Return the column that a path leads to, down into structs; NULLs without a path."""
    if path is None:
        return pa.nulls(table.num_rows)
    array = _combine_chunks(table.column(path[0]))
    for number in path[1:]:
        # This gives NULL where the struct around it is NULL.
        array = pc.struct_field(array, [number])
    return array


def _combine_chunks(column: pa.Array[Any] | pa.ChunkedArray[Any]) -> pa.Array[Any]:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):
        raise EventError("a column of more than 2 GB of text; give the table in slices")
    return array


def _show_row(table: pa.Table | pa.RecordBatch, row: int) -> str:
    names = table.schema.names
    return _show_json({name: _to_plain_value(table.column(i)[row]) for i, name in enumerate(names)})


def _to_plain_value(scalar: pa.Scalar[Any]) -> Any:
    try:
        return scalar.as_py()
    except (ValueError, OverflowError):  # a time before the year 1, bytes that are no text
        return f"<{scalar.type}>"


def _show_json(row: Any) -> str:
    try:
        text = json.dumps(row, ensure_ascii=False, separators=(",", ":"), default=_plain_object)
    except (TypeError, ValueError, RecursionError):  # odd keys, an object inside itself
        text = repr(row)
    return truncate_text(text)


def _plain_object(value: object) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)


def _batch_from_dicts(
    rows: Sequence[Any],
    stream: Stream,
    attributes: Sequence[Attribute],
    *,
    source: str = "<rows>",
) -> EventBatch:
    objects = [row if isinstance(row, Mapping) else {} for row in rows]
    located = locate_columns(stream, attributes, objects)
    no_objects = {
        number: f"{show_value(row)}, not an object"
        for number, row in enumerate(rows)
        if not isinstance(row, Mapping)
    }
    return assemble_batch(
        stream,
        [_convert_values(a, values) for a, values in zip(attributes, located.values, strict=True)],
        RowPlaces(
            np.arange(len(rows)),
            np.arange(1, len(rows) + 1),
            lambda row, reason: DeadLetter(source, row + 1, reason, _show_json(rows[row]), row),
        ),
        reasons=no_objects | dict(located.problems),
        unknown=count_undeclared_keys(stream, objects) if located.has_unknown_keys else None,
    )


def _convert_values(attribute: Attribute, values: Sequence[Any]) -> ConvertedColumn:
    # an event has few of many attributes: nothing is to be done for the others
    if set(map(type, values)) <= {NoneType}:
        arrow: Any = attribute.type.arrow
        return ConvertedColumn(attribute, pa.nulls(len(values), arrow), {})
    return convert_column(attribute, make_python_rule(attribute), values)


def _is_pandas(data: object) -> TypeGuard[pd.DataFrame]:
    """Return whether it is a DataFrame; whoever has one has imported pandas, so we need not."""
    frame = getattr(sys.modules.get("pandas"), "DataFrame", None)  # it may be on its way in
    return frame is not None and isinstance(data, frame)


def _batch_from_pandas(
    frame: pd.DataFrame, stream: Stream, attributes: Sequence[Attribute]
) -> EventBatch:
    """Go through Arrow if it can hold every used column exactly, otherwise a list of dicts."""
    used = _select_series(frame, build_path_tree(stream, attributes))
    declared = build_path_tree(stream, stream)
    unknown = [str(label) for label in frame.columns if str(label).lower() not in declared]
    arrays = [_convert_series(series) for series in used.values()]
    exact = [array for array in arrays if array is not None]
    # All used columns go one way or all the other, since a batch is made from one form of rows.
    if used and len(exact) == len(used):
        table = pa.Table.from_arrays(exact, names=list(used))
        return batch_from_table(table, stream, attributes, unknown=unknown)
    values = [_read_objects(series) for series in used.values()]
    rows = [dict(zip(used, row, strict=True)) for row in zip(*values, strict=True)]
    batch = _batch_from_dicts(rows or [{}] * len(frame), stream, attributes, source="<table>")
    return replace(
        batch, unknown=limit_names(dict(batch.unknown) | dict.fromkeys(unknown, len(frame)))
    )


def _select_series(frame: pd.DataFrame, nodes: Mapping[str, Node]) -> dict[str, pd.Series[Any]]:
    labels = [str(label) for label in frame.columns]
    lower = [label.lower() for label in labels]
    for name in nodes:
        if lower.count(name) > 1:
            raise EventError(f"attribute `{nodes[name].name}` has two columns; rename or drop one")
    used = [number for number, name in enumerate(lower) if name in nodes]
    return {labels[number]: frame.iloc[:, number] for number in used}


def _convert_series(series: pd.Series[Any]) -> pa.Array[Any] | None:
    """Return the column in Arrow with NaN as NULL; None if Arrow would have to guess or round."""
    values: pd.Series[Any] | list[Any] = series
    # Objects may be anything. Arrow gets them only if all are of one plain type, so that it need
    # not guess.
    if series.dtype == object:
        values = _read_objects(series)
        kinds = set(map(type, values)) - {NoneType}
        if len(kinds) > 1 or not kinds <= {bool, int, float, str}:
            return None
    try:
        array = _combine_chunks(pa.array(values, from_pandas=True))
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        return None
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
    # NaN is how pandas writes a missing number; in other tables it is a value.
    if pa.types.is_floating(array.type):
        array = pc.if_else(pc.is_nan(array), None, array)
    return array


def _read_objects(series: pd.Series[Any]) -> list[Any]:
    """Return the values as Python objects; None for each that pandas takes for missing."""
    missing = series.isna().tolist()
    return [
        None if is_missing else value
        for value, is_missing in zip(series.tolist(), missing, strict=True)
    ]
