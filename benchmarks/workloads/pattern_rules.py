"""Rules like those that look for attacks in logs: AND and OR over some twenty text patterns each.

A rule is an AND of groups, each about one attribute: any of several patterns, or any of several
pairs of patterns that must both occur; for some rules also a channel, and something that must not
occur. Most patterns are `%substring%`. One group at least has only rare needles, such as stand in
no usual text, while those of the others are common now and then: without planting hardly any event
matches, though many conditions hold in part.

Events have text of 200 characters in every attribute. Into a share of them one rule is planted:
from each of its groups what satisfies it. So that share of the events matches, and some of these
match other rules too, because rules have needles in common. Into some others a rule is planted all
but its first group: these nearly match.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from benchmarks.workloads.conjunctions import bind_queries
from benchmarks.workloads.dice import Dice, repeat_by_weight
from headgate.queries import Query
from headgate.schema import STRING, Attribute, Stream
from headgate.sql import render_literal

# Text conditions as rules of log detection have them, each with a text that satisfies it.
#
# A needle is what a condition looks for. Rare needles are made of syllables and do not occur in
# the usual text of a log; common ones do.

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
    """Return a word such as no usual text has, now and then with what LIKE must escape."""
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
    """Return so much text of common words, numbers and what stands between them."""
    parts: list[str] = []
    size = 0
    while size < length:
        word = dice.one_of(COMMON) if dice.chance(0.7) else f"{dice.whole(0, 0xFFFFFF):x}"
        parts += word, dice.one_of(JOINTS)
        size += len(parts[-1]) + len(word)
    return "".join(parts)[:length]


def draw_anchored(column: str, needle: str, dice: Dice) -> Condition:
    """Return any kind of condition that looks for the needle."""
    return dice.one_of(_ANCHORED)(column, needle, dice)


def draw_floating(column: str, needle: str, dice: Dice) -> Condition:
    """Return a condition that finds the needle anywhere, so that two of them can both hold."""
    return dice.one_of(_FLOATING)(column, needle, dice)


def _contains(column: str, needle: str, _: Dice) -> Condition:
    return Condition(f"{column} LIKE {render_literal(f'%{escape_pattern(needle)}%')}", needle)


def _starts(column: str, needle: str, _: Dice) -> Condition:
    return Condition(
        f"{column} LIKE {render_literal(f'{escape_pattern(needle)}%')}", needle, "start"
    )


def _ends(column: str, needle: str, dice: Dice) -> Condition:
    name = needle + dice.one_of((".exe", ".dll", ".ps1", ""))
    return Condition(f"{column} LIKE {render_literal(f'%{escape_pattern(name)}')}", name, "end")


def _ignores_case(column: str, needle: str, _: Dice) -> Condition:
    return Condition(
        f"{column} ILIKE {render_literal(f'%{escape_pattern(needle)}%')}", needle.upper()
    )


def _two_pieces(column: str, needle: str, dice: Dice) -> Condition:
    second = dice.one_of(COMMON)
    pattern = f"%{escape_pattern(needle)}%{second}%"
    return Condition(f"{column} LIKE {render_literal(pattern)}", f"{needle} {second}")


def _regex(column: str, needle: str, dice: Dice) -> Condition:
    plain = needle.strip("\\")
    pattern, text = dice.one_of(
        (
            (f"{plain}[0-9]{{2,4}}", f"{plain}{dice.whole(10, 9_999)}"),
            (f"{plain}\\s+(-|/)(e|enc)\\b", f"{plain}  -enc "),
            (f"(?i){plain}\\.(exe|dll|ps1)", f"{plain.title()}.DLL"),
        )
    )
    return Condition(f"{column} RLIKE {render_literal(pattern)}", text)


def escape_pattern(text: str) -> str:
    r"""Return the text as LIKE must have it to mean itself.

    >>> escape_pattern("\\a_b")
    '\\\\a\\_b'
    """
    return "".join(f"\\{character}" if character in "\\%_" else character for character in text)


_Kind = Callable[[str, str, Dice], Condition]
_FLOATING: tuple[_Kind, ...] = repeat_by_weight(
    {_contains: 14, _ignores_case: 3, _two_pieces: 1, _regex: 1}
)
_ANCHORED: tuple[_Kind, ...] = (*_FLOATING, *repeat_by_weight({_starts: 2, _ends: 4}))


TEXTS = ("process", "parent", "command_line", "path")
CHANNELS = ("security", "system", "powershell", "sysmon", "dns", "firewall", "kernel", "audit")
SUPPLY = 1 << 20  # characters of usual text from which events are cut
NEAR = 0.2  # of the other events nearly match
MISSING = 0.05  # of the usual events have no parent
STEADY = 0.5  # of the rules name a channel
EXCLUDING = 0.3  # of the rules have an AND NOT
COMMONPLACE = 0.3  # of the groups but the first may have common needles
GROUPS = repeat_by_weight({2: 3, 3: 2, 4: 1})

Planted = dict[str, tuple[Condition, ...]]


@dataclass(frozen=True, slots=True)
class PatternRule:
    """A WHERE clause, and what an event must have to satisfy it, by attribute."""

    where: str
    channel: str | None
    planted: Planted


@dataclass(frozen=True, eq=False)
class PatternRules:
    """Rules, and events to go with them."""

    stream: Stream
    rules: tuple[PatternRule, ...]

    def __len__(self) -> int:
        return len(self.rules)

    def where_clauses(self) -> Iterator[str]:
        return (rule.where for rule in self.rules)

    def queries(self) -> list[Query]:
        """Return each rule as a query, with the ids rule0, rule1, …"""
        return bind_queries(self.stream, self.where_clauses(), "rule")

    def events(
        self, count: int, *, matching: float = 0.1, length: int = 200, seed: int
    ) -> pa.Table:
        """Return events of which the share `matching` satisfies a rule at least."""
        dice = Dice(seed)
        supply = usual_text(SUPPLY, dice)
        rows = [self._event(supply, matching, length, dice) for _ in range(count)]
        return pa.Table.from_pylist(rows, pa.schema([(a.name, a.type.arrow) for a in self.stream]))

    def _event(
        self, supply: str, matching: float, length: int, dice: Dice
    ) -> dict[str, str | None]:
        row: dict[str, str | None] = {"channel": dice.one_of(CHANNELS)}
        for name in TEXTS:
            start = dice.whole(0, len(supply) - length)
            row[name] = supply[start : start + length]
        wanted, near = dice.chance(matching), dice.chance(NEAR)
        if wanted or near:
            rule = dice.one_of(self.rules)
            row["channel"] = rule.channel or row["channel"]
            for name, conditions in list(rule.planted.items())[0 if wanted else 1 :]:
                row[name] = _plant(str(row[name]), conditions, dice)
        elif dice.chance(MISSING):
            row["parent"] = None
        return row


def generate_pattern_rules(
    count: int, *, atoms: int = 20, needles: int | None = None, seed: int
) -> PatternRules:
    """Return `count` rules of about `atoms` conditions each, over so many rare needles.

    There are five needles to a rule unless told otherwise, so each occurs about four times.

    >>> print(next(generate_pattern_rules(1, atoms=4, seed=5).where_clauses()))
    (process LIKE '%haxodasa2%' OR process LIKE 'bozoro4%') AND
    (path LIKE '%bozoro4%' OR path LIKE '%vipahubo4.dll' OR path LIKE '%xabataba4.dll')
    """
    dice = Dice(seed)
    vocabulary = [rare_needle(dice) for _ in range(needles or 5 * count)]
    rules = tuple(_rule(atoms, vocabulary, dice) for _ in range(count))
    names = (*TEXTS, "channel")
    return PatternRules(Stream("logs", tuple(Attribute(name, STRING) for name in names)), rules)


def _rule(atoms: int, vocabulary: list[str], dice: Dice) -> PatternRule:
    """Return from 60 % to 140 % of the conditions asked for, divided among the groups."""
    names = np.array(TEXTS)[np.argsort([dice.fraction() for _ in TEXTS])].tolist()
    groups = min(dice.one_of(GROUPS), max(1, atoms // 2))
    left = max(groups, round(atoms * (0.6 + 0.8 * dice.fraction())))
    parts: list[str] = []
    planted: Planted = {}
    if dice.chance(EXCLUDING) and left > groups + 2:
        size = dice.whole(1, 2)
        refused = [draw_anchored(names[-1], dice.one_of(vocabulary), dice) for _ in range(size)]
        parts.append(f"NOT ({_any(refused)})")
        left -= size
    for place in range(groups):
        size = left // (groups - place)
        left -= size
        needles = _needles(size, place > 0 and dice.chance(COMMONPLACE), vocabulary, dice)
        where, planted[names[place]] = _group(names[place], needles, dice)
        parts.insert(place, where)
    channel = dice.one_of(CHANNELS) if dice.chance(STEADY) else None
    if channel is not None:
        parts.insert(0, _on_channel(channel, dice))
    return PatternRule(" AND ".join(parts), channel, planted)


def _needles(size: int, commonplace: bool, vocabulary: list[str], dice: Dice) -> list[str]:
    return [
        common_needle(dice) if commonplace and dice.chance(0.3) else dice.one_of(vocabulary)
        for _ in range(size)
    ]


def _group(column: str, needles: list[str], dice: Dice) -> tuple[str, tuple[Condition, ...]]:
    """Return any of the conditions or pairs of them, and a choice that satisfies the group."""
    if len(needles) >= 4 and dice.chance(0.3):
        conditions = [draw_floating(column, needle, dice) for needle in needles]
        pairs = [tuple(conditions[i : i + 2]) for i in range(0, len(conditions), 2)]
        texts = [" AND ".join(condition.sql for condition in pair) for pair in pairs]
        joined = " OR ".join(f"({text})" for text in texts)
        return f"({joined})", dice.one_of(pairs)
    choices = [draw_anchored(column, needle, dice) for needle in needles]
    return f"({_any(choices)})", (dice.one_of(choices),)


def _any(conditions: list[Condition]) -> str:
    return " OR ".join(condition.sql for condition in conditions)


def _on_channel(channel: str, dice: Dice) -> str:
    if dice.chance(0.7):
        return f"channel = {render_literal(channel)}"
    return f"channel IN ({render_literal(channel)}, {render_literal(dice.one_of(CHANNELS))})"


def _plant(text: str, conditions: tuple[Condition, ...], dice: Dice) -> str:
    """Return the text with what satisfies all conditions, each in a stretch of its own."""
    length = len(text)
    for number, condition in enumerate(conditions):
        first = number * length // len(conditions)
        last = (number + 1) * length // len(conditions) - len(condition.text)
        at = {"start": 0, "end": length - len(condition.text)}.get(condition.place)
        start = dice.whole(first, last) if at is None else at
        text = text[:start] + condition.text + text[start + len(condition.text) :]
    return text
