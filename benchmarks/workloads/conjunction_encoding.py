"""From conjunctions to `EncodedQueries`, arrays to arrays.

The result is the same, number by number, as if the queries had been read from their WHERE clauses
and encoded one by one: atoms, columns and cuts are numbered in the order of first occurrence, which
is the order in which Arrow builds a dictionary.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.workloads.integer_events import (
    EQUAL,
    IN,
    Codes,
    Mask,
    from_below,
    has_list,
    refuses,
    to_above,
)
from headgate.predicate import TRUE
from headgate.queries import Query, Source
from headgate.snapshot.arrays import EncodedAtoms, EncodedQueries, Texts, Trees, encode_queries
from headgate.snapshot.arrays.atoms import SET_FORMS, WITHIN
from headgate.snapshot.arrays.trees import AND

if TYPE_CHECKING:
    from benchmarks.workloads.conjunctions import Conjunctions

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Runs:
    """Stretches of values without a gap: run j belongs to `owner[j]` and is `start` up to `end`.

    Where `from_below` is set there is no start: the run has all values below its end. `to_above`
    likewise.
    """

    owner: Indices
    start: Indices
    end: Indices
    from_below: Mask
    to_above: Mask


def encode(conjunctions: Conjunctions) -> EncodedQueries:
    """Return the queries as arrays."""
    count = len(conjunctions)
    schema, stream = conjunctions.schema, conjunctions.stream
    if count == 0:
        return encode_queries([], schema)
    single = encode_queries([Query("q", (Source(stream, stream.name),), TRUE)], schema)
    numbers, firsts = _number_keys(pa.array(_keys(conjunctions)))
    return EncodedQueries(
        ids=_ids(conjunctions.first, count),
        metadata=Texts(np.zeros(count + 1, np.int64), np.empty(0, np.uint8)),
        has_metadata=np.zeros(count, np.uint8),
        stream=np.zeros(count, np.int32),
        frame=np.zeros(count, np.int32),
        frames=single.frames,
        trees=_trees(conjunctions.offsets, numbers),
        atoms=_atoms(conjunctions, firsts, single.atoms),
    )


def _ids(first: int, count: int) -> Texts:
    numbers: Any = pa.array(np.arange(first, first + count)).cast(pa.large_string())
    prefix, separator = (pa.scalar(text, pa.large_string()) for text in ("q", ""))
    ids: Any = pc.binary_join_element_wise(prefix, numbers, separator)
    _, offsets, data = ids.buffers()
    ends = np.frombuffer(offsets, np.int64, count + 1)
    return Texts(ends, np.frombuffer(data or b"", np.uint8, ends[-1]))


def _number_keys(keys: pa.Array[Any]) -> tuple[npt.NDArray[np.int32], Indices]:
    """Return the number of each key by first occurrence, and where it first occurs."""
    encoded: Any = keys.dictionary_encode()
    numbers = encoded.indices.to_numpy()
    firsts = np.empty(len(encoded.dictionary), np.int64)
    firsts[numbers[::-1]] = np.arange(len(numbers) - 1, -1, -1)
    return numbers, firsts


def _trees(offsets: Indices, atoms: npt.NDArray[np.int32]) -> Trees:
    """Return the atoms of each query, followed by an AND where there are several."""
    sizes = np.diff(offsets)
    joined = sizes > 1
    ends = np.cumsum(sizes + joined)
    program = np.empty(len(atoms) + int(joined.sum()), np.int32)
    is_atom = np.ones(len(program), np.bool_)
    is_atom[ends[joined] - 1] = False
    program[is_atom] = atoms
    program[~is_atom] = AND - 2 * sizes[joined]
    return Trees(np.concatenate(([0], ends)), program)


def _keys(conjunctions: Conjunctions) -> Indices:
    """Return a number for each predicate; two of one form that accept the same have the same.

    A list of values without a gap has the cuts of an interval.
    """
    size = conjunctions.cardinality + 2
    operator, listed = conjunctions.operator, conjunctions.listed
    start, end = conjunctions.low.astype(np.int64) + 1, conjunctions.high.astype(np.int64) + 2
    start[from_below(operator)] = 0
    end[to_above(operator)] = 0
    places = (conjunctions.attribute.astype(np.int64) * size + start) * size + end
    keys = places * len(SET_FORMS) + _forms(operator)
    gappy = np.flatnonzero(_lengths(conjunctions) != np.diff(listed.offsets))
    if len(gappy):
        at = listed.predicate[gappy]
        lists, _ = _number_keys(_pack_lists(conjunctions, gappy, keys[at]))
        keys[at] = -1 - lists.astype(np.int64)
    return keys


def _lengths(conjunctions: Conjunctions) -> Indices:
    """Return for each list how long it would be without gaps."""
    at = conjunctions.listed.predicate
    widths: Indices = conjunctions.high[at].astype(np.int64) - conjunctions.low[at] + 1
    return widths


def _pack_lists(conjunctions: Conjunctions, lists: Indices, keys: Indices) -> pa.Array[Any]:
    """Return these lists as bytes, with what else their predicates say."""
    offsets, values = conjunctions.listed.offsets, conjunctions.listed.values
    lengths = np.diff(offsets)[lists]
    rows = np.full((len(lists), 2 + int(lengths.max())), -1, np.int64)
    rows[:, 0], rows[:, 1] = keys, lengths
    inside = np.arange(rows.shape[1] - 2) < lengths[:, None]
    rows[:, 2:][inside] = values[_stretches(offsets[lists], lengths)]
    width = rows.shape[1] * rows.itemsize
    return pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(width), len(rows), [None, pa.py_buffer(rows.data)]
    )


def _stretches(starts: Indices, lengths: Indices) -> Indices:
    """Return `lengths[i]` numbers from `starts[i]` on, for all i one behind the other."""
    before = np.cumsum(lengths) - lengths
    places: Indices = np.arange(int(lengths.sum())) + np.repeat(starts - before, lengths)
    return places


def _atoms(conjunctions: Conjunctions, firsts: Indices, other: EncodedAtoms) -> EncodedAtoms:
    """Return the distinct atoms, each as its first predicate says it."""
    count = len(firsts)
    operator = conjunctions.operator[firsts]
    cuts, starts, ends = _cuts(_runs(conjunctions, firsts), count)
    column, first_mentions = _number_keys(pa.array(conjunctions.attribute[firsts]))
    attribute = conjunctions.attribute[firsts][first_mentions]
    aliases = Texts(np.zeros(len(attribute) + 1, np.int64), np.empty(0, np.uint8))
    return replace(
        other,
        kind=np.full(count, WITHIN, np.uint8),
        column=column,
        second=np.full(count, -1, np.int32),
        code=_forms(operator),
        negated=np.zeros(count, np.uint8),
        starts_inside=(from_below(operator) ^ refuses(operator)).astype(np.uint8),
        start=starts,
        end=ends,
        columns=replace(
            other.columns,
            stream=np.zeros(len(attribute), np.int32),
            attribute=attribute,
            alias=aliases,
        ),
        cuts=replace(other.cuts, numbers=cuts),
    )


def _forms(operator: Codes) -> Codes:
    """Return how each set was written, as its place in `SET_FORMS`."""
    forms = np.full(len(operator), SET_FORMS.index("range"), np.uint8)
    forms[np.isin(operator, (EQUAL, IN))] = SET_FORMS.index("list")
    forms[refuses(operator)] = SET_FORMS.index("exclusion")
    return forms


def _runs(conjunctions: Conjunctions, predicates: Indices) -> _Runs:
    """Return the values that these predicates name, whether they accept or refuse them."""
    listed = conjunctions.listed
    place = np.searchsorted(listed.predicate, predicates)
    with_list = has_list(conjunctions.operator[predicates])
    plain = _find_plain_runs(conjunctions, predicates, np.flatnonzero(~with_list))
    in_lists = _find_listed_runs(conjunctions, place[with_list], np.flatnonzero(with_list))
    order = np.argsort(np.concatenate((plain.owner, in_lists.owner)), kind="stable")
    names = [field.name for field in fields(_Runs)]
    pairs = ((getattr(plain, name), getattr(in_lists, name)) for name in names)
    return _Runs(*(np.concatenate(pair)[order] for pair in pairs))


def _find_plain_runs(conjunctions: Conjunctions, predicates: Indices, owner: Indices) -> _Runs:
    at = predicates[owner]
    operator = conjunctions.operator[at]
    return _Runs(
        owner,
        conjunctions.low[at].astype(np.int64),
        conjunctions.high[at].astype(np.int64) + 1,
        from_below(operator),
        to_above(operator),
    )


def _find_listed_runs(conjunctions: Conjunctions, lists: Indices, owner: Indices) -> _Runs:
    """Return each value of each list; those that touch are joined when cuts are made of them."""
    offsets = conjunctions.listed.offsets
    lengths = np.diff(offsets)[lists]
    values = conjunctions.listed.values[_stretches(offsets[lists], lengths)].astype(np.int64)
    owners = np.repeat(owner, lengths)
    touching = (owners[1:] == owners[:-1]) & (values[1:] == values[:-1] + 1)
    return _Runs(
        owners,
        values,
        values + 1,
        np.concatenate(([False], touching))[: len(values)],
        np.concatenate((touching, [False]))[: len(values)],
    )


def _cuts(runs: _Runs, count: int) -> tuple[Indices, Indices, Indices]:
    """Return the cuts of all owners, and where those of each start and end."""
    ends = np.stack((runs.start, runs.end), axis=1)
    is_cut = ~np.stack((runs.from_below, runs.to_above), axis=1)
    counts = np.bincount(runs.owner, is_cut.sum(axis=1), minlength=count).astype(np.int64)
    return ends[is_cut], np.cumsum(counts) - counts, np.cumsum(counts)
