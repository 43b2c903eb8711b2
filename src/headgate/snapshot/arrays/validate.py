"""Validate arrays that came from a file, before anything follows an index in them.

A checksum finds what was damaged on the way; this finds what was wrong when it was written. Kernels
check nothing, and rely on more than indexes that lie in their arrays:

| who                          | relies on                                                         |
|------------------------------|-------------------------------------------------------------------|
| all                          | offsets that ascend and span their data; arrays of equal length   |
| `encoding.code_book`         | cuts inside the column's type, strictly ascending in each atom;   |
|                              | ranges that share no cut, or their sizes would multiply           |
| `keyed.kernels.entries`      | intervals of codes that are disjoint: a query that two of them    |
|                              | lead to is put out twice, behind the end of the output            |
| `keyed.kernels.keys`,        | programs that leave one value, and never take more than there are |
| `keyed.kernels.programs`     |                                                                   |
| `keyed.segment`              | patterns on STRING columns only: there ranks of texts index       |
|                              | arrays; one atom for each pattern of a column, negated or not     |
| `events.columns`             | columns of the query's own streams, compared within a family      |
| objects made from the arrays | patterns that have a meaning, trees that recursion can follow     |

What follows from the way queries are encoded is checked too, where it makes a check simpler: a
field that a kind of atom does not use is 0 or −1, and the atoms' ranges tile their pool in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from headgate.errors import SqlError
from headgate.predicate import TRUE
from headgate.predicate.pattern import PatternRefused
from headgate.queries import Query
from headgate.schema import Schema, String, Type
from headgate.snapshot.arrays.atoms import (
    ATOM_FIELDS,
    COMPARE,
    MATCHES,
    OPERATORS,
    SET_FORMS,
    WITHIN,
    EncodedAtoms,
)
from headgate.snapshot.arrays.operands import (
    NUMBERS,
    PATTERN_KINDS,
    TEXTS,
    WIDE,
    ColumnTable,
    Patterns,
    decode_columns,
    decode_patterns,
    pool_of,
    split_wide,
)
from headgate.snapshot.arrays.queries import EncodedQueries, decode_frames
from headgate.snapshot.arrays.texts import LENIENT, Texts, unpack
from headgate.snapshot.arrays.trees import AND, NOT, OR, TRUTH, TRUTH_VALUES, Trees
from headgate.sql.query import MAX_ID_LENGTH, find_id_problem

MAX_DEPTH = 400  # of a condition; SQL has a limit of its own, which leads to less

_Numbers = npt.NDArray[Any]
_Mask = npt.NDArray[np.bool_]
_NONE, _UNUSED, _FLAG = (-1, -1), (0, 0), (0, 1)  # least and greatest


def find_flaw(encoded: EncodedQueries, schema: Schema) -> str | None:
    """Return what is wrong with the arrays, by their names; None if kernels may read them.

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
    yield from _check_columns(atoms.columns, schema)
    types = [column.type for column in decode_columns(atoms.columns, schema)]
    yield from _check_atoms(atoms, types)
    yield from _check_cuts(atoms, types)
    yield from _check_patterns(atoms.patterns)
    yield from _check_trees(encoded.trees, len(atoms))
    yield from _check_queries(encoded, schema)
    try:
        frames = decode_frames(encoded.frames, schema)
    except SqlError as error:
        yield f"frames: not all are queries of the schema ({error})"
        return
    yield from _check_frames(encoded, frames, schema)
    yield from _check_sources(encoded, frames, schema)


def _list_texts(encoded: EncodedQueries) -> Iterator[tuple[str, Texts]]:
    yield "ids", encoded.ids
    yield "metadata", encoded.metadata
    yield "frames", encoded.frames
    yield "atoms.columns.alias", encoded.atoms.columns.alias
    yield "atoms.cuts.texts", encoded.atoms.cuts.texts
    yield "atoms.patterns.text", encoded.atoms.patterns.text
    yield "atoms.patterns.escape", encoded.atoms.patterns.escape


def find_text_flaw(name: str, texts: Texts) -> str | None:
    """Return what is wrong with strings; None if nothing is."""
    return next(_check_texts(name, texts), None)


