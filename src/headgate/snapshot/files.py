"""Files of arrays: written whole, synced to the disk, and mapped into memory without a copy.

A file is an Arrow IPC file with a single row, in which each array is a list. So arrays of any
lengths share one file under their names, and whatever reads Arrow can look inside. One `.npy` file
per array was the alternative: over thirty a segment, each to be synced, linked and mapped.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.errors import SnapshotError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    T = TypeVar("T", bound=DataclassInstance)
else:
    T = TypeVar("T")

Arrays = Mapping[str, npt.NDArray[Any]]


def write_arrays(path: Path, arrays: Arrays) -> None:
    """Write arrays by name; the file is on the disk when this returns."""
    # one row: the list that is an array, from 0 to its length
    columns = [
        pa.LargeListArray.from_arrays(pa.array([0, len(values)], pa.int64()), pa.array(values))
        for values in arrays.values()
    ]
    batch = pa.RecordBatch.from_arrays(columns, names=list(arrays))
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    sync(path)


def read_arrays(path: Path, layout: Arrays) -> Arrays:
    """Return the arrays of a file, mapped; raise if names or types differ from `layout`."""
    try:
        with pa.memory_map(str(path)) as source:
            batch = pa.ipc.open_file(source).get_batch(0)
        batch.validate()
    except (OSError, pa.ArrowException) as error:
        raise SnapshotError(f"{path}: not an Arrow file ({error})") from None
    # exactly this schema: an unchecked kernel would read other types as numbers of its own
    typed_names = [(name, pa.from_numpy_dtype(values.dtype)) for name, values in layout.items()]
    expected = pa.schema([pa.field(name, pa.large_list(inner)) for name, inner in typed_names])
    if batch.schema != expected or batch.num_rows != 1:
        raise SnapshotError(f"{path}: its arrays are not those of such a segment")
    arrays = {}
    for name, column in zip(layout, batch.columns, strict=True):
        assert isinstance(column, pa.LargeListArray)
        # a view of the mapped file: nothing is read before it is used
        arrays[name] = np.asarray(column.flatten().to_numpy())
    return arrays


def flatten_arrays(encoded: DataclassInstance, prefix: str = "") -> dict[str, npt.NDArray[Any]]:
    """Return every array of nested dataclasses under its path of field names.

    >>> from headgate.snapshot.arrays.texts import pack
    >>> {name: array.tolist() for name, array in flatten_arrays(pack(["a"])).items()}
    {'offsets': [0, 1], 'data': [97]}
    """
    arrays: dict[str, npt.NDArray[Any]] = {}
    for field in fields(encoded):
        value, name = getattr(encoded, field.name), prefix + field.name
        if isinstance(value, np.ndarray):
            arrays[name] = value
        else:
            arrays.update(flatten_arrays(value, f"{name}."))
    return arrays


def assemble_arrays(template: T, arrays: Arrays, prefix: str = "") -> T:
    """Return a dataclass of the template's shape that holds these arrays."""
    values: dict[str, Any] = {}
    for field in fields(template):
        value, name = getattr(template, field.name), prefix + field.name
        # a field is an array, or a dataclass of arrays under its own prefix
        inner = not isinstance(value, np.ndarray)
        values[field.name] = assemble_arrays(value, arrays, f"{name}.") if inner else arrays[name]
    return replace(template, **values)


def checksum(path: Path) -> str:
    """Return the BLAKE2b digest of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def sync(path: Path) -> None:
    """Flush a file, or the list of names in a directory, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def link_or_copy(source: Path, target: Path) -> None:
    """Give a file another name: by a hard link, or by a copy where links fail.

    A linked file stays when the directory that it came from is deleted. Links fail between file
    systems, on those that have none, and past some number of them.
    """
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
        sync(target)
