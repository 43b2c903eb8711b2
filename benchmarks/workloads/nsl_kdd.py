"""Network connections from NSL-KDD: 41 features of each, and whether it was an attack.

The data set is not part of Headgate: give the directory that holds `fields.csv`, a line for each
feature with its name and `symbolic` or `continuous`, and `train_20_percent.csv`, 25,192 connections
without a header, each with its features, a label and how difficult it is to classify.

Tavallaee, Bagheri, Lu, Ghorbani: "A detailed analysis of the KDD CUP 99 data set".
"""

from __future__ import annotations

import csv
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from headgate.errors import UsageError
from headgate.schema import DOUBLE, INT, STRING, Attribute, Stream, Type

FIELDS, CONNECTIONS = "fields.csv", "train_20_percent.csv"
LABEL, DIFFICULTY = "label", "difficulty"
SYMBOLIC, CONTINUOUS = "symbolic", "continuous"


def nsl_kdd(directory: str | PathLike[str]) -> tuple[Stream, pa.Table]:
    """The stream `connections`, and the connections in their order.

    What is symbolic is STRING. What is continuous is INT where all values are whole (where
    they are too large for that), and DOUBLE elsewhere.
    """
    from pyarrow import csv as arrow_csv

    folder = Path(directory)
    kinds = _kinds(_present(folder, FIELDS)) | {LABEL: SYMBOLIC, DIFFICULTY: CONTINUOUS}
    types: dict[str, pa.DataType] = {
        name: pa.string() if kind == SYMBOLIC else pa.float64() for name, kind in kinds.items()
    }
    file = _present(folder, CONNECTIONS)
    try:
        table = arrow_csv.read_csv(
            file,
            read_options=arrow_csv.ReadOptions(column_names=list(kinds)),
            convert_options=arrow_csv.ConvertOptions(column_types=types),
        )
    except pa.ArrowInvalid as error:
        raise UsageError(f"{file} does not fit {FIELDS} beside it: {error}") from None
    attributes = tuple(Attribute(name, _type(table[name])) for name in kinds)
    schema = pa.schema([(a.name, a.type.arrow) for a in attributes])
    return Stream("connections", attributes), table.cast(schema)


def _present(folder: Path, name: str) -> Path:
    file = folder / name
    if not file.is_file():
        raise UsageError(
            f"no {name} in {folder}; NSL-KDD is a directory with {FIELDS} and {CONNECTIONS}"
        )
    return file


def _kinds(file: Path) -> dict[str, str]:
    """The features by name, in order, and what kind of value each has."""
    with file.open(newline="") as lines:
        rows = list(csv.reader(lines))
    for number, row in enumerate(rows, start=1):
        if len(row) != 2 or row[1] not in (SYMBOLIC, CONTINUOUS):
            raise UsageError(
                f"{file}:{number}: {','.join(row)!r} is not a name and {SYMBOLIC} or {CONTINUOUS}"
            )
    return dict(rows)


def _type(column: pa.ChunkedArray[Any]) -> Type:
    if pa.types.is_string(column.type):
        return STRING
    values = column.to_numpy()
    return INT if np.array_equal(values, values.astype(np.int32)) else DOUBLE
