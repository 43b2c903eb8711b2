"""Weak semantics of `<>` and NOT IN (section 8.3), as a rewriting into SQL's own.

    a <> 3                   ->  a <> 3 OR a IS NULL
    a <> 3 AND a IS NOT NULL ->  (a <> 3 OR a IS NULL) AND a IS NOT NULL, which is a <> 3
    a NOT LIKE 'x%'          ->  as it is, like ranges, comparisons of attributes and IS TRUE

What is written as `<>`, NOT IN or otherwise is the same set of values: so every condition is meant
that refuses some values, at most `MOST_REFUSED`, and accepts more than one. On a BOOLEAN column
`f <> TRUE` is `f = FALSE`, and stays as it is.
"""

from __future__ import annotations

from headgate.predicate import IsNull, Predicate, Within, push_negations
from headgate.predicate.tree import And, Or, conjunction, disjunction
from headgate.schema import Interval, ValueSet
from headgate.schema.types import successor

MOST_REFUSED = 10_000


def weakened(predicate: Predicate) -> Predicate:
    """The predicate that holds by SQL where this one does by the weak semantics."""
    return _weakened(push_negations(predicate))


def _weakened(predicate: Predicate) -> Predicate:
    if isinstance(predicate, And):
        return conjunction(_weakened(part) for part in predicate.parts)
    if isinstance(predicate, Or):
        return disjunction(_weakened(part) for part in predicate.parts)
    if isinstance(predicate, Within) and _refuses_few(predicate):
        return disjunction((predicate, IsNull(predicate.column)))
    return predicate


def _refuses_few(atom: Within) -> bool:
    type_, refused = atom.column.type, atom.values.complement()
    if refused.is_empty:
        return False
    last = None if type_.maximum is None else successor(type_.maximum)
    ends = [
        Interval(
            type_.minimum if one.low is None else one.low, last if one.high is None else one.high
        )
        for one in refused.intervals
    ]
    accepted = atom.values.intervals
    single = len(accepted) == 1 and _is_single(accepted[0], type_.minimum, last)
    few = ValueSet(tuple(end for one in ends for end in (one.low, one.high)), False)
    infinite = any(one.high is None for one in ends)
    return not single and not infinite and few.finite_ordinals(MOST_REFUSED) is not None


def _is_single(interval: Interval, first: object, last: object) -> bool:
    low = first if interval.low is None else interval.low
    high = last if interval.high is None else interval.high
    return isinstance(low, int | str) and high == successor(low)
