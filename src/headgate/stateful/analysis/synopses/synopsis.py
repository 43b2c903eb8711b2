"""What is kept of each stream of a bounded query, said in words and counted.

"Characterizing Memory Requirements …", section 7, of which this keeps less: only attributes that
are compared between streams, put out, grouped by or aggregated, and only cells that the whole
condition leaves. In Example 7.1 the paper counts 13³ buckets for S(A, B, C); as B is less than 20
and nothing asks for C, 10 are left here: B below 11, and each of its values from 11 to 19.

The memory limit adds these up, and what is kept of the answer. A value, a count or a sum is one
value. All numbers are exact whole numbers, however huge. Widths are fixed by type; a text is as
long as the longest of its finitely many values, else as long as it was observed to be, else as long
as is assumed, which the result then says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from headgate.predicate import Column
from headgate.queries import Query
from headgate.stateful.analysis.case import (
    Case,
    find_source,
    list_aggregates,
    list_output_columns,
)
from headgate.stateful.analysis.synopses.answer_parts import list_answer_parts
from headgate.stateful.analysis.synopses.branches import Branch, NotReducible
from headgate.stateful.analysis.synopses.extremes import (
    References,
    count_stand_ins,
    find_extreme_columns,
)
from headgate.stateful.analysis.synopses.plan import Store, SynopsisPlan, build_plan, merge_cells
from headgate.stateful.analysis.synopses.sizes import (
    ASSUMED_TEXT_BYTES,
    COUNT_BYTES,
    TextLengths,
    get_sum_bytes,
    round_count,
)


def describe_store(store: Store, *, is_known: bool) -> str:
    """Return what a bucket keeps, in words; `is_known` where the bucket itself says its values.

    A bucket in which fewer attributes are open keeps the row that is extreme in those.
    """
    if not store.part.distinct:
        return _describe_counts(store, is_known=is_known)
    ends = find_extreme_columns(store)
    if ends is None:
        return "nothing"
    sides = [
        _describe_extreme(ends.highs, "greatest", "least"),
        _describe_extreme(ends.lows, "least", "greatest"),
    ]
    if store.extremum_column is not None:
        end = "greatest" if ends.highs.columns else "least"
        return f"the {end} {store.extremum_column.name}"
    words = " and ".join(side for side in sides if side)
    words = words or ("whether there is a row" if is_known else "the first row")
    names = list(dict.fromkeys(column.name for column in store.unequal_columns))
    return f"{words}, and the next best with another {join_words(names)}" if names else words


def _describe_counts(store: Store, *, is_known: bool) -> str:
    parts = ["a count"] if is_known else ["a count", "the first row"]
    parts += [f"the sum of {column.name}" for column in store.summed]
    parts += [f"how many {column.name} are not NULL" for column in store.counted]
    return join_words(parts)


def _describe_extreme(references: References, end: str, other: str) -> str:
    """Return the rows at one end in words; nothing if no column is extreme.

    >>> from headgate.predicate import Column
    >>> from headgate.schema import INT
    >>> _describe_extreme(References({Column(n, INT): (True,) for n in "bcd"}), "greatest", "least")
    'the row with the greatest of the least of b, c and d'
    """
    if not references.columns:
        return ""
    names = [column.name for column in references.columns]
    of = names[0] if len(names) == 1 else f"of the {other} of {join_words(names)}"
    rows = "the row" if references.max_rows == 1 else f"up to {references.max_rows} rows"
    return f"{rows} with the {end} {of}"


def join_words(words: Sequence[str]) -> str:
    """Return words with commas between them, and "and" before the last.

    >>> join_words(["a"]), join_words(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


@dataclass(frozen=True, slots=True)
class KeptAttribute:
    """Into how many cells an attribute falls: single values, gaps between them, and NULL."""

    name: str
    values: int
    gaps: int
    null: bool = False

    @property
    def cells(self) -> int:
        return self.values + self.gaps + self.null

    def __str__(self) -> str:
        """Return the cells in words.

        >>> str(KeptAttribute("b", 10, 1)), str(KeptAttribute("a", 1, 0, null=True))
        ('b: 10 values and 1 gap', 'a: 1 value and NULL')
        """
        counts = ((self.values, "value"), (self.gaps, "gap"))
        parts = [round_count(count, noun) for count, noun in counts if count]
        return f"{self.name}: {' and '.join(parts + ['NULL'] * self.null) or 'nothing'}"

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "values": self.values, "gaps": self.gaps, "null": self.null}


