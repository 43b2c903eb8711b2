"""Where a query was filed, in words."""

from __future__ import annotations

import numpy as np

from headgate.matching.keyed.arrays import FALSE, TRUE
from headgate.matching.keyed.build import NEVER, UNKNOWN, key_costs
from headgate.matching.keyed.kernels.keys import choose_keys
from headgate.matching.keyed.segment import Segment
from headgate.matching.protocol import Placement
from headgate.predicate import Atom, Not, Predicate, Truth
from headgate.schema import Schema
from headgate.snapshot.arrays.atoms import atoms_from
from headgate.sql import render_predicate

KIND = "keyed"


def filing(segment: Segment, number: int, schema: Schema) -> Placement:
    """How events find a query of a segment."""
    if number in segment.built.grid.query:
        grid, (by_grid, by_keys) = segment.built.grid, segment.built.estimates
        how = (
            f"in a bitmap with {len(grid.query) - 1:,} others, looked at for every event: that is "
            f"estimated at {by_grid / 1000:.2g} µs an event, and at {by_keys / 1000:.2g} by keys"
        )
        return Placement(KIND, how)
    encoded, trees = segment.encoded, segment.built.conditions
    begin, end = trees.offsets[number : number + 2]
    program = trees.program[begin:end]
    _, atoms, targets, weight = choose_keys(
        np.array([0, len(program)]), program, key_costs(encoded, segment.built)
    )
    if weight[0] == NEVER:
        return Placement(KIND, "looked at for no event, because it cannot match")
    if weight[0] == UNKNOWN:
        return Placement(KIND, "looked at for every event, because no condition leads to it")
    literals = sorted(set(zip(atoms.tolist(), targets.tolist(), strict=True)))
    numbers = np.array([atom for atom, _ in literals], np.int64)
    found = atoms_from(encoded.atoms, schema, numbers)
    conditions = [
        render_predicate(_with(atom, target))
        for atom, (_, target) in zip(found, literals, strict=True)
    ]
    how = "looked at for events that meet one of these conditions"
    return Placement(KIND, how, tuple(conditions), min(1.0, float(weight[0])))


def _with(atom: Atom, target: int) -> Predicate:
    """The condition that an atom has a truth value."""
    if target == TRUE:
        return atom
    return Not(atom) if target == FALSE else Truth(atom, frozenset({None}))
