"""Validate arrays that came from a file, before anything follows an index in them.

Kernels do not check bounds. A checksum finds what was damaged on the way; this finds what was
wrong when it was written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from headgate.errors import SqlError
from headgate.schema import Schema
from headgate.snapshot.arrays.atoms import (
    ATOM_FIELDS,
    COMPARE,
    CONSTANT,
    MATCHES,
    OPERATORS,
    SET_FORMS,
    WITHIN,
    EncodedAtoms,
)
from headgate.snapshot.arrays.operands import PATTERN_KINDS, pool_of
from headgate.snapshot.arrays.queries import EncodedQueries, decode_frames
from headgate.snapshot.arrays.texts import LENIENT, Texts
from headgate.snapshot.arrays.trees import AND, NOT, TRUTH, TRUTH_VALUES, Trees

_Numbers = npt.NDArray[Any]


def find_flaw(encoded: EncodedQueries, schema: Schema) -> str | None:
    """Return what is wrong with the arrays; None if every index in them can be followed.

    >>> from headgate.snapshot.arrays.queries import encode_queries
    >>> find_flaw(encode_queries([], Schema()), Schema()) is None
    True
    """
    # each check relies on those before it, and the first problem ends the search
    return next(_find_problems(encoded, schema), None)


def _find_problems(encoded: EncodedQueries, schema: Schema) -> Iterator[str]:
    # from what is read first to what relies on it: offsets, lengths, numbers, then meanings
    for name, texts in _list_texts(encoded):
        yield from _check_texts(name, texts)
    yield from _check_lengths(encoded)
    atoms = encoded.atoms
    yield from _check_columns(atoms, schema)
    yield from _check_atoms(atoms, schema)
    yield from _check_trees(encoded.trees, len(atoms))
    yield from _check_range("stream", encoded.stream, len(schema.streams))
    yield from _check_range("frame", encoded.frame, len(encoded.frames))
    yield from _check_frames(encoded, schema)
    yield from _check_column_owners(encoded)


def _list_texts(encoded: EncodedQueries) -> Iterator[tuple[str, Texts]]:
    yield "ids", encoded.ids
    yield "metadata", encoded.metadata
    yield "frames", encoded.frames
    yield "aliases", encoded.atoms.columns.alias
    yield "cuts", encoded.atoms.cuts.texts
    yield "patterns", encoded.atoms.patterns.text
    yield "escapes", encoded.atoms.patterns.escape


def find_text_flaw(name: str, texts: Texts) -> str | None:
    """Return what is wrong with strings; None if nothing is."""
    return next(_check_texts(name, texts), None)


def _check_texts(name: str, texts: Texts) -> Iterator[str]:
    yield from _check_offsets(name, texts.offsets, len(texts.data))
    try:
        texts.data.tobytes().decode("utf-8", LENIENT)
    except UnicodeDecodeError:
        yield f"{name} are not UTF-8"
    # a byte 10xxxxxx continues a character, so no string may begin there
    inner = texts.offsets[texts.offsets < len(texts.data)]
    if np.any((texts.data[inner] & 0xC0) == 0x80):
        yield f"{name} are cut inside a character"


def _check_offsets(name: str, offsets: _Numbers, length: int) -> Iterator[str]:
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != length:
        yield f"the offsets of {name} do not span them"
    if np.any(offsets[1:] < offsets[:-1]):
        yield f"the offsets of {name} go backwards"


def _check_lengths(encoded: EncodedQueries) -> Iterator[str]:
    atoms, count = encoded.atoms, len(encoded)
    lengths = {
        "ids": (len(encoded.ids), count),
        "metadata": (len(encoded.metadata), count),
        "has_metadata": (len(encoded.has_metadata), count),
        "frame": (len(encoded.frame), count),
        "trees": (len(encoded.trees.offsets) - 1, count),
        "attribute": (len(atoms.columns.attribute), len(atoms.columns)),
        "aliases": (len(atoms.columns.alias), len(atoms.columns)),
        "wide_low": (len(atoms.cuts.wide_low), len(atoms.cuts.wide_high)),
        "patterns": (len(atoms.patterns.text), len(atoms.patterns)),
        "escapes": (len(atoms.patterns.escape), len(atoms.patterns)),
    }
    for name in ATOM_FIELDS:
        lengths[name] = len(getattr(atoms, name)), len(atoms)
    for name, (actual, expected) in lengths.items():
        if actual != expected:
            yield f"{name} has {actual:,} entries where {expected:,} are needed"


def _check_columns(atoms: EncodedAtoms, schema: Schema) -> Iterator[str]:
    columns = atoms.columns
    yield from _check_range("stream of a column", columns.stream, len(schema.streams))
    # by stream, and then by column: the attributes that there are to name
    sizes = np.array([len(stream.attributes) for stream in schema], np.int64)
    yield from _check_range("attribute", columns.attribute, sizes[columns.stream])
    yield from _check_range("pattern kind", atoms.patterns.kind, len(PATTERN_KINDS))


def _check_atoms(atoms: EncodedAtoms, schema: Schema) -> Iterator[str]:
    yield from _check_range("kind", atoms.kind, MATCHES + 1)
    for name in ("negated", "starts_inside"):
        yield from _check_range(name, getattr(atoms, name), 2)
    constant, compare = atoms.kind == CONSTANT, atoms.kind == COMPARE
    within = atoms.kind == WITHIN
    yield from _check_range("truth value", atoms.code[constant], len(TRUTH_VALUES))
    yield from _check_range("operator", atoms.code[compare], len(OPERATORS))
    yield from _check_range("form of a set", atoms.code[within], len(SET_FORMS))
    yield from _check_range("column", atoms.column[~constant], len(atoms.columns))
    yield from _check_range("second column", atoms.second[compare], len(atoms.columns))
    # a number that is not used must be −1, or it might be followed all the same
    if np.any(atoms.column[constant] != -1) or np.any(atoms.second[~compare] != -1):
        yield "an atom has more columns than its kind"
    # ranges: of a WITHIN in the pool of its column's type, of a MATCHES in the patterns
    limits = np.full(len(atoms), len(atoms.patterns), np.int64)
    limits[within] = _find_pool_sizes(atoms, schema)[atoms.column[within]]
    ranged = within | (atoms.kind == MATCHES)
    start, end = atoms.start[ranged], atoms.end[ranged]
    if np.any((start < 0) | (end < start) | (end > limits[ranged])):
        yield "an atom's range lies outside its pool"
    if np.any((atoms.end - atoms.start)[atoms.kind == MATCHES] != 1):
        yield "an atom does not have one pattern"


def _find_pool_sizes(atoms: EncodedAtoms, schema: Schema) -> _Numbers:
    """Return for each column how many cuts its pool holds."""
    columns, sizes = atoms.columns, atoms.cuts.sizes
    pairs = zip(columns.stream.tolist(), columns.attribute.tolist(), strict=True)
    types = (schema.streams[stream].attributes[attribute].type for stream, attribute in pairs)
    return np.array([sizes[pool_of(type_)] for type_ in types], np.int64)


def _check_trees(trees: Trees, atoms: int) -> Iterator[str]:
    """Check that every program leaves exactly one value, and never takes more than there are."""
    offsets, program = trees.offsets, trees.program
    yield from _check_offsets("trees", offsets, len(program))
    if np.any(program >= atoms):
        yield "a program names an atom that does not exist"
    # −2 to −7 mean nothing; the masks of TRUTH are −8 to −15, and AND and OR lie below
    if np.any((program < NOT) & (program > TRUTH)):
        yield "a program has an unknown entry"
    if np.any(offsets[1:] == offsets[:-1]):
        yield "a program is empty"
    # how many values each entry takes from the stack; it always leaves one
    popped = np.where(program <= AND, (AND - program.astype(np.int64)) // 2, program < 0)
    # the height of one stack for all programs together; it grows by one with each
    height = np.concatenate(([0], np.cumsum(1 - popped)))
    floor = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    if np.any(height[offsets] != np.arange(len(offsets))) or np.any(height[:-1] - popped < floor):
        yield "a program does not leave one value"


def _check_frames(encoded: EncodedQueries, schema: Schema) -> Iterator[str]:
    try:
        frames = decode_frames(encoded.frames, schema)
    except SqlError as error:
        yield f"a frame is not a query of the schema ({error})"
        return
    # a frame says which stream a query reads, and so does the array `stream`
    names = [stream.name for stream in schema]
    streams = np.array([names.index(frame.stream_name) for frame in frames], np.int32)
    if np.any(streams[encoded.frame] != encoded.stream):
        yield "a query and its frame name different streams"


def _check_column_owners(encoded: EncodedQueries) -> Iterator[str]:
    """Check that a column without an alias belongs to the stream of the query that mentions it."""
    atoms, trees = encoded.atoms, encoded.trees
    if not len(atoms.columns):
        return
    # the stream that each column must belong to, −1 for any
    owner = np.where(np.diff(atoms.columns.alias.offsets) == 0, atoms.columns.stream, -1)
    owners = np.where(atoms.kind == CONSTANT, -1, owner[atoms.column])
    streams = np.repeat(encoded.stream, np.diff(trees.offsets))
    pushed = trees.program >= 0
    column_streams = owners[trees.program[pushed]]
    if np.any((column_streams >= 0) & (column_streams != streams[pushed])):
        yield "a query mentions a column of another stream"


def _check_range(name: str, numbers: _Numbers, limit: int | _Numbers) -> Iterator[str]:
    if np.any((numbers < 0) | (numbers >= limit)):
        yield f"{name}: a number is out of range"
