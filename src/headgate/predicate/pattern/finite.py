r"""The texts of a pattern, where they are few: a LIKE or ILIKE without wildcards, `^(a|b)$`.

This is the one place that knows which patterns have a finite language; whoever asks for it gets a
list of texts, or none.
"""

from __future__ import annotations

import re
from itertools import islice, product

from headgate.predicate.pattern.like import parse_like
from headgate.predicate.pattern.lower_case import characters_by_lower_case

MAX_LISTED_TEXTS = 1_000

_PLAIN = r"[^\\.^$|?*+()\[\]{}]"
_ALTERNATIVES = re.compile(rf"\^\((?:\?:)?({_PLAIN}*(?:\|{_PLAIN}*)*)\)\$|\^({_PLAIN}*)\$")
_LINE_ENDS = ("", "\n", "\r\n", "\r", "\x85", "\u2028", "\u2029")  # that `$` may stand before
_CONTEXTUAL = frozenset("ςσ\u0307")  # lower case that depends on more than one character


def list_candidate_texts(kind: str, text: str, escape: str) -> tuple[str, ...] | None:
    r"""Return texts among which are all that a pattern matches; None where they may be many.

    >>> list_candidate_texts("LIKE", "a\\%", "\\"), list_candidate_texts("ILIKE", "a1", "\\")
    (('a%',), ('A1', 'a1'))
    >>> list_candidate_texts("RLIKE", "^(a|bc)$", "\\")[:3]
    ('a', 'a\n', 'a\r\n')
    """
    if kind == "RLIKE":
        alternatives = _ALTERNATIVES.fullmatch(text)
        if alternatives is None:
            return None
        texts = (alternatives[1] if alternatives[2] is None else alternatives[2]).split("|")
        return _list_few(texts, _LINE_ENDS)
    like = parse_like(text.lower() if kind == "ILIKE" else text, escape)
    if not like.is_literal:
        return None
    if kind == "LIKE":
        return (like.prefix,)
    if _CONTEXTUAL & set(like.prefix):
        return None
    return _list_few(*map(_list_originals, like.prefix))


def _list_few(*choices: list[str] | tuple[str, ...]) -> tuple[str, ...] | None:
    """Return all texts with one of the choices at each place, unless they are too many."""
    texts = tuple("".join(parts) for parts in islice(product(*choices), MAX_LISTED_TEXTS + 1))
    return None if len(texts) > MAX_LISTED_TEXTS else texts


def _list_originals(character: str) -> tuple[str, ...]:
    """Return the characters whose lower case this is: `k` has K, k and the Kelvin sign."""
    originals = characters_by_lower_case().get(character, character)
    return tuple(original for original in sorted(originals) if original.lower() == character)
