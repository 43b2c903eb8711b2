"""Files of arrays: written whole, synced to the disk, and read whole into memory.

They are not mapped where they lie, which is often a directory that others write to: a file that is
cut while it is mapped ends the process (SIGBUS), and one that is written to changes arrays that
were validated. What is mapped is a copy that the machine has made (`machine_cache`).

A file is an Arrow IPC file with a single row, in which each array is a list. So arrays of any
lengths share one file under their names, and whatever reads Arrow can look inside. One `.npy` file
per array was the alternative: over thirty a segment, each to be synced, linked and read.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import fields, replace
from mmap import mmap
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


def check_size(path: Path, size: int) -> None:
    """Raise a SnapshotError unless there is a file of this size."""
    try:
        if not path.is_file():
            raise SnapshotError(f"{path}: is missing")
        actual = path.stat().st_size
    except OSError as error:
        raise SnapshotError(f"{path}: cannot be read ({error.strerror})") from None
    if actual != size:
        raise SnapshotError(f"{path}: has {actual:,} bytes, the manifest says {size:,}")


def read_content(path: Path, size: int) -> bytes:
    """Return what is in a file, which must have this size."""
    # a file of another size is not read, however large it is
    check_size(path, size)
    try:
        with path.open("rb") as file:
            content = file.read(size)
    except OSError as error:
        raise SnapshotError(f"{path}: cannot be read ({error.strerror})") from None
    except MemoryError:
        raise SnapshotError(f"{path}: its {size:,} bytes do not fit into memory") from None
    # cut in the meantime
    if len(content) != size:
        raise SnapshotError(f"{path}: has {len(content):,} bytes, the manifest says {size:,}")
    return content


def parse_arrays(content: bytes | mmap, layout: Arrays, *, is_verified: bool = False) -> Arrays:
    """Return the arrays in the content of a file, as views of it that cannot be written.

    Raise ValueError if it is no such file, or if names or types differ from `layout`. Content that
    `is_verified` was parsed before, and is not looked through again.
    """
    try:
        reader = pa.ipc.open_file(pa.py_buffer(content))
        batch = reader.get_batch(0) if reader.num_record_batches == 1 else None
        if batch is not None and not is_verified:
            batch.validate(full=True)
    except (OSError, pa.ArrowException) as error:
        raise ValueError(f"not an Arrow file ({error})") from None
    # exactly this schema: an unchecked kernel would read other types as numbers of its own
    typed_names = [(name, pa.from_numpy_dtype(values.dtype)) for name, values in layout.items()]
    expected = pa.schema([pa.field(name, pa.large_list(inner)) for name, inner in typed_names])
    if batch is None or batch.schema != expected or batch.num_rows != 1:
        raise ValueError("its arrays are not those of such a segment")
    arrays = {}
    for (name, expected_values), column in zip(layout.items(), batch.columns, strict=True):
        assert isinstance(column, pa.LargeListArray)
        flat: Any = column.flatten()
        if column.null_count or flat.null_count:
            raise ValueError(f"{name} has a NULL")
        # not `to_numpy`, which imports pandas
        _, values = flat.buffers()
        dtype = expected_values.dtype
        offset = flat.offset * dtype.itemsize
        arrays[name] = np.frombuffer(values or b"", dtype, len(flat), offset)
        # which Arrow allows, but kernels do not expect
        if not arrays[name].flags.aligned:
            raise ValueError(f"{name} does not begin at a multiple of its width")
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


def checksum_content(content: bytes) -> str:
    """Return the digest that a file of this content has."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


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