def _check_texts(name: str, texts: Texts) -> Iterator[str]:
    yield from _check_offsets(f"{name}.offsets", texts.offsets, len(texts.data))
    try:
        texts.data.tobytes().decode("utf-8", LENIENT)
    except UnicodeDecodeError as error:
        yield f"{name}.data[{error.start}] is not UTF-8"
    # a byte 10xxxxxx continues a character, so no string may begin there
    begins = texts.offsets[texts.offsets < len(texts.data)]
    is_inside = (texts.data[begins] & 0xC0) == 0x80
    yield from _report(f"{name}.offsets", is_inside, begins, "which is inside a character")


def _check_offsets(name: str, offsets: _Numbers, length: int) -> Iterator[str]:
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != length:
        yield f"{name} does not lead from 0 to {length:,}"
    yield from _report(name, offsets[1:] < offsets[:-1], offsets, "and the next one is less")


def _report(name: str, is_wrong: _Mask, values: _Numbers, why: str) -> Iterator[str]:
    """Yield the first entry of an array that is wrong."""
    if np.any(is_wrong):
        place = int(np.argmax(is_wrong))
        yield f"{name}[{place}] is {values[place]}, {why}"


def _check_range(name: str, numbers: _Numbers, limit: int | _Numbers) -> Iterator[str]:
    is_outside = (numbers < 0) | (numbers >= limit)
    yield from _report(name, is_outside, numbers, "which is out of range")


def _check_lengths(encoded: EncodedQueries) -> Iterator[str]:
    atoms, count = encoded.atoms, len(encoded)
    lengths = {
        "ids": (len(encoded.ids), count),
        "metadata": (len(encoded.metadata), count),
        "has_metadata": (len(encoded.has_metadata), count),
        "frame": (len(encoded.frame), count),
        "trees.offsets": (len(encoded.trees.offsets), count + 1),
        "atoms.columns.attribute": (len(atoms.columns.attribute), len(atoms.columns)),
        "atoms.columns.alias": (len(atoms.columns.alias), len(atoms.columns)),
        "atoms.cuts.wide_low": (len(atoms.cuts.wide_low), len(atoms.cuts.wide_high)),
        "atoms.patterns.text": (len(atoms.patterns.text), len(atoms.patterns)),
        "atoms.patterns.escape": (len(atoms.patterns.escape), len(atoms.patterns)),
    }
    for name in ATOM_FIELDS:
        lengths[f"atoms.{name}"] = len(getattr(atoms, name)), len(atoms)
    for name, (actual, expected) in lengths.items():
        if actual != expected:
            yield f"{name} has {actual:,} entries where {expected:,} are needed"


def _check_columns(columns: ColumnTable, schema: Schema) -> Iterator[str]:
    yield from _check_range("atoms.columns.stream", columns.stream, len(schema.streams))
    # by stream, and then by column: the attributes that there are to name
    sizes = np.array([len(stream.attributes) for stream in schema], np.int64)
    yield from _check_range("atoms.columns.attribute", columns.attribute, sizes[columns.stream])
    fields = (columns.stream.tolist(), columns.attribute.tolist(), unpack(columns.alias))
    if len(set(zip(*fields, strict=True))) != len(columns):
        yield "atoms.columns has a column twice"


