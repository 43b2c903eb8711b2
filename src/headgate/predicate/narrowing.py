"""What the columns of a conjunction may still be.

Atoms narrow the set of values of each column, and comparisons narrow columns by each other's least
and greatest values. Narrowing only ever removes impossible values, so when nothing is left the
conjunction is never TRUE.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

from headgate.predicate.answer import Answer
from headgate.predicate.atoms import (
    MIRROR,
    Atom,
    Column,
    Compare,
    Constant,
    IsNull,
    Matches,
    Operator,
    Pattern,
    Within,
)
from headgate.predicate.comparison import values_where, zone_of
from headgate.predicate.deadline import NO_DEADLINE, Deadline
from headgate.predicate.pattern.finite import list_candidate_texts
from headgate.predicate.pattern.like import ANY_MANY, parse_like
from headgate.predicate.texts import TextCondition, find_text, make_example
from headgate.predicate.tree import And, Or, Predicate, columns_of
from headgate.schema import (
    EVERYTHING,
    STRING,
    Date,
    Interval,
    Ordinal,
    String,
    Type,
    ValueSet,
)

MAX_ROUNDS = 50
MAX_TEXTS = 100
LARGEST_CHARACTER = "\U0010ffff"


@dataclass(slots=True)
class Narrowing:
    """The values that each column may still take, and the conditions that no set can express.

    A column is in `sets` once an atom mentions it. One with patterns is in `patterns`, too, and
    `texts` has a text of it that fulfils all conditions on it; None where that is open.
    `contradiction` says what was impossible, and means something only after a method has returned
    False. Past the `deadline` no text is looked for.
    """

    domains: Mapping[Column, ValueSet]
    required: frozenset[Column]
    sets: dict[Column, ValueSet] = field(default_factory=dict)
    nulls: frozenset[Column] = frozenset()
    comparisons: tuple[Compare, ...] = ()
    patterns: dict[Column, Patterns] = field(default_factory=dict)
    texts: dict[Column, str | None] = field(default_factory=dict)
    contradiction: str = ""
    deadline: Deadline = NO_DEADLINE

    def copy(self) -> Narrowing:
        return replace(
            self, sets=dict(self.sets), patterns=dict(self.patterns), texts=dict(self.texts)
        )

    def assume(self, atom: Atom) -> bool:
        """Let an atom be TRUE; False when nothing is left."""
        if isinstance(atom, Constant):
            self.contradiction = "a constant condition is not TRUE"
            return atom.value is True
        if isinstance(atom, IsNull):
            # In monotone form IS NOT NULL is the set of all values, so this atom is never negated.
            self.nulls |= {atom.column}
            self.contradiction = f"`{atom.column.key}` would have to be NULL and have a value"
            return atom.column not in self.sets and atom.column not in self.required
        if isinstance(atom, Within):
            return self.narrow(atom.column, atom.values)
        if isinstance(atom, Compare):
            self.comparisons += (atom,)
            return all(self.narrow(column, EVERYTHING) for column in (atom.left, atom.right))
        # A LIKE that is a text or a prefix is a set of texts; of others the prefix is one.
        texts, is_all = prefix_range(atom.pattern)
        if is_all:
            return self.narrow(atom.column, texts.complement() if atom.negated else texts)
        self.add_patterns(atom.column, NO_PATTERNS.add(atom))
        return self.narrow(atom.column, EVERYTHING if atom.negated else texts)

    def add_patterns(self, column: Column, patterns: Patterns) -> None:
        """Add patterns on a column, whose text may then no longer do."""
        self.patterns[column] = self.patterns.get(column, NO_PATTERNS).union(patterns)
        text = self.texts.get(column)
        # The text fulfils all that was there before, so only what is new is tried.
        if text is not None and not patterns.hold(text):
            self.texts[column] = None

    def narrow(self, column: Column, values: ValueSet) -> bool:
        """Leave a column only these values; False when it has none left."""
        # The first time that a column is met it has its CHECK domain.
        known = self.sets.get(column)
        if known is None:
            known = self.domains.get(column, EVERYTHING)
        left = self.sets[column] = known.intersection(values)
        if column in self.nulls:
            self.contradiction = f"`{column.key}` would have to be NULL and have a value"
            return False
        self.contradiction = f"no value of `{column.key}` fulfils all conditions on it"
        return not left.is_empty and (column not in self.patterns or self._find_text(column))

    def _find_text(self, column: Column) -> bool:
        """Find a text that fulfils all conditions on a column; False where there is none."""
        text = self.texts.get(column)
        if text is not None and text in self.sets[column]:
            return True
        if self.deadline.is_over():
            self.texts[column] = None
            return True
        answer, self.texts[column] = find_text(self.text_condition(column))
        return answer is not Answer.NO

    def text_condition(self, column: Column) -> TextCondition:
        """Return all conditions on a column with patterns."""
        patterns = self.patterns[column]
        return TextCondition(self.sets[column], patterns.matched, patterns.unmatched)

    def excludes(self, part: Predicate) -> bool:
        """Return whether a part obviously cannot be TRUE; nothing changes."""
        if isinstance(part, And):
            return any(map(self.excludes, part.parts))
        if isinstance(part, Or):
            return all(map(self.excludes, part.parts))
        assert isinstance(part, Atom)
        if isinstance(part, Constant):
            return part.value is not True
        if isinstance(part, IsNull):
            return part.column in self.sets or part.column in self.required
        if any(column in self.nulls for column in columns_of(part)):
            return True
        if isinstance(part, Within):
            known = self.sets.get(part.column)
            return known is not None and known.intersection(part.values).is_empty
        if isinstance(part, Matches):
            patterns = self.patterns.get(part.column, NO_PATTERNS)
            return part.pattern in (patterns.matched if part.negated else patterns.unmatched)
        return False

    def propagate(self) -> bool:
        """Narrow compared columns by each other, to a fixed point or for a while."""
        if not self.comparisons:
            return True
        if comparisons_contradict(self.comparisons):
            self.contradiction = "the comparisons between attributes contradict each other"
            return False
        # Of few texts those that fulfil the patterns are a set, which comparisons pass on.
        if not all(self.narrow(column, self._few_texts(column)) for column in self.patterns):
            return False
        # Each comparison narrows both sides; a round that changes nothing is the fixed point.
        for _ in range(MAX_ROUNDS):
            before = dict(self.sets), dict(self.patterns)
            for comparison in self.comparisons:
                left, op, right = comparison.left, comparison.operator, comparison.right
                if op == "=" and (left in self.patterns or right in self.patterns):
                    self.add_patterns(left, self.patterns.get(right, NO_PATTERNS))
                    self.add_patterns(right, self.patterns[left])
                if not (
                    self.narrow(left, _values_related(left, op, right, self.sets[right]))
                    and self.narrow(
                        right, _values_related(right, MIRROR[op], left, self.sets[left])
                    )
                ):
                    return False
            if (self.sets, self.patterns) == before:
                break
        return True

    def _few_texts(self, column: Column) -> ValueSet:
        """Return those of a few texts that fulfil all conditions on a column; of many, all."""
        texts = self.sets[column].finite_ordinals(MAX_TEXTS)
        if texts is None:
            return EVERYTHING
        condition = self.text_condition(column)
        return ValueSet.points(column.type, (text for text in texts if condition.holds(str(text))))


@dataclass(frozen=True, slots=True)
class Patterns:
    """The patterns that the texts of a column match, and those that they do not."""

    matched: frozenset[Pattern] = frozenset()
    unmatched: frozenset[Pattern] = frozenset()

    def add(self, atom: Matches) -> Patterns:
        """Return these and the pattern of an atom."""
        if atom.negated:
            return Patterns(self.matched, self.unmatched | {atom.pattern})
        return Patterns(self.matched | {atom.pattern}, self.unmatched)

    def hold(self, text: str) -> bool:
        """Return whether a text matches what it should and nothing else."""
        return TextCondition(EVERYTHING, self.matched, self.unmatched).holds(text)

    def union(self, other: Patterns) -> Patterns:
        """Return the patterns of both."""
        return Patterns(self.matched | other.matched, self.unmatched | other.unmatched)


NO_PATTERNS = Patterns()


def _values_related(column: Column, op: Operator, other: Column, values: ValueSet) -> ValueSet:
    """Return the values of a column that stand in `op` to some value of the other column."""
    # Columns of one type share their ordinals, so that equality passes on the whole set. In all
    # other cases only the ends are passed on.
    if op == "=" and column.type == other.type:
        return values
    if op in ("<", "<="):
        return values_within_bound(column, op, _greatest(values), other)
    if op in (">", ">="):
        return values_within_bound(column, op, _least(values, other.type), other)
    if op == "=":
        return values_within_bound(column, "<=", _greatest(values), other).intersection(
            values_within_bound(column, ">=", _least(values, other.type), other)
        )
    # `<>` excludes a value only where the other column has a single one left.
    only = values.finite_ordinals(1)
    return values_within_bound(column, op, only[0], other) if only else EVERYTHING


def _greatest(values: ValueSet) -> Ordinal | None:
    """Return the greatest member; None where there is no greatest, or none that we can name."""
    high = values.intervals[-1].high
    # An end in NUL is the successor of a text; before any other there is no greatest text, and the
    # end itself is a bound.
    if isinstance(high, str):
        return high[:-1] if high.endswith("\0") else high
    return None if high is None else high - 1


def _least(values: ValueSet, type_: Type) -> Ordinal | None:
    low = values.intervals[0].low
    return "" if low is None and isinstance(type_, String) else low


@lru_cache(maxsize=10_000)
def prefix_range(pattern: Pattern) -> tuple[ValueSet, bool]:
    """Return the texts that begin with a LIKE pattern's prefix, and whether all of them match it.

    They contain all that do; of any other kind of pattern that is said of every text. Of a pattern
    that few texts match, of whatever kind, it is these.
    """
    candidates = list_candidate_texts(pattern.kind, pattern.text, pattern.escape)
    if candidates is not None:
        matches = pattern.matcher.matches
        return ValueSet.points(STRING, (text for text in candidates if matches(text))), True
    if pattern.kind != "LIKE":
        return EVERYTHING, False
    like = parse_like(pattern.text, pattern.escape)
    prefix = like.prefix
    # `abc%` and `%` match all texts of the range, `abc%d` only some of them.
    texts = ValueSet.of(Interval(prefix or None, _after_prefix(prefix)))
    return texts, like.pieces in ((prefix, ANY_MANY), (ANY_MANY,))


def _after_prefix(prefix: str) -> str | None:
    r"""Return the least text above all that begin with the prefix.

    >>> _after_prefix("ab"), _after_prefix("a\U0010ffff"), _after_prefix("")
    ('ac', 'b', None)
    """
    # The largest character has none after it, so the character before it is raised.
    stem = prefix.rstrip(LARGEST_CHARACTER)
    if not stem:
        return None
    # The code point after the last one, past the surrogates.
    last = ord(stem[-1]) + 1
    return stem[:-1] + chr(0xE000 if last == 0xD800 else last)


def comparisons_contradict(comparisons: Sequence[Compare]) -> bool:
    """Return whether `a < b <= … <= a` follows, or `a <= b <= a` together with `a <> b`.

    By Warshall's closure, where a row of the relation is the bits of a whole number.
    """
    number: dict[Column, int] = {}
    for comparison in comparisons:
        for column in (comparison.left, comparison.right):
            number.setdefault(column, len(number))
    at_most = [0] * len(number)  # bit b of a: a <= b follows
    below = [0] * len(number)  # bit b of a: a < b does
    for comparison in comparisons:
        left, op, right = comparison.left, comparison.operator, comparison.right
        if op in (">", ">="):
            left, op, right = right, MIRROR[op], left
        if op in ("<", "<=", "="):
            at_most[number[left]] |= 1 << number[right]
            below[number[left]] |= (op == "<") << number[right]
        if op == "=":
            at_most[number[right]] |= 1 << number[left]
    # A path through `middle` is strict if either half of it is.
    for middle in range(len(number)):
        for first in range(len(number)):
            if at_most[first] >> middle & 1:
                below[first] |= below[middle]
                if below[first] >> middle & 1:
                    below[first] |= at_most[middle]
                at_most[first] |= at_most[middle]
    # `a <> b` contradicts a cycle through both, in which all columns are equal.
    unequal = [(number[c.left], number[c.right]) for c in comparisons if c.operator == "<>"]
    return any(below[a] >> a & 1 for a in range(len(number))) or any(
        a == b or (at_most[a] >> b & 1 and at_most[b] >> a & 1) for a, b in unequal
    )


def values_within_bound(
    column: Column, op: Operator, bound: Ordinal | None, other: Column
) -> ValueSet:
    """Return the values v of a column for which `v op bound` holds, a bound of another column."""
    if bound is None:
        return EVERYTHING
    value = other.type.value(bound)
    # A moment is compared with dates by the calendar of the zone of its column.
    if isinstance(column.type, Date) and isinstance(value, datetime):
        value = value.astimezone(ZoneInfo(zone_of(column.type, other.type).zone))
    return values_where(column.type, op, value)


def list_pattern_examples(part: Matches) -> list[str]:
    """Return texts that a pattern matches, or that a negated one does not."""
    return [make_example(part.pattern), "", "a", "zzz"]
