"""Rows in which a few variables march through a gap, and all others are filled in.

"Characterizing Memory Requirements …", Lemma A.2, by other means: the lemma counts classes between
those that are given (and has a sign wrong); here shortest paths say how far apart any two variables
must be. A few that keep these distances among themselves can always be completed by all others.

Everything happens in whole *coordinates*. On a whole line they are the values. On any other line
the constants lie `spacing` apart, so that all rows fit between two of them; beyond the constants
one step is one position.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from headgate.stateful.analysis.theory.conjunctive import Conjunctive

Row = tuple[Fraction | int, ...]


@dataclass(frozen=True, slots=True)
class Track:
    """Variables, ascending, that move through a gap in blocks: each row's beyond the last's."""

    members: tuple[int, ...]
    gap: int
    rising: bool = True


@dataclass(frozen=True, slots=True)
class _Progression:
    """Where a variable or constant is in each row: `low`, then a step further up or down."""

    low: int
    high: int
    step: int = 0

    def at(self, row: int) -> int:
        return (self.low if self.step >= 0 else self.high) + row * self.step


def assign_values(query: Conjunctive, tracks: Sequence[Track], size: int) -> list[Row]:
    """Build so many rows of a satisfiable query, in which tracks move as planned.

    Of two tracks in one gap the first lies below the second. All other variables stand still where
    they can, at constants if possible. Where the tracks cannot move so, rows break conditions of
    the query: whoever asks must check.
    """
    filling = _ValueAssignment(query, size)
    for track in _order_tracks(query, tracks):
        filling.place(track)
    moving = filling.settle()
    return filling.build_rows(moving)


def _order_tracks(query: Conjunctive, tracks: Sequence[Track]) -> Iterable[Track]:
    """Yield upwards what has a constant below it, then downwards what lies below all constants."""
    beneath = [t for t in tracks if t.gap == 0 and query.constants(_get_line(query, t))]
    yield from sorted((t for t in tracks if t not in beneath), key=lambda track: track.gap)
    yield from reversed(beneath)


def _get_line(query: Conjunctive, track: Track) -> int:
    return query.variables[track.members[0]].line


class _ValueAssignment:
    """The progressions found so far; `distances[x][y]` is the most that x may exceed y by."""

    def __init__(self, query: Conjunctive, size: int) -> None:
        self.query, self.size = query, size
        # Room for all rows, each with a block of every variable, ten times over.
        self.spacing = 10 * (len(query.variables) + 2) * (size + 2)
        self.constants = [self._place_constants(line) for line in range(len(query.lines))]
        flat = [at for constants in self.constants for at in constants]
        # Constants stand still; they are numbered after the variables, as in `distances`.
        self.progressions = {
            len(query.variables) + i: _Progression(at, at) for i, at in enumerate(flat)
        }
        self.distances = _compute_distances(query, self.constants)

    def _place_constants(self, line: int) -> list[int]:
        """Return where the constants of a line lie."""
        constants = self.query.constants(line)
        if self.query.lines[line].whole:
            return constants
        return [self.spacing * rank for rank in range(len(constants))]

    def place(self, track: Track) -> None:
        """Let a track move as close to what is placed already as the distances allow."""
        offsets = self._compute_offsets(track.members)
        # A block of one row spans `period` coordinates, and the next row begins just beyond it.
        period = offsets[-1] + 1
        length = period * (self.size - 1)
        block = list(zip(track.members, offsets, strict=True))
        line = _get_line(self.query, track)
        # Below all constants a track hangs from the top of its gap, else it stands on the bottom.
        if track.gap == 0 and self.constants[line]:
            start = self._find_highest_start(line, block) - length
        else:
            start = self._find_lowest_start(line, track.gap, block)
        step = period if track.rising else -period
        for member, offset in block:
            self.progressions[member] = _Progression(start + offset, start + offset + length, step)

    def _find_highest_start(self, line: int, block: list[tuple[int, int]]) -> int:
        """Return how high a block can begin, below all that is placed on its line."""
        lows = [progression.low for progression in self._list_progressions(line)]
        limits = [self.constants[line][0], *lows]
        # The last member of a block, not the first, must stay below the limit.
        starts = [limit - 1 - block[-1][1] for limit in limits]
        for member, offset in block:
            starts += [low - offset for low in self._list_upper_limits(member)]
        return min(starts)

    def _find_lowest_start(self, line: int, gap: int, block: list[tuple[int, int]]) -> int:
        """Return how low a block can begin, above the constant below its gap and what is placed."""
        limits = self.constants[line][gap - 1 : gap] if gap else []
        starts = [limit + 1 for limit in limits]
        starts += [progression.high + 1 for progression in self._list_progressions(line)]
        for member, offset in block:
            starts += [high - offset for high in self._list_lower_limits(member)]
        return max(starts, default=0)

    def _list_progressions(self, line: int) -> Iterable[_Progression]:
        """Return the progressions of the tracks on a line."""
        members = (v for v, variable in enumerate(self.query.variables) if variable.line == line)
        return (self.progressions[v] for v in members if v in self.progressions)

    def _list_lower_limits(self, variable: int) -> list[int]:
        """Return what a variable must reach in all rows, for each that has a progression."""
        return [
            progression.high - self.distances[node][variable]
            for node, progression in self.progressions.items()
            if variable in self.distances[node]
        ]

    def _list_upper_limits(self, variable: int) -> list[int]:
        """Return what it must not exceed in any row."""
        return [
            self.progressions[node].low + most
            for node, most in self.distances[variable].items()
            if node in self.progressions
        ]

    def _compute_offsets(self, members: tuple[int, ...]) -> list[int]:
        """Return how far above the first each member of a block lies."""
        offsets: list[int] = []
        for member in members:
            # Members differ by at least one, and by as much as the closure demands.
            needed = [
                offset + max(1, -self.distances[other].get(member, 0))
                for other, offset in zip(members, offsets, strict=False)
            ]
            offsets.append(max(needed, default=0))
        return offsets

    def settle(self) -> list[int]:
        """Let variables stand still that can, those first that must; returns those that cannot."""
        variables = self.query.variables
        unplaced = [v for v in range(len(variables)) if v not in self.progressions]
        moving = []
        # Variables with finitely many values must stand still, so they choose first.
        for number in sorted(unplaced, key=lambda v: (not variables[v].finite, variables[v].dense)):
            low = max(self._list_lower_limits(number), default=None)
            high = min(self._list_upper_limits(number), default=None)
            # No single value serves all rows: the variable has to move along.
            if low is not None and high is not None and low > high:
                moving.append(number)
            else:
                at = _choose_coordinate(low, high, self.constants[variables[number].line])
                self.progressions[number] = _Progression(at, at)
        return moving

    def build_rows(self, moving: list[int]) -> list[Row]:
        """Return all rows, as positions. What moves is as high as what has a progression allows."""
        count = len(self.query.variables)
        # By moving variable: what it must not exceed, as (progression, distance). At its highest
        # it keeps all distances from below too, since shortest paths are closed.
        limits = {
            number: [
                (self.progressions[node], most)
                for node, most in self.distances[number].items()
                if node in self.progressions
            ]
            for number in moving
        }
        progressions = [(v, self.progressions[v]) for v in range(count) if v in self.progressions]
        rows = []
        for index in range(self.size):
            row = [0] * count
            for number, progression in progressions:
                row[number] = progression.at(index)
            for number, limit in limits.items():
                row[number] = min(progression.at(index) + most for progression, most in limit)
            rows.append(tuple(map(self._to_position, range(count), row)))
        return rows

    def _to_position(self, variable: int, coordinate: int) -> Fraction | int:
        line = self.query.variables[variable].line
        last = len(self.constants[line]) - 1
        # Coordinates count `spacing` per gap, positions count 1 per gap and 1 per step beyond.
        if self.query.lines[line].whole or last < 1 or coordinate <= 0:
            return coordinate
        if coordinate >= last * self.spacing:
            return last + coordinate - last * self.spacing
        return Fraction(coordinate, self.spacing)


def _choose_coordinate(low: int | None, high: int | None, constants: list[int]) -> int:
    """Return a coordinate between two ends: a constant if one lies there."""
    for constant in constants:
        if (low is None or low <= constant) and (high is None or constant <= high):
            return constant
    return low if low is not None else high if high is not None else 0


def _compute_distances(
    query: Conjunctive, constants: Sequence[Sequence[int]]
) -> list[dict[int, int]]:
    """Return the most that a variable or constant may exceed another by: Floyd and Warshall.

    Constants are numbered after the variables, line by line. Pairs without a limit are left out.
    """
    nodes = _number_constants(query)
    bounds: list[dict[int, int]] = [{n: 0} for n in range(len(query.variables) + len(nodes))]
    for line, on_line in enumerate(constants):
        numbers = [nodes[line, value] for value in query.constants(line)]
        # Constants are fixed, so the distance of any two of them is exact both ways.
        for constant, at in zip(numbers, on_line, strict=True):
            bounds[constant] |= {n: at - other for n, other in zip(numbers, on_line, strict=True)}
    for left, operator, right in _iter_edges(query, nodes):
        # On other lines "<" is one coordinate too; constants lie far enough apart for that.
        bounds[left][right] = min(bounds[left].get(right, 0), -1 if operator == "<" else 0)
        if operator == "=":
            bounds[right][left] = min(bounds[right].get(left, 0), 0)
    # Sparse rows, node -> distance, in Python's exact integers.
    for middle, onward in enumerate(bounds):
        for reach in bounds:
            if middle in reach:
                first = reach[middle]
                for node, second in list(onward.items()):
                    reach[node] = min(reach.get(node, first + second), first + second)
    return bounds


def _number_constants(query: Conjunctive) -> dict[tuple[int, int], int]:
    constants = ((n, value) for n in range(len(query.lines)) for value in query.constants(n))
    return {key: len(query.variables) + i for i, key in enumerate(constants)}


def _iter_edges(
    query: Conjunctive, nodes: dict[tuple[int, int], int]
) -> Iterable[tuple[int, str, int]]:
    """Yield all conditions as `<`, `<=` or `=` between variables and numbered constants."""
    for comparison in query.comparisons:
        yield comparison.left, comparison.operator, comparison.right
    for bound in query.bounds:
        node = nodes[query.variables[bound.variable].line, bound.constant]
        if bound.operator in (">", ">="):
            yield node, bound.operator.replace(">", "<"), bound.variable
        else:
            yield bound.variable, bound.operator, node
