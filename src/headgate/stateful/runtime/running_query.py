"""A bounded query that runs for ever.

"Characterizing Memory Requirements …", sections 7 and 8.2, for batches. New rows are reduced to
what their buckets would keep; only these few are joined with what is kept of the other streams
(semi-naive); then they are merged into their own. At every moment the answer is the relational one
over all rows so far, whatever their interleaving.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, Literal, get_args

import pyarrow as pa

from headgate.errors import EventError, StateError, UsageError, did_you_mean
from headgate.events import EventBatch, batch_from_rows
from headgate.queries import Query
from headgate.stateful.analysis.cases.case import output_columns
from headgate.stateful.analysis.synopses.memory import Memory
from headgate.stateful.analysis.synopses.sizes import readable
from headgate.stateful.runtime.admission import check_runs
from headgate.stateful.runtime.memory_use import Stored, stored
from headgate.stateful.runtime.output_rows import group_rows, rows_of
from headgate.stateful.runtime.program import Joining, program_of
from headgate.stateful.runtime.reduction import merged, of_store
from headgate.stateful.runtime.weighted_rows import Weighted, framed, from_table, unframed

Mode = Literal["update", "complete"]
Invalid = Literal["fail", "skip"]


class Run:
    """A query, what is kept of its streams, and what was answered so far.

    `mode` says whether a change of an aggregate gives the changed groups or all of them, `expand`
    whether a row that joins n times is given n times or once with its `multiplicity`, and `invalid`
    what becomes of rows that are not of their stream: an error, or nothing but `skipped` + 1.

    Memory: never more than `most`; a batch is reduced before it meets the state.
    """

    def __init__(
        self,
        query: Query,
        *,
        mode: Mode = "update",
        expand: bool = False,
        invalid: Invalid = "fail",
    ) -> None:
        self._verdict = check_runs(query)
        self._program = program_of(query)
        self.query = query
        _check_choice("mode", mode, get_args(Mode))
        _check_choice("invalid", invalid, get_args(Invalid))
        self._mode, self._expand, self._invalid = mode, expand, invalid
        self.skipped = 0
        self._alone = Lock()  # threads take turns
        self._begin()
        self.output = self._given(self._nothing_new(), changed=True).schema
        """The columns of what is given."""

    def _begin(self) -> None:
        program = self._program
        self._kept = [each.nothing() for each in program.bucketings]
        self._answered = [each.nothing() for each in program.remembered]

    def __repr__(self) -> str:
        stored, most = self.stored, self.most
        bound = "" if most is None else f" of at most {readable(most.values, 'value')}"
        return f"<{type(self).__name__} of `{self.query.id}`: {stored.values:,} stored{bound}>"

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that the query reads, each once."""
        return self._program.streams

    @property
    def _tells_rows(self) -> bool:
        """Does the new output follow from what each new row brings?"""
        return True

    @property
    def most(self) -> Memory | None:
        """The most that is ever stored."""
        return self._verdict.most

    @property
    def stored(self) -> Stored:
        """What is stored now."""
        return stored(self._program, self._kept, self._answered)

    def push(self, stream: str, rows: Any) -> pa.Table:
        """Rows arrive on a stream: an Arrow table, a DataFrame or dicts; gives the new output."""
        program = self._program
        program.check_reads(stream)
        declared = program.schema.stream(stream)
        batch = batch_from_rows(rows, declared, columns=program.attributes(stream))
        if batch.dead and self._invalid == "fail":
            letter = batch.dead[0]
            raise EventError(f"row {letter.event} of {stream}: {letter.reason}")
        with self._all_or_nothing():
            new = self._pushed(stream, batch)
        self.skipped += len(batch.dead)
        return new

    def _pushed(self, stream: str, batch: EventBatch) -> pa.Table:
        return self._advanced({stream: self._program.reduced(stream, batch)})

    def take(self, reduced: Mapping[str, Iterable[bytes]]) -> pa.Table:
        """Reductions of streams arrive, all of one batch; gives its new output."""
        for stream in reduced:
            self._program.check_reads(stream)
        opened = {s: merged(self._program, s, parts) for s, parts in reduced.items()}
        with self._all_or_nothing():
            return self._advanced({stream: parts for stream, parts in opened.items() if parts})

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """What fails, by an Overflow or for lack of memory, leaves no trace."""
        with self._alone:
            kept, answered = list(self._kept), list(self._answered)
            try:
                yield
            except BaseException:
                self._kept, self._answered = kept, answered
                raise

    def answer(self) -> pa.Table:
        """The whole answer over all rows so far."""
        program = self._program
        if program.remembers_answer:
            return self._given(self._answered, changed=False)
        return self._given(self._whole(), changed=True)

    def _whole(self) -> list[Weighted]:
        """The answer from what is kept, without what is remembered of it."""
        found = self._nothing_new()
        for joining in self._program.joinings:
            self._combine(joining, self._sides(joining), 0, found)
        return found

    def _advanced(self, arrived: Mapping[str, Mapping[int, Weighted]]) -> pa.Table:
        changes = self._nothing_new()
        for stream, rows in arrived.items():
            for source in self._program.occurrences(stream):
                self._join(source, rows, changes)
        if not self._program.remembers_answer:
            return self._given(changes, changed=True)
        new = []
        for number, part in enumerate(self._program.remembered):
            self._answered[number], changed = part.advanced(self._answered[number], changes[number])
            new.append(changed)
        return self._given(new, changed=True)

    def _join(self, source: int, rows: Mapping[int, Weighted], changes: list[Weighted]) -> None:
        """Join new rows of a source with what is kept of the others, then keep them too."""
        program = self._program
        for joining in program.joinings:
            store = joining.stores.get(source)
            if store is None or not len(rows[store]):
                continue
            new = rows[store]
            if program.keeps_rows:
                bucketing = program.bucketings[store]
                after, new = bucketing.advanced(self._kept[store], rows[store])
            if self._tells_rows:
                self._combine(joining, self._sides(joining) | {source: new}, source, changes)
            if program.keeps_rows:
                self._kept[store] = after

    def _sides(self, joining: Joining) -> dict[int, Weighted]:
        """What is kept of each source."""
        return {source: self._kept[store] for source, store in joining.stores.items()}

    def _combine(
        self,
        joining: Joining,
        sides: Mapping[int, Weighted],
        first: int,
        changes: list[Weighted],
    ) -> None:
        """Add what the combinations of rows give to the changes of their part."""
        part = self._program.remembered[joining.part]
        combinations = self._program.combinations(joining, sides, first)
        found = [part.of(combined, sides) for combined in combinations]
        if found:
            changes[joining.part] = part.merged([changes[joining.part], *found])

    def _nothing_new(self) -> list[Weighted]:
        return [part.nothing() for part in self._program.remembered]

    def _given(self, found: list[Weighted], *, changed: bool) -> pa.Table:
        """Changes of the answer, or the answer itself, as a table."""
        program = self._program
        if self.query.kind == "aggregate":
            parts = list(zip(program.remembered, self._answered, strict=True))
            some = found if changed and self._mode == "update" else None
            return group_rows(program.query, parts, some)
        columns = output_columns(program.query)
        return rows_of(program.query, columns, found[0], expand=self._expand)

    def state(self) -> bytes:
        """Everything that is stored, for a file or a state store."""
        return framed([self._header(), *self._tables()])

    def restore(self, state: bytes) -> None:
        """Go on from a state; StateError if it is damaged, or that of another query."""
        header, *tables = unframed(state) or [pa.table({})]
        if header.column_names != self._header().column_names:
            raise StateError("this is not the state of a query")
        if header.column(0)[0].as_py() != self._program.identity:
            raise StateError(f"this is the state of another query than `{self.query.id}`")
        if len(tables) != len(self._tables()):
            raise StateError("this state is damaged: parts of it are missing")
        self._open(header.to_pylist()[0], tables)

    def _header(self) -> pa.Table:
        return pa.table({"query": [self._program.identity], "skipped": [self.skipped]})

    def _tables(self) -> list[pa.Table]:
        return [rows.table() for rows in (*self._kept, *self._answered)]

    def _open(self, header: Mapping[str, Any], tables: Sequence[pa.Table]) -> None:
        program = self._program
        stores = len(program.bucketings)
        kept = [of_store(program, n, table) for n, table in enumerate(tables[:stores])]
        answered = [
            from_table(table, part.kept, 0, part.summed)
            for part, table in zip(program.remembered, tables[stores:], strict=True)
        ]
        self._kept, self._answered = kept, answered
        self.skipped = header["skipped"]


def _check_choice(name: str, given: object, choices: Sequence[str]) -> None:
    if given not in choices:
        raise UsageError(f"no {name} `{given}`; {did_you_mean(str(given), choices)}")
