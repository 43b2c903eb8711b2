"""Files of arrays: written whole, synced to the disk, and mapped into memory without a copy.

A file is an Arrow IPC file with a single row, in which each array is a list. So arrays of any
lengths share one file under their names, and whatever reads Arrow can look inside. One `.npy` file
per array was the alternative: over thirty a segment, each to be synced, linked and mapped.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa

from headgate.errors import SnapshotError
from headgate.snapshot.arrays.arrays import Arrays


def write_arrays(path: Path, arrays: Arrays) -> None:
    """Write arrays by name; the file is on the disk when this returns."""
    columns = [
        pa.LargeListArray.from_arrays(pa.array([0, len(values)], pa.int64()), pa.array(values))
        for values in arrays.values()
    ]
    batch = pa.RecordBatch.from_arrays(columns, names=list(arrays))
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    sync(path)


def read_arrays(path: Path, layout: Arrays) -> Arrays:
    """The arrays of a file, mapped; it must have exactly the names and types of `layout`."""
    try:
        with pa.memory_map(str(path)) as source:
            batch = pa.ipc.open_file(source).get_batch(0)
        batch.validate()
    except (OSError, pa.ArrowException) as error:
        raise SnapshotError(f"{path}: not an Arrow file ({error})") from None
    wanted = [(name, pa.from_numpy_dtype(values.dtype)) for name, values in layout.items()]
    expected = pa.schema([pa.field(name, pa.large_list(inner)) for name, inner in wanted])
    if batch.schema != expected or batch.num_rows != 1:
        raise SnapshotError(f"{path}: its arrays are not those of such a segment")
    found = {}
    for name, column in zip(layout, batch.columns, strict=True):
        assert isinstance(column, pa.LargeListArray)
        found[name] = np.asarray(column.flatten().to_numpy())
    return found


def checksum(path: Path) -> str:
    """The BLAKE2b digest of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def sync(path: Path) -> None:
    """Have the disk hold what a file, or the list of names in a directory, is now."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def link_or_copy(source: Path, target: Path) -> None:
    """The same content under another name: a hard link, or a copy where there are none.

    A linked file stays when the directory that it came from is deleted. Links fail between file
    systems, on those that have none, and past some number of them.
    """
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
        sync(target)
