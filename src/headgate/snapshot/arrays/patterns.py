"""The patterns of LIKE, ILIKE and RLIKE, each once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headgate.predicate import Pattern
from headgate.predicate.atoms import PatternKind
from headgate.snapshot.arrays.texts import Texts, pack, unpack

PATTERN_KINDS: tuple[PatternKind, ...] = ("LIKE", "ILIKE", "RLIKE")


@dataclass(frozen=True, slots=True, eq=False)
class Patterns:
    """Pattern i has the kind `PATTERN_KINDS[kind[i]]`, its text and its escape character."""

    kind: npt.NDArray[np.uint8]
    text: Texts
    escape: Texts

    def __len__(self) -> int:
        return len(self.kind)


class PatternNumbers:
    """Numbers distinct patterns in the order of their first occurrence."""

    def __init__(self) -> None:
        self._numbers: dict[Pattern, int] = {}

    def number(self, pattern: Pattern) -> int:
        return self._numbers.setdefault(pattern, len(self._numbers))

    def arrays(self) -> Patterns:
        return Patterns(
            kind=np.array([PATTERN_KINDS.index(p.kind) for p in self._numbers], np.uint8),
            text=pack(pattern.text for pattern in self._numbers),
            escape=pack(pattern.escape for pattern in self._numbers),
        )


def patterns_from(patterns: Patterns) -> list[Pattern]:
    """The patterns themselves, by number."""
    columns = (patterns.kind.tolist(), unpack(patterns.text), unpack(patterns.escape))
    return [
        Pattern(PATTERN_KINDS[kind], text, escape)
        for kind, text, escape in zip(*columns, strict=True)
    ]
