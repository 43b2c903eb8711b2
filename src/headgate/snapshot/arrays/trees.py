"""A predicate as a postfix program: integers that a stack machine reads from left to right.

| entry      | what the machine does                                                     |
|------------|---------------------------------------------------------------------------|
| n ≥ 0      | pushes atom n                                                             |
| −1         | NOT: negates the top                                                      |
| −8 − mask  | TRUTH: replaces the top by whether its truth value is in the mask         |
| −16 − 2n   | AND: replaces the top n, in the order of their pushing, by their AND      |
| −17 − 2n   | OR: likewise                                                              |

Truth values are numbered FALSE 0, TRUE 1, NULL 2; a mask has bit 2^number for each of its values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headgate.predicate import And, Atom, Not, Or, Predicate, Truth
from headgate.predicate.tree import Accepted

NOT = -1
TRUTH = -8
AND = -16
OR = -17

_OPERATORS = frozenset((And, Or, Not, Truth))
TRUTH_VALUES: tuple[bool | None, ...] = (False, True, None)


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """The program of query i is `program[offsets[i]:offsets[i + 1]]`."""

    offsets: npt.NDArray[np.int64]
    program: npt.NDArray[np.int32]


def to_postfix(predicate: Predicate, number_of: Callable[[Atom], int]) -> list[int]:
    """Return the program of a predicate, without recursion: trees may be deep.

    >>> from headgate.predicate import FALSE, TRUE
    >>> to_postfix(And((TRUE, Not(FALSE), TRUE)), [FALSE, TRUE].index)
    [1, 0, -1, 1, -22]
    """
    if type(predicate) is And:
        parts = predicate.parts
        # a conjunction of atoms, as most queries are, needs no stack
        if _OPERATORS.isdisjoint(map(type, parts)):
            return [*map(number_of, parts), AND - 2 * len(parts)]  # type: ignore[arg-type]
    return _expand_postfix(predicate, number_of)


def _expand_postfix(predicate: Predicate, number_of: Callable[[Atom], int]) -> list[int]:
    entries: list[int] = []
    pending: list[Predicate | int] = [predicate]  # an operator waits here below its parts
    while pending:
        node = pending.pop()
        # most are atoms
        if type(node) not in _OPERATORS and type(node) is not int:
            entries.append(number_of(node))  # type: ignore[arg-type]
        elif isinstance(node, int):
            entries.append(node)
        elif isinstance(node, And):
            # parts go on in reverse, so that they come off in order, before the operator
            pending.append(AND - 2 * len(node.parts))
            pending.extend(node.parts[::-1])
        elif isinstance(node, Or):
            pending.append(OR - 2 * len(node.parts))
            pending.extend(reversed(node.parts))
        elif isinstance(node, Not):
            pending += NOT, node.part
        else:
            assert isinstance(node, Truth)
            pending += TRUTH - to_mask(node.accepted), node.part
    return entries


def from_postfix(program: Iterable[int], atoms: Sequence[Atom]) -> Predicate:
    """Return the predicate of a program; the inverse of `to_postfix`.

    >>> from headgate.predicate import FALSE, TRUE
    >>> from_postfix([1, 0, -21], [FALSE, TRUE])
    Or(parts=(Constant(value=True), Constant(value=False)))
    """
    # the stack machine of the table above, over predicates instead of truth values
    stack: list[Predicate] = []
    for entry in program:
        if entry >= 0:
            stack.append(atoms[entry])
        elif entry <= AND:
            # AND and OR differ by one, so the remainder tells them apart.
            arity, is_or = divmod(AND - entry, 2)
            start = len(stack) - arity
            parts = tuple(stack[start:])
            del stack[start:]
            stack.append(Or(parts) if is_or else And(parts))
        elif entry == NOT:
            stack.append(Not(stack.pop()))
        else:
            stack.append(Truth(stack.pop(), from_mask(TRUTH - entry)))
    (predicate,) = stack
    return predicate


def to_mask(accepted: Accepted) -> int:
    """Return truth values as bits.

    >>> to_mask(frozenset({True, None}))
    6
    """
    return sum(1 << number for number, value in enumerate(TRUTH_VALUES) if value in accepted)


def from_mask(mask: int) -> Accepted:
    """Return the truth values whose bits are set."""
    return frozenset(value for number, value in enumerate(TRUTH_VALUES) if mask >> number & 1)
