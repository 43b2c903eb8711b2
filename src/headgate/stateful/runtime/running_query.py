"""A bounded query that runs continuously.

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
from headgate.stateful.analysis.case import list_output_columns
from headgate.stateful.analysis.synopses.sizes import round_count
from headgate.stateful.analysis.synopses.synopsis import Memory
from headgate.stateful.runtime.admission import check_runnable, get_memory_limit
from headgate.stateful.runtime.memory_use import MemoryUse, measure_query
from headgate.stateful.runtime.output_rows import make_group_rows, make_output_rows
from headgate.stateful.runtime.program import StoreJoin, compile_program
from headgate.stateful.runtime.reduction import merge_reductions, read_store
from headgate.stateful.runtime.weighted_rows import (
    WeightedRows,
    from_table,
    read_frames,
    write_frames,
)

Mode = Literal["update", "complete"]
Invalid = Literal["fail", "skip"]


class RunningQuery:
    """A join, a DISTINCT or an aggregate that runs continuously, in memory that never grows.

    `headgate.continuous` starts one. At every moment its result is the relational one over all
    rows so far, in whatever order they came. Threads take turns.

    Parameters
    ----------
    query
        The query; its memory must be bounded, or `Unbounded` is raised.
    mode
        Whether a change of an aggregate gives the changed groups ("update") or all ("complete").
    expand
        Whether a row that joins n times is given n times, or once with its `multiplicity`.
    invalid
        Whether a row that is not of its stream is an error ("fail") or counted in `skipped`.

    Attributes
    ----------
    query
        The query that runs.
    output
        The Arrow schema of what is given.
    skipped
        How many invalid rows were left out.

    Examples
    --------
    >>> import headgate as hg
    >>> running = hg.continuous('''
    ...     CREATE STREAM s (side STRING CHECK (side IN ('buy', 'sell')), qty INT);
    ...     SELECT side, SUM(qty) AS total FROM s GROUP BY side
    ... ''')
    >>> running.push("s", [{"side": "buy", "qty": 3}, {"side": "buy", "qty": 4}]).to_pylist()
    [{'side': 'buy', 'total': 7}]
    >>> state = running.state()
    >>> running.push("s", [{"side": "sell", "qty": 1}]).num_rows, running.result().num_rows
    (1, 2)
    >>> running.restore(state)
    >>> running.result().num_rows
    1
    """

    def __init__(
        self,
        query: Query,
        *,
        mode: Mode = "update",
        expand: bool = False,
        invalid: Invalid = "fail",
    ) -> None:
        check_runnable(query)
        self._program = compile_program(query)
        self.query = query
        _check_choice("mode", mode, get_args(Mode))
        _check_choice("invalid", invalid, get_args(Invalid))
        self._mode, self._expand, self._invalid = mode, expand, invalid
        self.skipped = 0
        self._lock = Lock()
        self._reset_state()
        # The schema is that of a result without rows.
        self.output = self._to_table(self._empty_changes(), changed=True).schema

    def _reset_state(self) -> None:
        program = self._program
        self._kept = [each.empty() for each in program.reducers]
        self._answered = [each.empty() for each in program.answer_states]

    def __repr__(self) -> str:
        stored, limit = self.stored, self.memory_limit
        bound = "" if limit is None else f" of at most {round_count(limit.values, 'value')}"
        return f"<{type(self).__name__} of `{self.query.id}`: {stored.values:,} stored{bound}>"

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that the query reads, each once."""
        return self._program.streams

    @property
    def _reports_each_row(self) -> bool:
        """Whether the new output follows from what each new row brings."""
        return True

    @property
    def memory_limit(self) -> Memory | None:
        """The most that is ever stored; None where it is not known."""
        return get_memory_limit(self.query)

    @property
    def stored(self) -> MemoryUse:
        """The memory in use now."""
        return measure_query(self._program, self._kept, self._answered)

    def push(self, stream: str, rows: Any) -> pa.Table:
        """Add rows to a stream and return what they change in the result.

        Parameters
        ----------
        stream
            The name of a stream that the query reads.
        rows
            An Arrow table or batch, a DataFrame of pandas or Polars, or a list of dicts. A missing
            attribute is NULL.

        Returns
        -------
        pyarrow.Table
            The new rows of a join or DISTINCT, or the groups that changed.

        Raises
        ------
        EventError
            A row does not fit its stream, and `invalid` is "fail"; or, whatever that is, a key or
            column is no attribute of the stream. Nothing has changed then.
        """
        program = self._program
        program.check_reads(stream)
        declared = program.schema.stream(stream)
        batch = batch_from_rows(rows, declared, columns=program.attributes(stream))
        # Whoever pushes rows makes them, so a name that is not declared is a mistake of the caller.
        if batch.unknown:
            name = next(iter(batch.unknown))
            raise EventError(
                f"rows of {stream} have `{name}`, which is no attribute of it "
                f"({did_you_mean(name, declared.names)}); declare it, or leave it out of the rows"
            )
        if batch.dead and self._invalid == "fail":
            letter = batch.dead[0]
            raise EventError(f"row {letter.event} of {stream}: {letter.reason}")
        with self._undo_on_error():
            new = self._push_batch(stream, batch)
        self.skipped += len(batch.dead)
        return new

    def _push_batch(self, stream: str, batch: EventBatch) -> pa.Table:
        return self._advance({stream: self._program.reduce(stream, batch)})

    def take(self, reduced: Mapping[str, Iterable[bytes]]) -> pa.Table:
        """Add what a `StreamReducer` made of a batch of rows elsewhere.

        Parameters
        ----------
        reduced
            Reductions by stream, all of one batch.

        Returns
        -------
        pyarrow.Table
            The new output, as of `push`.
        """
        for stream in reduced:
            self._program.check_reads(stream)
        # Unpacked before the state is touched: damaged bytes change nothing.
        opened = {s: merge_reductions(self._program, s, parts) for s, parts in reduced.items()}
        with self._undo_on_error():
            return self._advance({stream: parts for stream, parts in opened.items() if parts})

    @contextmanager
    def _undo_on_error(self) -> Iterator[None]:
        """Undo what fails, by an Overflow or for lack of memory."""
        with self._lock:
            # Shallow copies are enough, since weighted rows are replaced and never changed.
            kept_before, answered_before = list(self._kept), list(self._answered)
            try:
                yield
            except BaseException:
                self._kept, self._answered = kept_before, answered_before
                raise

    def result(self) -> pa.Table:
        """Return the whole result over all rows so far."""
        program = self._program
        # A join that keeps no answer is computed again from what its stores keep.
        if program.remembers_answer:
            return self._to_table(self._answered, changed=False)
        return self._to_table(self._join_all(), changed=True)

    def _join_all(self) -> list[WeightedRows]:
        """Return the answer from what is kept of the streams."""
        changes = self._empty_changes()
        for joining in self._program.joins:
            sides = self._list_sides(joining)
            self._combine(joining, sides, min(sides), changes)
        return changes

    def _advance(self, arrived: Mapping[str, Mapping[int, WeightedRows]]) -> pa.Table:
        # Semi-naive evaluation: each occurrence of a stream meets what the others have kept, those
        # of its own stream that came before it included, so that no pair is met twice.
        changes = self._empty_changes()
        for stream, rows in arrived.items():
            for source in self._program.occurrences(stream):
                self._join(source, rows, changes)
        # Changes are all there is of a join; an answer that is kept takes them up.
        if not self._program.remembers_answer:
            return self._to_table(changes, changed=True)
        new = []
        for number, part in enumerate(self._program.answer_states):
            self._answered[number], changed = part.advance(self._answered[number], changes[number])
            new.append(changed)
        return self._to_table(new, changed=True)

    def _join(
        self, source: int, rows: Mapping[int, WeightedRows], changes: list[WeightedRows]
    ) -> None:
        """Join new rows of a source with what is kept of the others, then keep them too."""
        program = self._program
        for joining in program.joins:
            store = joining.stores.get(source)
            if store is None or not len(rows[store]):
                continue
            # `advance` leaves of the new rows those that can change the answer; only these join.
            new = rows[store]
            bucketing = program.reducers[store]
            if bucketing.store.is_kept:
                after, new = bucketing.advance(self._kept[store], rows[store])
            if self._reports_each_row:
                self._combine(joining, self._list_sides(joining) | {source: new}, source, changes)
            if bucketing.store.is_kept:
                self._kept[store] = after

    def _list_sides(self, joining: StoreJoin) -> dict[int, WeightedRows]:
        """Return what is kept of each source."""
        return {source: self._kept[store] for source, store in joining.stores.items()}

    def _combine(
        self,
        joining: StoreJoin,
        sides: Mapping[int, WeightedRows],
        first: int,
        changes: list[WeightedRows],
    ) -> None:
        """Add what the combinations of rows give to the changes of their part."""
        if not joining.branches:
            return
        part = self._program.answer_states[joining.part]
        branch = self._program.plan.branches[joining.branches[0]]
        # Where duplicates count, no occurrence is left out, and all branches name columns alike.
        combinations = self._program.combinations(joining, sides, first)
        parts = [part.from_combinations(combined, sides, branch) for combined in combinations]
        if parts:
            changes[joining.part] = part.merge([changes[joining.part], *parts])

    def _empty_changes(self) -> list[WeightedRows]:
        return [part.empty() for part in self._program.answer_states]

    def _to_table(self, rows: list[WeightedRows], *, changed: bool) -> pa.Table:
        """Return changes of the answer, or the answer itself, as a table."""
        program = self._program
        if self.query.kind == "aggregate":
            parts = list(zip(program.answer_states, self._answered, strict=True))
            some = rows if changed and self._mode == "update" else None
            return make_group_rows(program.query, parts, some)
        columns = list_output_columns(program.query)
        return make_output_rows(program.query, columns, rows[0], expand=self._expand)

    def state(self) -> bytes:
        """Return everything that is stored, as bytes for a file or a state store."""
        return write_frames([self._make_header(), *self._list_tables()])

    def restore(self, state: bytes) -> None:
        """Continue from a state.

        Parameters
        ----------
        state
            What `state` returned, for the same query on the same declared attributes.

        Raises
        ------
        StateError
            The state is damaged, or that of another query.
        """
        # The tables of the stores come first, then those of the answer, as in `_list_tables`.
        header, *tables = read_frames(state) or [pa.table({})]
        if header.column_names != self._make_header().column_names:
            raise StateError("this is not the state of a query")
        if header.column(0)[0].as_py() != self._program.identity:
            raise StateError(f"this is the state of another query than `{self.query.id}`")
        if len(tables) != len(self._list_tables()):
            raise StateError("this state is damaged: parts of it are missing")
        self._open(header.to_pylist()[0], tables)

    def _make_header(self) -> pa.Table:
        return pa.table({"query": [self._program.identity], "skipped": [self.skipped]})

    def _list_tables(self) -> list[pa.Table]:
        return [rows.table() for rows in (*self._kept, *self._answered)]

    def _open(self, header: Mapping[str, Any], tables: Sequence[pa.Table]) -> None:
        program = self._program
        stores = len(program.reducers)
        kept = [read_store(program, n, table) for n, table in enumerate(tables[:stores])]
        answered = [
            from_table(table, part.kept, 0, part.summed)
            for part, table in zip(program.answer_states, tables[stores:], strict=True)
        ]
        self._kept, self._answered = kept, answered
        self.skipped = header["skipped"]


def _check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    if value not in choices:
        raise UsageError(f"no {name} `{value}`; {did_you_mean(str(value), choices)}")