@dataclass(frozen=True, slots=True)
class BucketSet:
    """So many buckets, one for each choice of cells, and what each of them keeps."""

    attributes: tuple[KeptAttribute, ...]
    buckets: int
    keeps: str
    values: int
    bytes: int

    def __str__(self) -> str:
        cells = ", ".join(map(str, self.attributes))
        buckets = round_count(self.buckets, "bucket")
        return f"{buckets}{f' ({cells})' if cells else ''}: {self.keeps}"

    def as_json(self) -> dict[str, Any]:
        return {
            "attributes": [attribute.as_json() for attribute in self.attributes],
            "buckets": self.buckets,
            "keeps": self.keeps,
            "values": self.values,
            "bytes": self.bytes,
        }


@dataclass(frozen=True, slots=True)
class Synopsis:
    """What is kept of one stream of FROM: sets of buckets, its last rows, or nothing.

    `outputs` is how many different outputs or groups it can contribute, of `output_bytes` each,
    those of its MIN and MAX included.
    `assumed` names attributes whose texts are assumed to be short.
    """

    stream: str
    alias: str
    rows: int | None
    attributes: tuple[str, ...]
    stores: tuple[BucketSet, ...]
    values: int
    bytes: int
    outputs: int
    output_bytes: int
    assumed: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.rows is not None:
            of_these = f" ({', '.join(self.attributes)})" if self.attributes else ""
            return f"{self.alias} keeps its last {round_count(self.rows, 'row')}{of_these}"
        texts = Counter(str(store) for store in self.stores if store.buckets)
        parts = (text if times == 1 else f"{times} times {text}" for text, times in texts.items())
        return f"{self.alias} keeps {'; '.join(parts) or 'nothing'}"

    def as_json(self) -> dict[str, Any]:
        return {
            "stream": self.stream,
            "alias": self.alias,
            "last_rows": self.rows,
            "attributes": list(self.attributes),
            "stores": [store.as_json() for store in self.stores],
            "values": self.values,
            "bytes": self.bytes,
            "text": str(self),
        }


def describe_synopses(
    query: Query,
    cases: Sequence[Case],
    observed: Mapping[str, int] | None = None,
) -> tuple[Synopsis, ...]:
    """Describe what is kept of every stream of a bounded query, given its cases.

    There are none where they are not worked out: a self-join may be bounded only because one of its
    occurrences is redundant, but not always the same one.
    `observed` has the bytes of the longest text of attributes, by `stream.attribute`.
    """
    try:
        plan = build_plan(query, cases)
    except NotReducible:
        return ()
    lengths = TextLengths(plan, observed or {})
    return tuple(_describe_source(plan, lengths, number) for number in range(len(query.sources)))


def _describe_source(plan: SynopsisPlan, lengths: TextLengths, number: int) -> Synopsis:
    source = plan.query.sources[number]
    every = [store for _, of in plan.stores for store in of if store.source == number]
    # Of a single stream the answer is all that is kept, and it is described as its buckets.
    stores = [s for s in every if s.is_kept or len(plan.query.sources) == 1]
    put_out = [c for c in list_output_columns(plan.query) if find_source(plan.query, c) == number]
    ordered = (a.argument for a in list_aggregates(plan.query) if a.function in ("MIN", "MAX"))
    extremes = [c for c in ordered if c is not None and find_source(plan.query, c) == number]
    buckets = tuple(_describe_buckets(store, lengths) for store in stores)
    columns = dict.fromkeys(c for store in stores for c in (*store.kept, *store.summed))
    values, size, outputs = sum(b.values for b in buckets), sum(b.bytes for b in buckets), 1
    # A window keeps rows, not buckets: with a mask if there are several cases, and a flag for rows
    # that the filters reject, which still push others out.
    if source.rows is not None and plan.branches:
        columns = dict.fromkeys(plan.list_window_columns(number))
        masked = len(plan.branches) > 1
        flagged = plan.is_flagged(number)
        values = source.rows * (len(columns) + masked + flagged)
        size = source.rows * (lengths.bytes(columns) + COUNT_BYTES * masked + flagged)
        outputs = source.rows if put_out else 1
    elif put_out:
        # Distinct outputs are at most the choices of cells of the columns put out.
        outputs = prod(_describe_attribute(plan.branches, column).cells for column in put_out)
    return Synopsis(
        source.stream.name,
        source.alias,
        source.rows,
        tuple(column.name for column in columns),
        buckets,
        values,
        size,
        outputs,
        lengths.bytes((*put_out, *extremes)),
        lengths.list_assumed(number, (*columns, *put_out)),
    )


def _describe_attribute(branches: Sequence[Branch], column: Column) -> KeptAttribute:
    cells = merge_cells(branches, column)
    null = any(branch.accepts_null(column) for branch in branches)
    return KeptAttribute(column.name, cells.values, cells.gaps, null)


