"""The constructs of an index in one table of bits, in which queries come and go.

A conjunction has a slot, which is a column of bits; a region has a row. New conjunctions are
collected and written by `settle`: new constants split regions, whose rows are copied, and the rest
stays as it is. The slot of a conjunction that leaves is cleared in `alive`, and reused. Constants
that no query uses any more are dropped when all is written again, which happens when more than
twice as many conjunctions have come as there are, and a thousand.
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
from headgate.predicate.normal_form import Conjunction

LINE_WORDS = 8  # words of a cache line
LARGE_PAGE_WORDS = 1 << 18  # words of a large page, 2 MiB
MIN_LARGE_WORDS = 1 << 19  # from 4 MiB on NumPy asks the system for large pages
MIN_REWRITTEN = 1_000  # conjunctions that come before all are written again
SAMPLED_REGIONS = 64  # of a construct, to estimate how many conjunctions it leaves
# Rows of a construct besides those of cuts, at most.
FIXED_ROWS = ("null", "below", "equal", "above")

Key = tuple[Any, ...]
Bits = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Construct = ValueConstruct | PairConstruct | TextConstruct


class RowCounts:
    """The number of rows that conjunctions need, before any is written.

    One for each cut, where membership in a set of values changes, and a few for each construct.
    """

    def __init__(self) -> None:
        self._rows: dict[Key, set[Any]] = {}  # by construct
        self.total = 0

    def add(self, conjunctions: Sequence[Conjunction]) -> None:
        """Count the rows that conjunctions need and others do not need already."""
        for key, rows in _list_rows(conjunctions).items():
            known = self._rows.setdefault(key, set())
            before = len(known)
            known |= rows
            self.total += len(known) - before

    def count_new(self, conjunctions: Sequence[Conjunction]) -> int:
        """Return how many more rows conjunctions would need."""
        needed = _list_rows(conjunctions).items()
        return sum(len(rows - self._rows.get(key, set())) for key, rows in needed)


def construct_key(atom: Any) -> Key:
    """Return what tells the construct of an atom from others."""
    if isinstance(atom, Compare):
        left, right, _ = order_sides(atom)
        return left.name, right.name
    return isinstance(atom, Matches), atom.column.name


def _list_rows(conjunctions: Sequence[Conjunction]) -> dict[Key, set[Any]]:
    """Return by construct the cuts and other rows that conjunctions need."""
    needed: dict[Key, set[Any]] = {}
    for atom in (atom for conjunction in conjunctions for atom in conjunction):
        rows = needed.setdefault(construct_key(atom), set(FIXED_ROWS))
        if isinstance(atom, Within):
            rows.update(atom.values.cuts)
    return needed


class Bitmaps:
    """The bits of conjunctions, by slot, in the rows of constructs.

    Law: after `settle` a slot's bit in a row is 1 exactly if it is alive and the row's region does
    not rule it out.
    """

    def __init__(self) -> None:
        self._conjunctions: dict[int, list[tuple[int, Conjunction]]] = {}  # by position, with slots
        self._pending: dict[int, Sequence[Conjunction]] = {}
        self._always: set[int] = set()
        self.epoch = 0  # how often all was written again
        self._torn = False  # was writing interrupted, by Ctrl-C or for want of memory?
        self._clear()

    def _clear(self) -> None:
        self.constructs: list[Construct] = []
        self._numbers: dict[object, int] = {}
        # (rows, words): more of both than are in use, so that it need not grow often
        self.bits: Bits = np.zeros((16, LINE_WORDS), np.uint64)
        self.rows = 0
        self._slots = 0  # ever used
        self._free: list[int] = []
        self._alive: Bits = np.zeros(LINE_WORDS, np.uint64)
        # (constructs, words): the slots that use a construct; then by slot
        self._usage: Bits = np.zeros((4, LINE_WORDS), np.uint64)
        self._owner = np.zeros(64 * LINE_WORDS, np.int64)
        self._shared = np.full(64 * LINE_WORDS, -1, np.int64)
        self._added = 0  # conjunctions that have come since all was written again
        self._count = 0  # of these, those that are still there
        self._fingerprint: str | None = None
        self._row_counts = RowCounts()

    def __len__(self) -> int:
        """Return the number of conjunctions."""
        return self._count

    @property
    def words(self) -> int:
        """The words of a row; long rows are a multiple of what processors AND at once in a loop."""
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
        """Return about how many bytes the bits need with those of a further query."""
        rows = self._row_counts.total + self._row_counts.count_new(conjunctions)
        slots = self._count + len(conjunctions)
        return 8 * rows * max(self.words, 1 + slots // 64)

    def add(self, position: int, conjunctions: Sequence[Conjunction]) -> None:
        """Add the conjunctions of a query, an OR; one without atoms is always TRUE."""
        if not all(conjunctions):
            self._always.add(position)
            return
        if self._added > 2 * self._count + MIN_REWRITTEN:
            self.rebuild()
        self._pending[position] = conjunctions
        self._count_added(conjunctions)

    def rebuild(self) -> None:
        """Drop what no query uses any more; `settle` writes everything else again."""
        self._torn = True
        # what is written waits again, before what was waiting already
        written = {
            at: [conjunction for _, conjunction in slots]
            for at, slots in self._conjunctions.items()
        }
        self._pending = {**written, **self._pending}
        self._conjunctions = {}
        self.epoch += 1
        self._clear()
        for conjunctions in self._pending.values():
            self._count_added(conjunctions)
        self._torn = False

    def _count_added(self, conjunctions: Sequence[Conjunction]) -> None:
        self._added += len(conjunctions)
        self._count += len(conjunctions)
        self._row_counts.add(conjunctions)

    def drop(self, position: int) -> None:
        """Take a query out."""
        if position in self._always:
            self._always.remove(position)
        elif position in self._pending:
            self._count -= len(self._pending.pop(position))
        else:
            dropped = self._conjunctions.pop(position)
            self._count -= len(dropped)
            for slot, _ in dropped:
                # its bits in the rows stay as they are, until the slot is used again
                self._alive[slot >> 6] &= ~np.uint64(1 << (slot & 63))
                self._free.append(slot)
                for construct in self.constructs:
                    if isinstance(construct, TextConstruct):
                        construct.drop(slot)

    def table(self) -> Table:
        """Return what events are evaluated against."""
        always = np.array(sorted(self._always), np.int64)
        return Table(self.bits, self.alive, self._owner, self._shared, always)

    def settle(self) -> None:
        """Write what has come since; if that is interrupted, all is written again the next time."""
        if self._torn:
            self.rebuild()
        if not self._pending:
            return
        self._torn = True
        new = [(at, part) for at, parts in self._pending.items() for part in parts]
        # from here on an interrupt leaves bits that cannot be trusted
        slots = self._take_slots(len(new))
        written: dict[int, list[tuple[int, Conjunction]]] = {at: [] for at in self._pending}
        for slot, (at, part) in zip(slots.tolist(), new, strict=True):
            written[at].append((slot, part))
            self._owner[slot] = at
            self._shared[slot] = written[at][0][0] if len(self._pending[at]) > 1 else -1
        self._write(slots, [part for _, part in new])
        self._conjunctions |= written
        self._pending = {}
        self._torn = False

    def _take_slots(self, count: int) -> Numbers:
        # slots of conjunctions that are gone come before new ones
        still_free = max(0, len(self._free) - count)
        self._free, reused = self._free[:still_free], self._free[still_free:]
        fresh = range(self._slots, self._slots + count - len(reused))
        self._slots = max(self._slots, fresh.stop)
        self._make_room(0, self.words)
        return np.array([*reused, *fresh], np.int64)

    def _write(self, slots: Numbers, conjunctions: Sequence[Conjunction]) -> None:
        """Write the bits of conjunctions into their slots."""
        self._fingerprint = None
        by_construct: dict[int, list[tuple[int, Any]]] = {}
        for slot, conjunction in zip(slots.tolist(), conjunctions, strict=True):
            for atom in conjunction:
                by_construct.setdefault(self._find_construct(atom), []).append((slot, atom))
        for number, atoms in by_construct.items():
            construct = self.constructs[number]
            if isinstance(construct, ValueConstruct):
                # regions are split first: the rows copied then have the bits of all older slots
                sets = [atom.values for _, atom in atoms if isinstance(atom, Within)]
                construct.split(sets, self._copy_row)
        # A bit is 1 where nothing rules it out; only then the atoms clear theirs.
        set_bits(self.bits, self.rows, slots)
        set_bits(self._alive.reshape(1, -1), 1, slots)
        clear_bits(self._usage, len(self.constructs), slots)
        for number, atoms in by_construct.items():
            self._use(number, atoms)

    def _use(self, number: int, atoms: list[tuple[int, Any]]) -> None:
        """Write the atoms that belong to one construct."""
        construct = self.constructs[number]
        slots = np.array([slot for slot, _ in atoms], np.int64)
        set_bits(self._usage[number : number + 1], 1, slots)
        if isinstance(construct, TextConstruct):
            for slot, atom in atoms:
                construct.add(slot, atom)
            return
        # `low[k]` … `high[k]` are the regions that slot i accepts, for k from `start[i]` on
        accepted = _find_accepted(construct, [atom for _, atom in atoms])
        ends = [interval for intervals in accepted for interval in intervals]
        low, high = np.array(ends, np.int64).reshape(-1, 2).T.copy()
        start = np.cumsum([0, *map(len, accepted)], dtype=np.int64)
        clear_rejected(self.bits, construct.rows, slots, start, low, high)

    def _find_construct(self, atom: Any) -> int:
        """Return the number of the construct of an atom; a new one if there is none."""
        key = construct_key(atom)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.constructs)
            self._make_room(0, self.words, number + 1)
            self.constructs.append(self._make_construct(atom))
        return number

    def _make_construct(self, atom: Any) -> Construct:
        if isinstance(atom, Matches):
            return TextConstruct(atom.column)
        if isinstance(atom, Compare):
            left, right, _ = order_sides(atom)
            return PairConstruct(
                left, right, np.array([self._add_row() for _ in range(4)], np.int32)
            )
        column: Column = atom.column
        return ValueConstruct(column, np.array([self._add_row(), self._add_row()], np.int32))

    def _add_row(self) -> int:
        """Return a new row, which rules nothing out."""
        self._make_room(self.rows + 1, self.words)
        # nothing is known of the region yet, so it rules out no living slot
        self.bits[self.rows] = self._alive
        self.rows += 1
        return self.rows - 1

    def _copy_row(self, old: int) -> int:
        """Return a new row with the bits of another."""
        self._make_room(self.rows + 1, self.words)
        self.bits[self.rows] = self.bits[old]
        self.rows += 1
        return self.rows - 1

    def _make_room(self, rows: int, words: int, constructs: int = 0) -> None:
        """Enlarge the arrays to so many rows, words of a row, and constructs."""
        height, width = self.bits.shape
        if rows > height or words > width:
            if rows > height:
                # doubled, so that a thousand new rows are not a thousand copies
                height = max(rows, 2 * height)
            if words > width:
                lines = -(-max(words, width + width // 4) // LINE_WORDS)
                # rows that are a multiple of 8 lines apart would compete for the same cache sets
                width = LINE_WORDS * (lines + (lines % 8 == 0))
            bits = _allocate_on_large_pages((height, width))
            bits[: len(self.bits), : self.bits.shape[1]] = self.bits
            self.bits = bits
            self._alive = _enlarge(self._alive, (width,))
            self._usage = _enlarge(self._usage, (len(self._usage), width))
            self._owner = _enlarge(self._owner, (64 * width,))
            self._shared = _enlarge(self._shared, (64 * width,))
        if constructs > len(self._usage):
            self._usage = _enlarge(self._usage, (2 * constructs, width))

    def estimate_passing(self) -> list[float]:
        """Return by construct the share of conjunctions that an event leaves, in ascending order.

        Values are taken to be spread evenly over regions, and no pattern to match.
        """
        self.settle()
        alive, count = self.alive, max(1, self._count)
        passing = []
        for construct in self.constructs:
            if isinstance(construct, TextConstruct):
                passing.append(1 - construct.count_needing() / count)
                continue
            # of the regions besides NULL, some that lie evenly are enough
            places = np.linspace(1, len(construct.rows) - 1, SAMPLED_REGIONS).astype(np.int64)
            rows = self.bits[construct.rows[np.unique(places)], : len(alive)] & alive
            passing.append(float(np.bitwise_count(rows).sum()) / (len(rows) * count))
        return sorted(passing)

    def read_rows(self, columns: EventColumns, active: Iterable[int]) -> Codes:
        """Return by construct and event the row that the event is in; only of active constructs."""
        rows = np.zeros((len(self.constructs), len(columns)), np.int32)
        first = self.rows  # texts have rows behind all others, for as long as the batch lasts
        for number in active:
            construct = self.constructs[number]
            if isinstance(construct, TextConstruct):
                needed = first + 1 + construct.count_texts(columns)
                self._make_room(needed, self.words)
                rows[number] = construct.read_rows(columns, self.bits, first, self.alive)
                first = needed
            else:
                rows[number] = construct.read_rows(columns)
        return rows

    @property
    def fingerprint(self) -> str:
        """Equal for bitmaps with the same constructs, regions and rows, whatever their queries."""
        if self._fingerprint is None:
            self._fingerprint = self._digest()
        return self._fingerprint

    def _digest(self) -> str:
        digest = hashlib.blake2b(digest_size=16)
        for construct in self.constructs:
            # the bits themselves are left out: queries may differ between two indexes
            cuts = construct.cuts.tolist() if isinstance(construct, ValueConstruct) else ()
            rows = () if isinstance(construct, TextConstruct) else construct.rows.tolist()
            digest.update(repr((construct.name, cuts, rows)).encode())
        return digest.hexdigest()

    def describe_placement(self, position: int) -> str:
        """Return how a query is kept, in words."""
        if position in self._always:
            return "given out for every event"
        slots = [slot for slot, _ in self._conjunctions[position]]
        if not slots:
            return "never TRUE, so nowhere"
        bits = "a bit" if len(slots) == 1 else f"{len(slots)} bits, one for each alternative,"
        used = [
            construct.name
            for construct, usage in zip(self.constructs, self.usage.tolist(), strict=True)
            if any(usage[slot >> 6] >> (slot & 63) & 1 for slot in slots)
        ]
        return f"{bits} in each of {self.rows} regions; those of {', '.join(used)} can rule it out"


def _find_accepted(
    construct: ValueConstruct | PairConstruct, atoms: Sequence[Any]
) -> list[Intervals]:
    """Return the regions in which each atom is TRUE."""
    if isinstance(construct, PairConstruct):
        return [order_sides(atom)[2] for atom in atoms]
    # in the order of the atoms, as far as these are sets of values
    of_sets = iter(
        construct.find_regions([atom.values for atom in atoms if isinstance(atom, Within)])
    )
    last = len(construct.rows) - 1
    of_null = {True: [(1, last)], False: [(0, 0)]}  # by whether it is negated
    return [of_null[atom.negated] if isinstance(atom, IsNull) else next(of_sets) for atom in atoms]


def _allocate_on_large_pages(shape: tuple[int, int]) -> Bits:
    """Return zeros that begin on a large page.

    Rows are read here and there, which takes longer where more addresses must be translated.
    """
    words = shape[0] * shape[1]
    buffer = np.zeros(max(words, MIN_LARGE_WORDS) + LARGE_PAGE_WORDS, np.uint64)
    skipped = -buffer.ctypes.data % (8 * LARGE_PAGE_WORDS) // 8
    return buffer[skipped : skipped + words].reshape(shape)


def _enlarge(array: npt.NDArray[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    larger = np.zeros(shape, array.dtype)
    larger[tuple(slice(0, size) for size in array.shape)] = array
    return larger