def _check_atoms(atoms: EncodedAtoms, types: list[Type]) -> Iterator[str]:
    """Check every field of an atom against what its kind allows."""
    yield from _check_range("atoms.kind", atoms.kind, MATCHES + 1)
    column, pattern = (0, len(atoms.columns) - 1), (0, len(atoms.patterns) - 1)
    anywhere = (0, np.iinfo(np.int64).max)  # `_check_cuts` says more
    # by kind: CONSTANT, WITHIN, IS_NULL, COMPARE, MATCHES
    truths, forms, operators = (
        (0, len(codes) - 1) for codes in (TRUTH_VALUES, SET_FORMS, OPERATORS)
    )
    limits = {
        "column": (_NONE, column, column, column, column),
        "second": (_NONE, _NONE, _NONE, column, _NONE),
        "code": (truths, forms, _UNUSED, operators, _UNUSED),
        "negated": (_UNUSED, _UNUSED, _FLAG, _UNUSED, _FLAG),
        "starts_inside": (_UNUSED, _FLAG, _UNUSED, _UNUSED, _UNUSED),
        "start": (_UNUSED, anywhere, _UNUSED, _UNUSED, pattern),
        "end": (_UNUSED, anywhere, _UNUSED, _UNUSED, anywhere),
    }
    for name, by_kind in limits.items():
        # (kinds, 2), and from it the least and the greatest for each atom
        least, greatest = np.array(by_kind, np.int64)[atoms.kind].T
        values = getattr(atoms, name)
        is_outside = (values < least) | (values > greatest)
        yield from _report(f"atoms.{name}", is_outside, values, "which its kind does not allow")
    is_match = atoms.kind == MATCHES
    many = is_match & (atoms.end - 1 != atoms.start)
    yield from _report("atoms.end", many, atoms.end, "but a pattern is one")
    yield from _check_types(atoms, types)
    yield from _check_distinct(atoms)


def _check_types(atoms: EncodedAtoms, types: list[Type]) -> Iterator[str]:
    """Check that patterns are on texts, and that what is compared has a common order."""
    # by column, with one more entry for −1
    is_text = np.array([*(isinstance(type_, String) for type_ in types), False])
    families = sorted({type_.family for type_ in types})
    family = np.array([*(families.index(type_.family) for type_ in types), -1])
    wrong = (atoms.kind == MATCHES) & ~is_text[atoms.column]
    yield from _report("atoms.column", wrong, atoms.column, "but a pattern needs a STRING")
    apart = (atoms.kind == COMPARE) & (family[atoms.column] != family[atoms.second])
    yield from _report("atoms.second", apart, atoms.second, "which its column is not comparable to")


def _check_distinct(atoms: EncodedAtoms) -> Iterator[str]:
    """Check that no atom but a WITHIN stands twice: an index would keep one of the two."""
    others = np.flatnonzero(atoms.kind != WITHIN)
    # an atom has a second column or a pattern, never both
    operand = np.maximum(atoms.second[others], atoms.start[others]) + 1
    radix = max(len(atoms.columns), len(atoms.patterns)) + 1
    place = (atoms.column[others].astype(np.int64) + 1) * radix + operand
    rest = (atoms.kind[others] * 8 + atoms.code[others]) * 2 + atoms.negated[others]
    keys = place * 128 + rest
    if len(np.unique(keys)) != len(keys):
        yield "atoms has an atom twice"


def _check_cuts(atoms: EncodedAtoms, types: list[Type]) -> Iterator[str]:
    """Check that the cuts of each atom ascend, and lie inside the type of its column."""
    cuts = atoms.cuts
    pool_of_column = np.array([*map(pool_of, types), -1])
    is_within = atoms.kind == WITHIN
    sizes = dict(zip((NUMBERS, WIDE, TEXTS), cuts.sizes, strict=True))
    for pool, name in ((NUMBERS, "numbers"), (WIDE, "wide_high"), (TEXTS, "texts")):
        inside = is_within & (pool_of_column[atoms.column] == pool)
        start, end = atoms.start[inside], atoms.end[inside]
        # one atom's cuts behind those of the one before it
        if np.any(end < start) or not np.array_equal(
            np.append(0, end), np.append(start, sizes[pool])
        ):
            yield f"atoms.start and atoms.end do not divide atoms.cuts.{name} among the atoms"
        columns = np.repeat(atoms.column[inside], end - start)
        is_first = np.zeros(sizes[pool] + 1, np.bool_)
        is_first[start] = True
        if pool == NUMBERS:
            checks = _compare_numbers(cuts.numbers, columns, types)
        elif pool == WIDE:
            checks = _compare_wide(cuts.wide_high, cuts.wide_low, columns, types)
        else:
            checks = _compare_texts(cuts.texts)
        is_inside, ascends = checks
        if not np.all(is_inside):
            yield f"atoms.cuts.{name}[{np.argmin(is_inside)}] lies outside the type of its column"
        ascends = np.append(True, ascends)[: sizes[pool]] | is_first[:-1]
        if not np.all(ascends):
            yield f"atoms.cuts.{name}[{np.argmin(ascends)}] is not above the cut before it"


