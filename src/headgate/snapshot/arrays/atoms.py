"""Distinct atoms as a struct of arrays; entry i of every array speaks of atom i.

| kind     | column  | second      | code                      | negated | range                   |
|----------|---------|-------------|---------------------------|---------|-------------------------|
| CONSTANT | −1      | −1          | FALSE 0, TRUE 1, NULL 2   | 0       | empty                   |
| WITHIN   | its own | −1          | place in `SET_FORMS`      | 0       | its cuts, in their pool |
| IS_NULL  | its own | −1          | 0                         | 0 or 1  | empty                   |
| COMPARE  | left    | right       | place in `OPERATORS`      | 0       | empty                   |
| MATCHES  | its own | −1          | 0                         | 0 or 1  | its pattern             |

`column` and `second` are numbers in the column table, the range is `start` up to `end`, and
`starts_inside` is the flag of a WITHIN's value set.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import get_args

import numpy as np
import numpy.typing as npt

from headgate.predicate import (
    Atom,
    Column,
    Compare,
    Constant,
    IsNull,
    Matches,
    Operator,
    Within,
    columns_of,
)
from headgate.predicate.atoms import SetForm
from headgate.queries import Source
from headgate.schema import Schema, ValueSet
from headgate.snapshot.arrays.operands import (
    ColumnNumbers,
    ColumnTable,
    CutPools,
    Cuts,
    PatternNumbers,
    Patterns,
    decode_columns,
    decode_cuts,
    decode_patterns,
    pool_of,
)
from headgate.snapshot.arrays.trees import TRUTH_VALUES

CONSTANT, WITHIN, IS_NULL, COMPARE, MATCHES = range(5)
OPERATORS: tuple[Operator, ...] = ("<", "<=", "=", "<>", ">=", ">")
SET_FORMS: tuple[SetForm, ...] = get_args(SetForm)
_FORM_CODES = {form: code for code, form in enumerate(SET_FORMS)}
ATOM_FIELDS = ("kind", "column", "second", "code", "negated", "starts_inside", "start", "end")

Flags = npt.NDArray[np.uint8]
_Row = tuple[int, int, int, int, bool, bool, int, int]


@dataclass(frozen=True, slots=True, eq=False)
class EncodedAtoms:
    """The atoms, the columns that they mention, their cuts and their patterns."""

    kind: npt.NDArray[np.uint8]
    column: npt.NDArray[np.int32]
    second: npt.NDArray[np.int32]
    code: npt.NDArray[np.uint8]
    negated: Flags
    starts_inside: Flags
    start: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    columns: ColumnTable
    cuts: Cuts
    patterns: Patterns

    def __len__(self) -> int:
        return len(self.kind)


class AtomNumbers:
    """A numbering of distinct atoms, in the order of their first occurrence.

    Equal atoms over streams of their own are different atoms: they speak of different columns.
    """

    def __init__(self, schema: Schema) -> None:
        self._columns = ColumnNumbers(schema)
        self._cuts = CutPools()
        self._patterns = PatternNumbers()
        # by columns and atom, or what stands for it: its number, which is its place in `_rows`
        self._numbers: dict[tuple[object, ...], int] = {}
        self._rows: list[_Row] = []
        self._alive: list[Atom] = []

    def stream(self, name: str) -> int:
        """Return the number of a stream in the schema."""
        return self._columns.stream(name)

    def under(self, sources: tuple[Source, ...]) -> Callable[[Atom], int]:
        """Return the numbering of atoms in queries over these sources.

        A million queries share their atoms as objects, and hashing an atom takes longer than all
        else. So an object that was seen is known by its address, and kept alive for that.
        """
        # by the address of an object: the number of the atom, and of the column
        known: dict[int, int] = {}
        known_columns: dict[int, int] = {}
        keep_alive = self._alive.append

        def number_column(column: Column) -> int:
            number = known_columns[id(column)] = self._columns.number(column, sources)
            return number

        def number_of(atom: Atom) -> int:
            number = known.get(id(atom))
            if number is not None:
                return number
            keep_alive(atom)
            if type(atom) is Within:  # as most are
                column = known_columns.get(id(atom.column))
                if column is None:
                    column = number_column(atom.column)
                number = self._number_within(atom, column)
            else:
                number = self._number_other(atom, tuple(map(number_column, columns_of(atom))))
            known[id(atom)] = number
            return number

        return number_of

    def _number_within(self, atom: Within, column: int) -> int:
        values = atom.values
        # hashing the atom whole takes twice as long
        key = (column, values.cuts, values.starts_inside, atom.form)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._rows)
            start, end = self._cuts.add(atom.column.type, values.cuts)
            form = _FORM_CODES[atom.form]
            self._rows.append((WITHIN, column, -1, form, False, values.starts_inside, start, end))
        return number

    def _number_other(self, atom: Atom, columns: tuple[int, ...]) -> int:
        key = (columns, atom)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._rows)
            self._rows.append(self._make_row(atom, columns))
        return number

    def _make_row(self, atom: Atom, columns: tuple[int, ...]) -> _Row:
        if isinstance(atom, Constant):
            return CONSTANT, -1, -1, TRUTH_VALUES.index(atom.value), False, False, 0, 0
        if isinstance(atom, IsNull):
            return IS_NULL, columns[0], -1, 0, atom.negated, False, 0, 0
        if isinstance(atom, Compare):
            left, right = columns
            return COMPARE, left, right, OPERATORS.index(atom.operator), False, False, 0, 0
        assert isinstance(atom, Matches)
        place = self._patterns.number(atom.pattern)
        return MATCHES, columns[0], -1, 0, atom.negated, False, place, place + 1

    def arrays(self) -> EncodedAtoms:
        # from rows to columns; without rows there is nothing to transpose
        kind, column, second, code, negated, starts_inside, start, end = (
            zip(*self._rows, strict=True) if self._rows else ((),) * 8
        )
        return EncodedAtoms(
            kind=np.array(kind, np.uint8),
            column=np.array(column, np.int32),
            second=np.array(second, np.int32),
            code=np.array(code, np.uint8),
            negated=np.array(negated, np.uint8),
            starts_inside=np.array(starts_inside, np.uint8),
            start=np.array(start, np.int64),
            end=np.array(end, np.int64),
            columns=self._columns.arrays(),
            cuts=self._cuts.arrays(),
            patterns=self._patterns.arrays(),
        )


def decode_atoms(
    encoded: EncodedAtoms, schema: Schema, numbers: npt.NDArray[np.int64] | None = None
) -> list[Atom]:
    """Return the atoms as objects, all of them or those of some numbers."""
    # without any there is nothing to decode, while there may be millions of cuts
    if numbers is not None and not len(numbers):
        return []
    return _Decoder(encoded, schema).atoms(slice(None) if numbers is None else numbers)


class _Decoder:
    def __init__(self, encoded: EncodedAtoms, schema: Schema) -> None:
        self._encoded = encoded
        self._columns = decode_columns(encoded.columns, schema)
        # the pool of a column follows from its type, so it is looked up once for each
        pools = decode_cuts(encoded.cuts)
        self._pools = [pools[pool_of(column.type)] for column in self._columns]
        self._patterns = decode_patterns(encoded.patterns)

    def atoms(self, which: slice | npt.NDArray[np.int64]) -> list[Atom]:
        encoded = self._encoded
        return list(
            map(
                self._atom,
                encoded.kind[which].tolist(),
                encoded.column[which].tolist(),
                encoded.second[which].tolist(),
                encoded.code[which].tolist(),
                encoded.negated[which].astype(bool).tolist(),
                encoded.starts_inside[which].astype(bool).tolist(),
                encoded.start[which].tolist(),
                encoded.end[which].tolist(),
            )
        )

    def _atom(
        self,
        kind: int,
        column: int,
        second: int,
        code: int,
        negated: bool,
        starts_inside: bool,
        start: int,
        end: int,
    ) -> Atom:
        if kind == CONSTANT:
            return Constant(TRUTH_VALUES[code])
        first: Column = self._columns[column]
        if kind == WITHIN:
            values = ValueSet(tuple(self._pools[column][start:end]), starts_inside)
            return Within(first, values, SET_FORMS[code])
        if kind == IS_NULL:
            return IsNull(first, negated)
        if kind == COMPARE:
            return Compare(first, OPERATORS[code], self._columns[second])
        return Matches(first, self._patterns[start], negated)
