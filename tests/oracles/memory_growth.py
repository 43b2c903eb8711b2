"""Whether a join of two occurrences needs bounded memory, by how its join matrix grows.

The matrix has a row for every row that may have arrived on one side, and a column for every row
that may still arrive on the other; an entry says whether, or how often, the two give an output.
What has arrived must be told apart exactly as far as the rows of the matrix do:

- Where duplicates count, what is remembered is a sum of rows. It needs as many counters as the
  matrix has rank, and a matrix of few different numbers has a bounded rank just if it has boundedly
  many different rows. So these are counted, in a domain and in a larger one.
- Under DISTINCT it is a union of rows, of which any is a union of few iff there are no large
  families in which each row has a column of its own. By Ramsey's theorem a family that grows
  without end has a large part in which every value stands still, rises or falls, in one order
  throughout. There are finitely many kinds of such families, and all of them are tried. In a
  self-join no member may give the output with a member, since it is given once and then forgotten.

Only the definition of the answer is used, on whole numbers and NULL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import product
from operator import eq, ge, gt, le, lt, ne
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.stateful.random_or import CONSTANTS, Attribute, Literal, OrQuery, Tree

OPERATORS = {"<": lt, "<=": le, "=": eq, ">=": ge, ">": gt, "<>": ne}
NULL = -99
FAMILY = 3
ROOMS = (5, 9)  # values beyond the constants; four variables, one after the other, fit in between

Values = Mapping[Attribute, NDArray[np.int8]]
Booleans = NDArray[np.bool_]


def is_bounded(query: OrQuery) -> bool:
    """Tell whether bounded memory is enough."""
    if query.select == "DISTINCT":
        return not any(_has_growing_family(query, side) for side in (0, 1))
    # Where both roles of two rows give different outputs, these are told apart.
    separations = (False, True) if _can_differ(query) and query.select == "all" else (False,)
    return all(
        _count_different_rows(query, side, ROOMS[0], apart=apart)
        == _count_different_rows(query, side, ROOMS[1], apart=apart)
        for side, apart in product((0, 1), separations)
    )


def _can_differ(query: OrQuery) -> bool:
    """Tell whether two rows of a self-join can give another output if their roles are changed."""
    return query.is_self_join and len(query.keys) > 1


def _get_output(query: OrQuery, side: int, own: int, other: int) -> tuple[int, ...]:
    """Return what two rows give, one of them at a side, by their keys."""
    return tuple(own if at == side else other for at in query.outputs)


def _evaluate(node: Tree | Literal, values: Values) -> Booleans:
    """Tell where a condition is TRUE; without NOT, UNKNOWN is as good as FALSE."""
    held: Booleans
    if isinstance(node, Tree):
        combine = np.logical_and if node.connective == "AND" else np.logical_or
        held = combine.reduce(
            np.broadcast_arrays(*(_evaluate(member, values) for member in node.members))
        )
        return held
    left = values[node.left]
    if node.right is None:
        held = (left == NULL) == (node.operator == "IS NULL")
        return held
    right: Any = values[node.right] if isinstance(node.right, tuple) else np.int8(node.right)
    held = OPERATORS[node.operator](left, right) & (left != NULL) & (right != NULL)
    return held


def _list_roles(query: OrQuery, side: int) -> tuple[int, ...]:
    """Return the sides at which a row can stand: in a self-join at both."""
    return (side, 1 - side) if query.is_self_join else (side,)


def _join(query: OrQuery, side: int, own: list[Any], other: list[Any]) -> Booleans:
    """Tell which rows at a side join with which others."""
    return _evaluate(query.condition, _name_values(query, side, own, other))


def _name_values(query: OrQuery, side: int, own: list[Any], other: list[Any]) -> Values:
    named = {(side, name): values for name, values in zip(query.names(side), own, strict=True)}
    return named | {
        (1 - side, name): values for name, values in zip(query.names(1 - side), other, strict=True)
    }


def _count_different_rows(query: OrQuery, side: int, room: int, *, apart: bool) -> int:
    """Count the different rows of the matrix, with so much room beyond the constants.

    The outputs of both roles are kept `apart`, or added.
    """
    own, other = _list_rows(query, side, room), _list_rows(query, 1 - side, room)
    columns = [v[:, None] for v in own], [v[None, :] for v in other]
    shape = len(own[0]), len(other[0])
    by_role = [
        np.broadcast_to(_join(query, role, *columns), shape).astype(np.int8)
        for role in _list_roles(query, side)
    ]
    matrix = np.concatenate(by_role, axis=1) if apart else np.sum(by_role, axis=0)
    return len(np.unique(matrix, axis=0))


def _list_rows(query: OrQuery, side: int, room: int) -> list[NDArray[np.int8]]:
    domain = range(min(CONSTANTS) - room, max(CONSTANTS) + room + 1)
    choices = [
        [*domain, NULL] if (side, name) in query.nullable else [*domain]
        for name in query.names(side)
    ]
    return [np.array(values, np.int8) for values in zip(*product(*choices), strict=True)]


def _has_growing_family(query: OrQuery, side: int) -> bool:
    """Tell whether rows of any number have a column of their own each."""
    families = _list_families()  # rows: two attributes that have arrived, then two that come
    names = [(at, name) for at in (side, 1 - side) for name in query.names(at)]
    usable = np.ones(len(families), np.bool_)
    for place, attribute in enumerate(names):
        if attribute not in query.nullable:
            usable &= families[:, place, 0] != NULL
    families = families[usable]
    arrived = [[families[:, v, i] for v in (0, 1)] for i in range(FAMILY)]
    coming = [[families[:, v, i] for v in (2, 3)] for i in range(FAMILY)]
    roles = _list_roles(query, side)
    # All that arrives has one key, all that comes has one, and one output is looked at.
    for own, other in product(query.keys, repeat=2) if query.is_self_join else ((1, 1),):
        for output in {_get_output(query, role, own, other) for role in roles}:
            giving = [r for r in roles if _get_output(query, r, own, other) == output]
            growing = np.ones(len(families), np.bool_)
            for i, j in product(range(FAMILY), repeat=2):
                gives = [_join(query, role, arrived[i], coming[j]) for role in giving]
                growing &= np.logical_or.reduce(gives) == (i == j)
                if query.is_self_join and _get_output(query, side, own, own) == output:
                    growing &= ~_join(query, side, arrived[i], arrived[j])
                if query.is_self_join and _get_output(query, side, other, other) == output:
                    growing &= ~_join(query, side, coming[j], coming[j])
            if growing.any():
                return True
    return False


@cache
def _list_families() -> NDArray[np.int8]:
    """Return an example of every kind of family: families × four variables × members.

    Beyond the constants, above and below, are two stretches in which variables move: in one they
    rise, in the other they fall. Before, between and behind them is room for those that stand.
    """
    kinds = []
    for rising_first in (True, False):
        paths = np.array(list(_iter_paths(rising_first)), np.int8)
        moving = np.flatnonzero(paths[:, 0] != paths[:, 1])
        every = np.arange(len(paths))
        # Something that has arrived must move, and something that comes.
        for first, second in ((moving, every), (every, moving)):
            for third, fourth in ((moving, every), (every, moving)):
                grid = np.meshgrid(first, second, third, fourth, indexing="ij")
                kinds.append(paths[np.stack([axis.ravel() for axis in grid], axis=1)])
    families = np.concatenate(kinds)
    return families[_find_unlike(families)]


def _iter_paths(rising_first: bool) -> Iterator[list[int]]:
    """Yield what one variable can do: the values that it has in the members of a family."""
    yield from ([value] * FAMILY for value in (*CONSTANTS, NULL))
    block, still = 4, 2
    stretch = block * FAMILY
    length = 2 * stretch + 3 * still
    # Above the constants a stretch that rises comes first. Below them both orders are tried; to
    # turn both around is to number the members the other way.
    for start, ascends in ((max(CONSTANTS) + 1, True), (min(CONSTANTS) - length, rising_first)):
        for standing in (0, stretch + still, 2 * (stretch + still)):
            yield from ([start + standing + offset] * FAMILY for offset in range(still))
        for number, rises in enumerate((ascends, not ascends)):
            low = start + still + number * (stretch + still)
            blocks = range(FAMILY) if rises else range(FAMILY - 1, -1, -1)
            for offset in range(block):
                yield [low + block * at + offset for at in blocks]


def _find_unlike(families: NDArray[np.int8]) -> NDArray[np.intp]:
    """Return one family of each kind; alike are those in which values are ordered alike."""
    flat = families.reshape(len(families), -1)
    # The order of all values among each other, with the constants, as ranks; NULL is lowest.
    constants = np.broadcast_to(np.array(CONSTANTS, np.int8), (len(flat), len(CONSTANTS)))
    every = np.concatenate([flat, constants], axis=1)
    ordered = np.sort(every, axis=1)
    steps = np.concatenate([np.zeros((len(every), 1), np.int8), np.diff(ordered) > 0], axis=1)
    ranks = np.cumsum(steps, axis=1, dtype=np.int8)
    placed = np.empty_like(ranks)
    np.put_along_axis(placed, np.argsort(every, axis=1, kind="stable"), ranks, axis=1)
    is_null = np.packbits(flat == NULL, axis=1)
    keys = np.ascontiguousarray(np.concatenate([placed.view(np.uint8), is_null], axis=1))
    return np.unique(keys.view(f"V{keys.shape[1]}").ravel(), return_index=True)[1]