def _compare_numbers(cuts: _Numbers, columns: _Numbers, types: list[Type]) -> tuple[_Mask, _Mask]:
    """Return whether each cut is inside its column's type, and less than the next."""
    bounds = [
        (type_.minimum, type_.maximum) if pool_of(type_) == NUMBERS else (0, 0) for type_ in types
    ]
    least, greatest = np.array([*bounds, (0, 0)], np.int64)[columns].T
    # the least value of a type is no cut: nothing lies below it
    return (least < cuts) & (cuts <= greatest), cuts[:-1] < cuts[1:]


def _compare_wide(
    high: _Numbers, low: _Numbers, columns: _Numbers, types: list[Type]
) -> tuple[_Mask, _Mask]:
    """Return the same for cuts of more than 64 bits, in two halves."""
    least, greatest = (
        split_wide([getattr(type_, end) if pool_of(type_) == WIDE else 0 for type_ in types])
        for end in ("minimum", "maximum")
    )
    above = _precedes((least[0][columns], least[1][columns]), (high, low))
    beyond = _precedes((greatest[0][columns], greatest[1][columns]), (high, low))
    return above & ~beyond, _precedes((high[:-1], low[:-1]), (high[1:], low[1:]))


def _precedes(left: tuple[_Numbers, _Numbers], right: tuple[_Numbers, _Numbers]) -> _Mask:
    is_less: _Mask = (left[0] < right[0]) | ((left[0] == right[0]) & (left[1] < right[1]))
    return is_less


def _compare_texts(cuts: Texts) -> tuple[_Mask, _Mask]:
    """Return the same for strings, of which the empty one is the least."""
    strings = cuts.arrow()
    ascends = pc.less(strings[:-1], strings[1:]) if len(cuts) else strings
    return np.diff(cuts.offsets) > 0, np.asarray(ascends, np.bool_)


def _check_patterns(patterns: Patterns) -> Iterator[str]:
    yield from _check_range("atoms.patterns.kind", patterns.kind, len(PATTERN_KINDS))
    for place, pattern in enumerate(decode_patterns(patterns)):
        try:
            _ = pattern.matcher
        except PatternRefused as error:
            yield f"atoms.patterns.text[{place}] is no pattern: {error}"