def _describe_buckets(store: Store, lengths: TextLengths) -> BucketSet:
    attributes = tuple(_describe_attribute(store.branches, column) for column in store.columns)
    row_bytes = lengths.bytes(store.kept)
    if store.part.distinct:
        ends = find_extreme_columns(store)
        best = 1 if ends is None else ends.max_rows
        rows = count_stand_ins(best, len(store.unequal_columns))
        values, size = max(len(store.kept), 1) * rows, max(row_bytes, 1) * rows
    else:
        masked = store.masks > 1
        values = len(store.kept) + 1 + masked + len(store.summed) + len(store.counted)
        size = row_bytes + COUNT_BYTES * (1 + masked + len(store.counted))
        size += sum(get_sum_bytes(column.type) for column in store.summed)
    # Without gaps the cells are the values, so no row needs to be kept.
    is_known = all(not attribute.gaps for attribute in attributes)
    keeps = describe_store(store, is_known=is_known)
    buckets = store.buckets
    return BucketSet(attributes, buckets, keeps, buckets * values, buckets * size)


MAX_HOLDABLE_BYTES = 1 << 40
"""A tebibyte: more than one machine holds, and a run has its whole state on one."""


@dataclass(frozen=True, slots=True)
class Memory:
    """The most that is ever stored: by the synopses, and by the answer itself.

    The answer is kept by DISTINCT, so as to give a row once, and by aggregates. `assumed` names the
    attributes whose texts are assumed to be short.
    """

    values: int
    bytes: int
    answer_values: int = 0
    answer_bytes: int = 0
    assumed: tuple[str, ...] = ()

    @property
    def is_holdable(self) -> bool:
        """Whether a machine can hold that much."""
        return self.bytes <= MAX_HOLDABLE_BYTES

    def __str__(self) -> str:
        """Return the limit in words.

        >>> str(Memory(9, 72, assumed=("s.name",)))
        'at most 9 values in 72 bytes, if texts of s.name have up to 32 bytes'
        """
        values, size = (
            round_count(self.values, "value"),
            round_count(self.bytes, "byte"),
        )
        named = ", ".join(self.assumed)
        texts = f", if texts of {named} have up to {ASSUMED_TEXT_BYTES} bytes" if named else ""
        return f"at most {values} in {size}{texts}"

    def as_json(self) -> dict[str, Any]:
        return {
            "values": self.values,
            "bytes": self.bytes,
            "answer": {"values": self.answer_values, "bytes": self.answer_bytes},
            "assumed": list(self.assumed),
            "text": str(self),
        }


def compute_memory_limit(
    query: Query,
    cases: Sequence[Case],
    observed: Mapping[str, int] | None = None,
) -> Memory | None:
    """Return the bound of a query with these cases; None where its synopses are not worked out."""
    synopses = describe_synopses(query, cases, observed)
    if not synopses:
        return None
    plan = build_plan(query, cases)
    values, size = _measure_answer(plan, TextLengths(plan, observed or {}), synopses)
    assumed = dict.fromkeys(name for synopsis in synopses for name in synopsis.assumed)
    return Memory(
        sum(synopsis.values for synopsis in synopses) + values,
        sum(synopsis.bytes for synopsis in synopses) + size,
        values,
        size,
        tuple(assumed),
    )


def _measure_answer(
    plan: SynopsisPlan, lengths: TextLengths, synopses: Sequence[Synopsis]
) -> tuple[int, int]:
    """Return the values and bytes of the answer; 0 where it is given away or is the synopsis."""
    query = plan.query
    is_streamed = query.kind != "aggregate" and not query.distinct
    if is_streamed or (len(synopses) == 1 and synopses[0].rows is None):
        return 0, 0
    # Every choice of outputs of the streams may be a row of the answer.
    groups = prod(synopsis.outputs for synopsis in synopses)
    if query.kind == "aggregate" and not query.group_by:
        groups = 1
    if not plan.branches:
        groups = min(groups, 1)
    values = size = 0
    for part in list_answer_parts(plan):
        # A part that lists values has a row for each group and choice of values.
        rows = groups * prod(_count_choices(plan, column) for column in part.listed)
        values += rows * part.values
        size += rows * part.bytes(lengths)
    return values, size


def _count_choices(plan: SynopsisPlan, column: Column) -> int:
    """Return how many values a column can have in what is kept."""
    rows = plan.query.sources[find_source(plan.query, column)].rows
    if rows is not None:
        return rows
    cells = merge_cells(plan.branches, column)
    null = any(branch.accepts_null(column) for branch in plan.branches)
    return cells.values + cells.gaps + null
