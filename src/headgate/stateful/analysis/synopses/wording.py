"""What a bucket keeps, in words."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.stateful.analysis.synopses.extremes import References, ends
from headgate.stateful.analysis.synopses.plan import Store


def what_is_kept(store: Store, *, is_known: bool) -> str:
    """What each bucket of a store keeps; `is_known` where the bucket itself says all its values.

    A bucket in which fewer attributes are open keeps the row that is extreme in those.
    """
    if not store.part.distinct:
        return _counts(store, is_known=is_known)
    found = ends(store)
    if found is None:
        return "nothing"
    sides = [_extreme(found.highs, "greatest", "least"), _extreme(found.lows, "least", "greatest")]
    if store.carried is not None:
        end = "greatest" if found.highs.columns else "least"
        return f"the {end} {store.carried.name}"
    said = " and ".join(side for side in sides if side)
    return said or ("whether there is a row" if is_known else "the first row")


def _counts(store: Store, *, is_known: bool) -> str:
    parts = ["a count"] if is_known else ["a count", "the first row"]
    parts += [f"the sum of {column.name}" for column in store.summed]
    parts += [f"how many {column.name} are not NULL" for column in store.counted]
    return listed(parts)


def _extreme(references: References, end: str, other: str) -> str:
    """
    >>> from headgate.predicate import Column
    >>> from headgate.schema import INT
    >>> _extreme(References({Column(n, INT): (True,) for n in "bcd"}), "greatest", "least")
    'the row with the greatest of the least of b, c and d'
    """
    if not references.columns:
        return ""
    names = [column.name for column in references.columns]
    of = names[0] if len(names) == 1 else f"of the {other} of {listed(names)}"
    rows = "the row" if references.most == 1 else f"up to {references.most} rows"
    return f"{rows} with the {end} {of}"


def listed(words: Sequence[str]) -> str:
    """
    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