def _check_trees(trees: Trees, atoms: int) -> Iterator[str]:
    """Check that every program leaves exactly one value, and never takes more than there are."""
    offsets, program = trees.offsets, trees.program
    name = "trees.program"
    yield from _check_offsets("trees.offsets", offsets, len(program))
    yield from _report(name, program >= atoms, program, "but there is no such atom")
    # −2 to −7 mean nothing; the masks of TRUTH are −8 to −15, and AND and OR lie below
    is_unknown = (program < NOT) & (program > TRUTH)
    yield from _report(name, is_unknown, program, "which means nothing")
    yield from _report("trees.offsets", offsets[1:] == offsets[:-1], offsets, "as is the next one")
    is_empty = (program == AND) | (program == OR)
    yield from _report(name, is_empty, program, "which is an AND or OR of nothing")
    # how many values each entry takes from the stack; it always leaves one
    popped = np.where(program <= AND, (AND - program.astype(np.int64)) // 2, program < 0)
    # the height of one stack for all programs together; it grows by one with each
    height = np.concatenate(([0], np.cumsum(1 - popped)))
    floor = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    is_short = height[:-1] - popped < floor
    yield from _report(name, is_short, program, "which takes more values than there are")
    if np.any(height[offsets] != np.arange(len(offsets))):
        query = int(np.argmax(height[offsets] != np.arange(len(offsets)))) - 1
        yield f"{name}: the program of query {query} does not leave one value"
    # no deeper than it has operators; the few that have many are looked at one by one
    operators = np.diff(np.concatenate(([0], np.cumsum(program < 0)))[offsets])
    for query in np.flatnonzero(operators > MAX_DEPTH).tolist():
        if _measure_depth(program[offsets[query] : offsets[query + 1]].tolist()) > MAX_DEPTH:
            yield f"{name}: the program of query {query} is deeper than {MAX_DEPTH} operators"


def _measure_depth(program: Iterable[int]) -> int:
    """Return how many operators stand above the deepest atom."""
    depths: list[int] = []
    for entry in program:
        parts = 0 if entry >= 0 else (AND - entry) // 2 if entry <= AND else 1
        start = len(depths) - parts
        depth = max(depths[start:], default=0)
        del depths[start:]
        depths.append(depth + (entry < 0))
    return depths[0]


def _check_queries(encoded: EncodedQueries, schema: Schema) -> Iterator[str]:
    yield from _check_range("stream", encoded.stream, len(schema.streams))
    yield from _check_range("frame", encoded.frame, len(encoded.frames))
    yield from _check_range("has_metadata", encoded.has_metadata, 2)
    has_text = np.diff(encoded.metadata.offsets) > 0
    wrong = has_text & (encoded.has_metadata == 0)
    yield from _report("has_metadata", wrong, encoded.has_metadata, "but there is a text")
    yield from _check_ids(encoded.ids)


def _check_ids(ids: Texts) -> Iterator[str]:
    """Check that each id is one, and its own; only doubtful ones are looked at one by one."""
    if pc.count_distinct(ids.arrow()).as_py() != len(ids):
        yield "ids: two queries have the same id"
    lengths = np.diff(ids.offsets)
    doubtful = (lengths == 0) | (lengths > MAX_ID_LENGTH)
    nulls = np.flatnonzero(ids.data == 0)
    doubtful[np.searchsorted(ids.offsets, nulls, side="right") - 1] = True
    for number in np.flatnonzero(doubtful).tolist():
        start, end = ids.offsets[number : number + 2]
        problem = find_id_problem(ids.data[start:end].tobytes().decode(errors="replace"))
        if problem:
            yield f"ids[{number}]: {problem}"


def _check_frames(encoded: EncodedQueries, frames: list[Query], schema: Schema) -> Iterator[str]:
    for number, frame in enumerate(frames):
        if frame.where != TRUE:
            yield f"frames[{number}] has a WHERE, which stands in trees"
    # a frame says which stream a query reads, and so does the array `stream`
    numbers = {stream.name: number for number, stream in enumerate(schema)}
    streams = np.array([numbers[frame.stream_name] for frame in frames], np.int32)
    differs = streams[encoded.frame] != encoded.stream
    yield from _report("stream", differs, encoded.stream, "and its frame names another stream")


def _check_sources(encoded: EncodedQueries, frames: list[Query], schema: Schema) -> Iterator[str]:
    """Check that each query mentions columns of its own sources only."""
    atoms, trees, columns = encoded.atoms, encoded.trees, encoded.atoms.columns
    # the alias and stream of each column, as one number; a query of one source has no aliases
    names = [stream.name for stream in schema]
    known: dict[tuple[str, str], int] = {}
    pairs = zip(unpack(columns.alias), columns.stream.tolist(), strict=True)
    source_of = [known.setdefault((alias, names[s]), len(known)) for alias, s in pairs]
    # all that frames allow, as frame · sources + source
    allowed = [
        number * len(known) + known[key]
        for number, frame in enumerate(frames)
        for key in _list_sources(frame)
        if key in known
    ]
    allowed_keys = np.array([*sorted(allowed), np.iinfo(np.int64).max])
    source = np.array([*source_of, -1], np.int64)
    is_atom = trees.program >= 0
    mentioned = trees.program[is_atom]
    frame = np.repeat(encoded.frame.astype(np.int64), np.diff(trees.offsets))[is_atom]
    for column in (atoms.column, atoms.second):
        sources = source[column][mentioned]
        keys = frame * len(known) + sources
        is_allowed = allowed_keys[np.searchsorted(allowed_keys, keys)] == keys
        wrong = np.zeros(len(trees.program), np.bool_)
        wrong[is_atom] = (sources >= 0) & ~is_allowed
        why = "an atom on a column that its query does not read"
        yield from _report("trees.program", wrong, trees.program, why)


def _list_sources(frame: Query) -> Iterator[tuple[str, str]]:
    """Yield the aliases under which the columns of a frame are written, and their streams."""
    for source in frame.sources:
        yield source.alias if len(frame.sources) > 1 else "", source.stream.name
