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

from headgate.matching.asc.kernels.evaluate import Table
from headgate.matching.asc.kernels.fill import clear_in_rows, keep_between, set_in_rows
from headgate.matching.asc.room import Room, key_of
from headgate.matching.asc.subjects import Intervals, PairOf, ValuesOf, sides
from headgate.matching.asc.texts import TextsOf
from headgate.matching.encoding.event_columns import EventColumns
from headgate.predicate import Column, Compare, IsNull, Matches, Within
from headgate.predicate.conjunctions import Conjunction

LINE = 8  # words of a cache line
LARGE_PAGE, ASKED = 1 << 18, 1 << 19  # in words
WRITTEN_ANEW = 1_000  # conjunctions, beside twice those that are there

Bits = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Subject = ValuesOf | PairOf | TextsOf


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
        self.subjects: list[Subject] = []
        self._numbers: dict[object, int] = {}
        self.bits: Bits = np.zeros((16, LINE), np.uint64)
        self.rows = 0
        self._slots = 0  # given out so far
        self._free: list[int] = []
        self._alive: Bits = np.zeros(LINE, np.uint64)
        self._usage: Bits = np.zeros((4, LINE), np.uint64)
        self._owner = np.zeros(64 * LINE, np.int64)
        self._shared = np.full(64 * LINE, -1, np.int64)
        self._noted = 0  # conjunctions that have come since all was written anew
        self._count = 0  # of them, that are there
        self._fingerprint: str | None = None
        self._room = Room()

    def __len__(self) -> int:
        """The number of conjunctions."""
        return self._count

    @property
    def words(self) -> int:
        """Of a row; many are a multiple of what processors AND at once in a loop."""
        words = -(-self._slots // 64)
        return words if words <= LINE else -(-words // (2 * LINE)) * 2 * LINE

    @property
    def alive(self) -> Bits:
        return self._alive[: self.words]

    @property
    def usage(self) -> Bits:
        """By construct: the living slots that use it (query-usage bitmaps)."""
        return self._usage[: len(self.subjects), : self.words] & self.alive

    def bytes_with(self, conjunctions: Sequence[Conjunction]) -> int:
        """How much room the bits would need with those of a further query, about."""
        rows = self._room.rows + self._room.more_for(conjunctions)
        slots = self._count + len(conjunctions)
        return 8 * rows * max(self.words, 1 + slots // 64)

    def add(self, position: int, conjunctions: Sequence[Conjunction]) -> None:
        """Note the conjunctions of a query, one of which must hold; one without atoms does so."""
        if not all(conjunctions):
            self._always.add(position)
            return
        if self._noted > 2 * self._count + WRITTEN_ANEW:
            self.begin_anew()
        self._pending[position] = conjunctions
        self._note(conjunctions)

    def begin_anew(self) -> None:
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
                for subject in self.subjects:
                    if isinstance(subject, TextsOf):
                        subject.drop(slot)

    def table(self) -> Table:
        """What events are evaluated against."""
        always = np.array(sorted(self._always), np.int64)
        return Table(self.bits, self.alive, self._owner, self._shared, always)

    def settle(self) -> None:
        """Write what has come since. If that is interrupted, all is written anew the next time."""
        if self._torn:
            self.begin_anew()
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
            subject = self.subjects[number]
            if isinstance(subject, ValuesOf):
                sets = [atom.values for _, atom in atoms if isinstance(atom, Within)]
                subject.split(sets, self._row_like)
        set_in_rows(self.bits, self.rows, slots)
        set_in_rows(self._alive.reshape(1, -1), 1, slots)
        clear_in_rows(self._usage, len(self.subjects), slots)
        for number, atoms in by_subject.items():
            self._use(number, atoms)

    def _use(self, number: int, atoms: list[tuple[int, Any]]) -> None:
        """Write the atoms that are about one subject."""
        subject = self.subjects[number]
        slots = np.array([slot for slot, _ in atoms], np.int64)
        set_in_rows(self._usage[number : number + 1], 1, slots)
        if isinstance(subject, TextsOf):
            for slot, atom in atoms:
                subject.add(slot, atom)
            return
        accepted = _accepted(subject, [atom for _, atom in atoms])
        flat = np.array([ends for one in accepted for ends in one], np.int64).reshape(-1, 2)
        start = np.cumsum([0, *map(len, accepted)], dtype=np.int64)
        keep_between(self.bits, subject.rows, slots, start, flat[:, 0].copy(), flat[:, 1].copy())

    def _subject(self, atom: Any) -> int:
        """The construct that an atom belongs to; a new one if there is none."""
        key = key_of(atom)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.subjects)
            self._make_room(0, self.words, number + 1)
            self.subjects.append(self._new_subject(atom))
        return number

    def _new_subject(self, atom: Any) -> Subject:
        if isinstance(atom, Matches):
            return TextsOf(atom.column)
        if isinstance(atom, Compare):
            left, right, _ = sides(atom)
            return PairOf(left, right, np.array([self._new_row() for _ in range(4)], np.int32))
        column: Column = atom.column
        return ValuesOf(column, np.array([self._new_row(), self._new_row()], np.int32))

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
                lines = -(-max(words, width + width // 4) // LINE)
                width = LINE * (lines + (lines % 8 == 0))  # or rows would compete for cache lines
            bits = _on_large_pages((height, width))
            bits[: len(self.bits), : self.bits.shape[1]] = self.bits
            self.bits = bits
            self._alive = _grown(self._alive, (width,))
            self._usage = _grown(self._usage, (len(self._usage), width))
            self._owner = _grown(self._owner, (64 * width,))
            self._shared = _grown(self._shared, (64 * width,))
        if subjects > len(self._usage):
            self._usage = _grown(self._usage, (2 * subjects, width))

    def rows_of(self, columns: EventColumns, active: Iterable[int]) -> Codes:
        """By construct and event: the row that the event is in; only of constructs in use."""
        found = np.zeros((len(self.subjects), len(columns)), np.int32)
        first = self.rows  # behind all others, for as long as the batch lasts
        for number in active:
            subject = self.subjects[number]
            if isinstance(subject, TextsOf):
                needed = first + 1 + subject.texts(columns)
                self._make_room(needed, self.words)
                found[number] = subject.rows_of(columns, self.bits, first, self.alive)
                first = needed
            else:
                found[number] = subject.rows_of(columns)
        return found

    @property
    def fingerprint(self) -> str:
        """Equal for bitmaps with the same constructs, regions and rows, whatever their queries."""
        if self._fingerprint is None:
            self._fingerprint = self._digest()
        return self._fingerprint

    def _digest(self) -> str:
        digest = hashlib.blake2b(digest_size=16)
        for subject in self.subjects:
            cuts = subject.cuts.tolist() if isinstance(subject, ValuesOf) else ()
            rows = () if isinstance(subject, TextsOf) else subject.rows.tolist()
            digest.update(repr((subject.name, cuts, rows)).encode())
        return digest.hexdigest()

    def told(self, position: int) -> str:
        """How a query is kept, in words."""
        if position in self._always:
            return "given out for every event"
        slots = [slot for slot, _ in self._conjunctions[position]]
        if not slots:
            return "never TRUE, so nowhere"
        bits = "a bit" if len(slots) == 1 else f"{len(slots)} bits, one for each alternative,"
        used = [
            subject.name
            for subject, usage in zip(self.subjects, self.usage.tolist(), strict=True)
            if any(usage[slot >> 6] >> (slot & 63) & 1 for slot in slots)
        ]
        return f"{bits} in each of {self.rows} regions; those of {', '.join(used)} can rule it out"


def _accepted(subject: ValuesOf | PairOf, atoms: Sequence[Any]) -> list[Intervals]:
    """The regions in which each atom is TRUE."""
    if isinstance(subject, PairOf):
        return [sides(atom)[2] for atom in atoms]
    of_sets = iter(subject.accepted([atom.values for atom in atoms if isinstance(atom, Within)]))
    last = len(subject.rows) - 1
    of_null = {True: [(1, last)], False: [(0, 0)]}  # by whether it is negated
    return [of_null[atom.negated] if isinstance(atom, IsNull) else next(of_sets) for atom in atoms]


def _on_large_pages(shape: tuple[int, int]) -> Bits:
    """Zeros that begin on a large page: rows are read here and there, which takes longer where
    their addresses must be looked up. NumPy asks for large pages from 4 MiB on."""
    words = shape[0] * shape[1]
    room = np.zeros(max(words, ASKED) + LARGE_PAGE, np.uint64)
    skipped = -room.ctypes.data % (8 * LARGE_PAGE) // 8
    return room[skipped : skipped + words].reshape(shape)


def _grown(array: npt.NDArray[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    larger = np.zeros(shape, array.dtype)
    larger[tuple(slice(0, size) for size in array.shape)] = array
    return larger
