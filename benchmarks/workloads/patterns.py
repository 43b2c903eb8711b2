"""Text conditions as rules of log detection have them, each with a text that satisfies it.

A needle is what a condition looks for. Rare needles are made of syllables and do not occur in the
usual text of a log; common ones do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from benchmarks.workloads.dice import Dice, weighted
from headgate.sql import literal

COMMON = (
    "windows system32 program files users appdata local temp bin usr share lib svchost explorer "
    "chrome renderer update service host start query config python java node agent backup session "
    "network policy cache driver install runtime default public shell task event helper"
).split()
SYLLABLES = (
    "ba be bo da de do fa fi fo ga gi go ha hu ka ki ko la lu ma mi mo na nu pa pe po qua ra ri ro "
    "sa so ta ti to va vi vo wa xa xo ya yo za ze zo"
).split()
JOINTS = (" ", " ", "\\", "/", " -", " --", "=", ".", "_", ":")

Place = Literal["anywhere", "start", "end"]


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition, and a text that satisfies it when it stands at that place of a longer one."""

    sql: str
    text: str
    place: Place = "anywhere"


def rare_needle(dice: Dice) -> str:
    """A word such as no usual text has, now and then with what LIKE must escape."""
    word = "".join(dice.one_of(SYLLABLES) for _ in range(dice.whole(3, 4)))
    kind = dice.fraction()
    if kind < 0.1:
        return f"{word}_{dice.whole(10, 99)}"
    if kind < 0.2:
        return f"\\{word}"
    return f"{word}{dice.whole(0, 9)}"


def common_needle(dice: Dice) -> str:
    return dice.one_of(COMMON)


def usual_text(length: int, dice: Dice) -> str:
    """So much text of common words, numbers and what stands between them."""
    parts: list[str] = []
    size = 0
    while size < length:
        word = dice.one_of(COMMON) if dice.chance(0.7) else f"{dice.whole(0, 0xFFFFFF):x}"
        parts += word, dice.one_of(JOINTS)
        size += len(parts[-1]) + len(word)
    return "".join(parts)[:length]


def anchored(column: str, needle: str, dice: Dice) -> Condition:
    """Any kind of condition that looks for the needle."""
    return dice.one_of(_ANCHORED)(column, needle, dice)


def floating(column: str, needle: str, dice: Dice) -> Condition:
    """A condition that finds the needle anywhere, so that two of them can both hold."""
    return dice.one_of(_FLOATING)(column, needle, dice)


def _contains(column: str, needle: str, _: Dice) -> Condition:
    return Condition(f"{column} LIKE {literal(f'%{escaped(needle)}%')}", needle)


def _starts(column: str, needle: str, _: Dice) -> Condition:
    return Condition(f"{column} LIKE {literal(f'{escaped(needle)}%')}", needle, "start")


def _ends(column: str, needle: str, dice: Dice) -> Condition:
    name = needle + dice.one_of((".exe", ".dll", ".ps1", ""))
    return Condition(f"{column} LIKE {literal(f'%{escaped(name)}')}", name, "end")


def _ignores_case(column: str, needle: str, _: Dice) -> Condition:
    return Condition(f"{column} ILIKE {literal(f'%{escaped(needle)}%')}", needle.upper())


def _two_pieces(column: str, needle: str, dice: Dice) -> Condition:
    second = dice.one_of(COMMON)
    pattern = f"%{escaped(needle)}%{second}%"
    return Condition(f"{column} LIKE {literal(pattern)}", f"{needle} {second}")


def _regex(column: str, needle: str, dice: Dice) -> Condition:
    plain = needle.strip("\\")
    pattern, text = dice.one_of(
        (
            (f"{plain}[0-9]{{2,4}}", f"{plain}{dice.whole(10, 9_999)}"),
            (f"{plain}\\s+(-|/)(e|enc)\\b", f"{plain}  -enc "),
            (f"(?i){plain}\\.(exe|dll|ps1)", f"{plain.title()}.DLL"),
        )
    )
    return Condition(f"{column} RLIKE {literal(pattern)}", text)


def escaped(text: str) -> str:
    r"""The text as LIKE must have it to mean itself.

    >>> escaped("\\a_b")
    '\\\\a\\_b'
    """
    return "".join(f"\\{character}" if character in "\\%_" else character for character in text)


_Kind = Callable[[str, str, Dice], Condition]
_FLOATING: tuple[_Kind, ...] = weighted(
    {_contains: 14, _ignores_case: 3, _two_pieces: 1, _regex: 1}
)
_ANCHORED: tuple[_Kind, ...] = (*_FLOATING, *weighted({_starts: 2, _ends: 4}))
