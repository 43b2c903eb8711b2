"""The constructs of an index in one table of bits, into which queries come and from which they go.

A conjunction has a slot, which is a column of bits; a region has a row. What comes is collected and
written by `settle`: new constants split regions, whose rows are copied, and the rest stays as it
is. A slot that is given up is cleared in `alive`, and given to the next who comes. Constants that
nobody uses any more are forgotten when all is written anew, which happens when more than twice as
many conjunctions have come as there are, and a thousand.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from headgate.matching.asc.constructs import (
    Intervals,
    PairConstruct,
    TextConstruct,
    ValueConstruct,
    order_sides,
)
from headgate.matching.asc.kernels.evaluate import Table
from headgate.matching.asc.kernels.fill import clear_bits, clear_rejected, set_bits
from headgate.matching.encoding.event_columns import EventColumns
from headgate.predicate import Column, Compare, IsNull, Matches, Within
from headgate.predicate.conjunctions import Conjunction

FIXED_ROWS = (
    "null",
    "below",
    "equal",
    "above",
)  # rows of a construct beside those of cuts, at most

Key = tuple[Any, ...]


class RowCounts:
    """Counts rows: one for each place where a set of values changes, and a few for a construct."""

    def __init__(self) -> None:
        self._rows: dict[Key, set[Any]] = {}  # by construct
        self.rows = 0

    def note(self, conjunctions: Sequence[Conjunction]) -> None:
        """These will need theirs."""
        for key, rows in _rows_of(conjunctions).items():
            known = self._rows.setdefault(key, set())
            before = len(known)
            known |= rows
            self.rows += len(known) - before

    def more_for(self, conjunctions: Sequence[Conjunction]) -> int:
        """How many rows more these would need."""
        needed = _rows_of(conjunctions).items()
        return sum(len(rows - self._rows.get(key, set())) for key, rows in needed)


def construct_key(atom: Any) -> Key:
    """What tells the construct of an atom from others."""
    if isinstance(atom, Compare):
        left, right, _ = order_sides(atom)
        return left.name, right.name
    return isinstance(atom, Matches), atom.column.name


def _rows_of(conjunctions: Sequence[Conjunction]) -> dict[Key, set[Any]]:
    needed: dict[Key, set[Any]] = {}
    for atom in (atom for one in conjunctions for atom in one):
        rows = needed.setdefault(construct_key(atom), set(FIXED_ROWS))
        if isinstance(atom, Within):
            rows.update(atom.values.cuts)
    return needed


LINE_WORDS = 8  # words of a cache line
LARGE_PAGE_WORDS, MIN_LARGE_WORDS = 1 << 18, 1 << 19  # in words
MIN_REWRITTEN = 1_000  # conjunctions, beside twice those that are there

Bits = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Construct = ValueConstruct | PairConstruct | TextConstruct


class Bitmaps:
    """The bits of conjunctions, by slot, in the rows of constructs.

    Law: after `settle` a slot's bit in a row is 1 exactly if it is alive and the row's region does
    not rule it out.
    """

    def __init__(self) -> None:
        self._conjunctions: dict[int, list[tuple[int, Conjunction]]] = {}  # by position, with slots
        self._pending: dict[int, Sequence[Conjunction]] = {}
        self._always: set[int] = set()
        self.epoch = 0  # how often all was written anew
        self._torn = False  # was writing interrupted, by Ctrl-C or for want of memory?
        self._clear()

    def _clear(self) -> None:
        self.constructs: list[Construct] = []
        self._numbers: dict[object, int] = {}
        self.bits: Bits = np.zeros((16, LINE_WORDS), np.uint64)
        self.rows = 0
        self._slots = 0  # given out so far
        self._free: list[int] = []
        self._alive: Bits = np.zeros(LINE_WORDS, np.uint64)
        self._usage: Bits = np.zeros((4, LINE_WORDS), np.uint64)
        self._owner = np.zeros(64 * LINE_WORDS, np.int64)
        self._shared = np.full(64 * LINE_WORDS, -1, np.int64)
        self._noted = 0  # conjunctions that have come since all was written anew
        self._count = 0  # of them, that are there
        self._fingerprint: str | None = None
        self._room = RowCounts()

    def __len__(self) -> int:
        """The number of conjunctions."""
        return self._count

    @property
    def words(self) -> int:
        """Of a row; many are a multiple of what processors AND at once in a loop."""
        words = -(-self._slots // 64)
        return words if words <= LINE_WORDS else -(-words // (2 * LINE_WORDS)) * 2 * LINE_WORDS

    @property
    def alive(self) -> Bits:
        return self._alive[: self.words]

    @property
    def usage(self) -> Bits:
        """By construct: the living slots that use it (query-usage bitmaps)."""
        return self._usage[: len(self.constructs), : self.words] & self.alive

    def estimate_bytes(self, conjunctions: Sequence[Conjunction]) -> int:
        """How much room the bits would need with those of a further query, about."""
        rows = self._room.rows + self._room.more_for(conjunctions)
        slots = self._count + len(conjunctions)
        return 8 * rows * max(self.words, 1 + slots // 64)

    def add(self, position: int, conjunctions: Sequence[Conjunction]) -> None:
        """Note the conjunctions of a query, one of which must hold; one without atoms does so."""
        if not all(conjunctions):
            self._always.add(position)
            return
        if self._noted > 2 * self._count + MIN_REWRITTEN:
            self.rebuild()
        self._pending[position] = conjunctions
        self._note(conjunctions)

    def rebuild(self) -> None:
        """Forget all that nobody uses any more; what is there is written by the next settling."""
        self._torn = True
        held = {at: [one for _, one in these] for at, these in self._conjunctions.items()}
        self._pending = {**held, **self._pending}
        self._conjunctions = {}
        self.epoch += 1
        self._clear()
        for conjunctions in self._pending.values():
            self._note(conjunctions)
        self._torn = False

    def _note(self, conjunctions: Sequence[Conjunction]) -> None:
        self._noted += len(conjunctions)
        self._count += len(conjunctions)
        self._room.note(conjunctions)

    def drop(self, position: int) -> None:
        """Take a query out."""
        if position in self._always:
            self._always.remove(position)
        elif position in self._pending:
            self._count -= len(self._pending.pop(position))
        else:
            gone = self._conjunctions.pop(position)
            self._count -= len(gone)
            for slot, _ in gone:
                self._alive[slot >> 6] &= ~np.uint64(1 << (slot & 63))
                self._free.append(slot)
                for subject in self.constructs:
                    if isinstance(subject, TextConstruct):
                        subject.drop(slot)

    def table(self) -> Table:
        """What events are evaluated against."""
        always = np.array(sorted(self._always), np.int64)
        return Table(self.bits, self.alive, self._owner, self._shared, always)

    def settle(self) -> None:
        """Write what has come since. If that is interrupted, all is written anew the next time."""
        if self._torn:
            self.rebuild()
        if not self._pending:
            return
        self._torn = True
        new = [(at, one) for at, these in self._pending.items() for one in these]
        slots = self._take_slots(len(new))
        held: dict[int, list[tuple[int, Conjunction]]] = {at: [] for at in self._pending}
        for slot, (at, one) in zip(slots.tolist(), new, strict=True):
            held[at].append((slot, one))
            self._owner[slot] = at
            self._shared[slot] = held[at][0][0] if len(self._pending[at]) > 1 else -1
        self._write(slots, [one for _, one in new])
        self._conjunctions |= held
        self._pending = {}
        self._torn = False

    def _take_slots(self, count: int) -> Numbers:
        kept = max(0, len(self._free) - count)
        self._free, reused = self._free[:kept], self._free[kept:]
        fresh = range(self._slots, self._slots + count - len(reused))
        self._slots = max(self._slots, fresh.stop)
        self._make_room(0, self.words)
        return np.array([*reused, *fresh], np.int64)

    def _write(self, slots: Numbers, conjunctions: Sequence[Conjunction]) -> None:
        self._fingerprint = None
        by_subject: dict[int, list[tuple[int, Any]]] = {}
        for slot, conjunction in zip(slots.tolist(), conjunctions, strict=True):
            for atom in conjunction:
                by_subject.setdefault(self._subject(atom), []).append((slot, atom))
        for number, atoms in by_subject.items():
            subject = self.constructs[number]
            if isinstance(subject, ValueConstruct):
                sets = [atom.values for _, atom in atoms if isinstance(atom, Within)]
                subject.split(sets, self._row_like)
        set_bits(self.bits, self.rows, slots)
        set_bits(self._alive.reshape(1, -1), 1, slots)
        clear_bits(self._usage, len(self.constructs), slots)
        for number, atoms in by_subject.items():
            self._use(number, atoms)

    def _use(self, number: int, atoms: list[tuple[int, Any]]) -> None:
        """Write the atoms that are about one subject."""
        subject = self.constructs[number]
        slots = np.array([slot for slot, _ in atoms], np.int64)
        set_bits(self._usage[number : number + 1], 1, slots)
        if isinstance(subject, TextConstruct):
            for slot, atom in atoms:
                subject.add(slot, atom)
            return
        accepted = _find_accepted(subject, [atom for _, atom in atoms])
        flat = np.array([ends for one in accepted for ends in one], np.int64).reshape(-1, 2)
        start = np.cumsum([0, *map(len, accepted)], dtype=np.int64)
        clear_rejected(self.bits, subject.rows, slots, start, flat[:, 0].copy(), flat[:, 1].copy())

    def _subject(self, atom: Any) -> int:
        """The construct that an atom belongs to; a new one if there is none."""
        key = construct_key(atom)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.constructs)
            self._make_room(0, self.words, number + 1)
            self.constructs.append(self._new_subject(atom))
        return number

    def _new_subject(self, atom: Any) -> Construct:
        if isinstance(atom, Matches):
            return TextConstruct(atom.column)
        if isinstance(atom, Compare):
            left, right, _ = order_sides(atom)
            return PairConstruct(
                left, right, np.array([self._new_row() for _ in range(4)], np.int32)
            )
        column: Column = atom.column
        return ValueConstruct(column, np.array([self._new_row(), self._new_row()], np.int32))

    def _new_row(self) -> int:
        """A row that rules nothing out."""
        self._make_room(self.rows + 1, self.words)
        self.bits[self.rows] = self._alive
        self.rows += 1
        return self.rows - 1

    def _row_like(self, old: int) -> int:
        self._make_room(self.rows + 1, self.words)
        self.bits[self.rows] = self.bits[old]
        self.rows += 1
        return self.rows - 1

    def _make_room(self, rows: int, words: int, subjects: int = 0) -> None:
        """Let the arrays grow."""
        height, width = self.bits.shape
        if rows > height or words > width:
            if rows > height:
                height = max(rows, 2 * height)
            if words > width:
                lines = -(-max(words, width + width // 4) // LINE_WORDS)
                width = LINE_WORDS * (
                    lines + (lines % 8 == 0)
                )  # or rows would compete for cache lines
            bits = _allocate_on_large_pages((height, width))
            bits[: len(self.bits), : self.bits.shape[1]] = self.bits
            self.bits = bits
            self._alive = _enlarge(self._alive, (width,))
            self._usage = _enlarge(self._usage, (len(self._usage), width))
            self._owner = _enlarge(self._owner, (64 * width,))
            self._shared = _enlarge(self._shared, (64 * width,))
        if subjects > len(self._usage):
            self._usage = _enlarge(self._usage, (2 * subjects, width))

    def read_rows(self, columns: EventColumns, active: Iterable[int]) -> Codes:
        """By construct and event: the row that the event is in; only of constructs in use."""
        found = np.zeros((len(self.constructs), len(columns)), np.int32)
        first = self.rows  # behind all others, for as long as the batch lasts
        for number in active:
            subject = self.constructs[number]
            if isinstance(subject, TextConstruct):
                needed = first + 1 + subject.count_texts(columns)
                self._make_room(needed, self.words)
                found[number] = subject.read_rows(columns, self.bits, first, self.alive)
                first = needed
            else:
                found[number] = subject.read_rows(columns)
        return found

    @property
    def fingerprint(self) -> str:
        """Equal for bitmaps with the same constructs, regions and rows, whatever their queries."""
        if self._fingerprint is None:
            self._fingerprint = self._digest()
        return self._fingerprint

    def _digest(self) -> str:
        digest = hashlib.blake2b(digest_size=16)
        for subject in self.constructs:
            cuts = subject.cuts.tolist() if isinstance(subject, ValueConstruct) else ()
            rows = () if isinstance(subject, TextConstruct) else subject.rows.tolist()
            digest.update(repr((subject.name, cuts, rows)).encode())
        return digest.hexdigest()

    def describe_placement(self, position: int) -> str:
        """How a query is kept, in words."""
        if position in self._always:
            return "given out for every event"
        slots = [slot for slot, _ in self._conjunctions[position]]
        if not slots:
            return "never TRUE, so nowhere"
        bits = "a bit" if len(slots) == 1 else f"{len(slots)} bits, one for each alternative,"
        used = [
            subject.name
            for subject, usage in zip(self.constructs, self.usage.tolist(), strict=True)
            if any(usage[slot >> 6] >> (slot & 63) & 1 for slot in slots)
        ]
        return f"{bits} in each of {self.rows} regions; those of {', '.join(used)} can rule it out"


def _find_accepted(
    subject: ValueConstruct | PairConstruct, atoms: Sequence[Any]
) -> list[Intervals]:
    """The regions in which each atom is TRUE."""
    if isinstance(subject, PairConstruct):
        return [order_sides(atom)[2] for atom in atoms]
    of_sets = iter(
        subject.find_regions([atom.values for atom in atoms if isinstance(atom, Within)])
    )
    last = len(subject.rows) - 1
    of_null = {True: [(1, last)], False: [(0, 0)]}  # by whether it is negated
    return [of_null[atom.negated] if isinstance(atom, IsNull) else next(of_sets) for atom in atoms]


def _allocate_on_large_pages(shape: tuple[int, int]) -> Bits:
    """Zeros that begin on a large page: rows are read here and there, which takes longer where
    their addresses must be looked up. NumPy asks for large pages from 4 MiB on."""
    words = shape[0] * shape[1]
    room = np.zeros(max(words, MIN_LARGE_WORDS) + LARGE_PAGE_WORDS, np.uint64)
    skipped = -room.ctypes.data % (8 * LARGE_PAGE_WORDS) // 8
    return room[skipped : skipped + words].reshape(shape)


def _enlarge(array: npt.NDArray[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    larger = np.zeros(shape, array.dtype)
    larger[tuple(slice(0, size) for size in array.shape)] = array
    return larger
