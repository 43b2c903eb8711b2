"""What a product says of columns that stand for conditions, beyond the conditions that it has.

`t = 'cab'` says that `t LIKE '%ab%'` holds, and `t LIKE '%ab%'` that `t LIKE '%b%'` does. A product
lies inside another exactly if it implies each side of the other. So every side that occurs in the
set is asked for, once for each distinct *group* of sides that have to do with it: an example
refutes most, a proof is looked for only then. What neither settles is left open, and groups past
the budget are not asked at all, which is said of their queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice, permutations, product
from typing import Any

from headgate.implication.conditions import Conditions, restore_condition
from headgate.implication.order.classes import QueryClasses
from headgate.implication.order.hull import Hull, Side, full_side
from headgate.implication.pair import Constraints
from headgate.predicate import (
    Column,
    IsNull,
    Matches,
    Predicate,
    Satisfiability,
    Truth,
    Within,
    collect_columns,
    columns_of,
    conjunction,
    decide_satisfiability,
    disjunction,
    evaluate,
)
from headgate.predicate.answer import Answer
from headgate.predicate.atoms import Pattern
from headgate.predicate.narrowing import list_pattern_examples, prefix_range
from headgate.predicate.satisfiability import pick_example
from headgate.schema import NOTHING, Ordinal, Stream, Value, ValueSet

MIN_PROOFS = 2_000  # proofs that are looked for, at least
PROOFS_PER_CLASS = 0.2  # for each class, where that is more
MIN_EVALUATIONS = 300_000  # conditions evaluated for rows, at least: a second or two
EVALUATIONS_PER_CLASS = 30
GROUP_COST = 300  # of these, that what else a group takes is worth
MAX_EXAMPLE_ROWS = 4  # rows of a group that stand for it
MAX_TRIED_ROWS = 64  # rows that may be examples
MAX_COLUMN_VALUES = 12  # values of a column in them
NOT_TRUE = frozenset({False, None})

Row = dict[str, Value | None]
Group = frozenset[tuple[Column, Side]]


@dataclass(frozen=True, slots=True)
class ClosedHull:
    """A product with all that it implies, then with what it may imply besides.

    `seen` are products inside it in which all rows are of the query; none where no row is known.
    """

    sure: Hull
    possible: Hull
    seen: tuple[Hull, ...]


@dataclass(slots=True)
class _GroupFacts:
    """What a group of sides implies, and may imply; rows of it, and where some lie."""

    sure: dict[Column, Side] = field(default_factory=dict)
    possible: dict[Column, Side] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    seen: list[dict[Column, Side]] = field(default_factory=list)
    can_hold: bool = True


class Closure:
    """Answers about the conditions of one set of classes."""

    def __init__(self, classes: QueryClasses, stream: Stream) -> None:
        self._attributes = classes.attributes
        self._conditions: Conditions = classes.conditions
        self._stream = stream
        self._budget = max(MIN_PROOFS, round(PROOFS_PER_CLASS * len(classes.classes)))
        self._work = max(MIN_EVALUATIONS, EVALUATIONS_PER_CLASS * len(classes.classes))
        # By group: what is known of it. By column: the columns that stand for conditions on it.
        self._known: dict[Group, _GroupFacts] = {}
        self._mentioned_by: dict[Column, list[Column]] = {}
        for stands_for, condition in classes.conditions.items():
            for column in columns_of(condition):
                self._mentioned_by.setdefault(column, []).append(stands_for)
                self._attributes.setdefault(column, stream[column.name])
        # Columns that are NOT NULL have a value in every row, mentioned or not.
        self._always = {c for c in self._mentioned_by if not self._attributes[c].nullable}
        # By column: the sides that occur in the set, each as a predicate that can be decided.
        targets: dict[Column, dict[Side, Predicate]] = {
            column: {} for column in (*self._mentioned_by, *classes.conditions)
        }
        for query_class in classes.classes if classes.conditions else ():
            for part in query_class.parts:
                for column, side in part.sides.items():
                    if column in targets and side not in targets[column]:
                        targets[column][side] = self._to_predicate(column, side)
        self._targets = targets
        # Columns of unions: only these are compared with example rows.
        self._in_unions = {
            column
            for query_class in classes.classes
            if len(query_class.parts) > 1
            for p in query_class.parts
            for column in p.sides
        }
        self._grouped: dict[Group, list[Group]] = {}

    @property
    def tied(self) -> Iterable[Column]:
        """The columns that conditions mention, and those that stand for conditions."""
        return self._targets

    def close(self, part: Hull) -> ClosedHull | None:
        """Return the part with all that it implies; None where it can never hold."""
        # Only sides of columns that conditions have to do with decide the groups.
        relevant = frozenset(item for item in part.sides.items() if item[0] in self._targets)
        groups = self._grouped.get(relevant)
        if groups is None:
            groups = self._grouped[relevant] = self._find_groups(part) if self._conditions else []
        if not groups:
            return ClosedHull(part, part, (part,))
        # The part's own sides, narrowed by what each of its groups implies.
        sure, possible = dict(part.sides), dict(part.sides)
        seen = [dict(part.sides) for _ in range(MAX_EXAMPLE_ROWS)]
        for group in groups:
            if group not in self._known:
                self._known[group] = self._learn(group)
            known = self._known[group]
            if not known.can_hold:
                return None
            for into, sides in ((sure, known.sure), (possible, known.possible)):
                for column, side in sides.items():
                    common = side.intersection(into.get(column, side))
                    if not common.is_empty:
                        into[column] = common
            seen = seen if known.seen else []
            for number, sides in enumerate(seen):
                sides.update(known.seen[min(number, len(known.seen) - 1)])
        # Where groups have fewer examples, the last was repeated: equal ones go.
        distinct = [sides for at, sides in enumerate(seen) if sides not in seen[:at]]
        seen_hulls = tuple(part if sides == part.sides else Hull(sides) for sides in distinct)
        return ClosedHull(Hull(sure), Hull(possible), seen_hulls)

    def _find_groups(self, part: Hull) -> list[Group]:
        """Return the groups of sides that conditions connect, those of the part or others."""
        sides = part.sides
        own = [column for column in sides if column in self._conditions]
        plain = {column for column in sides if column in self._mentioned_by} | self._always
        for stands_for in own:
            plain.update(columns_of(self._conditions[stands_for]))
        if not plain:
            return []
        # By column: the set of columns that conditions connect it with, merged as in union-find.
        group_of: dict[Column, set[Column]] = {column: {column} for column in plain}
        related: set[Column] = set()
        for column in plain:
            for stands_for in self._mentioned_by[column]:
                mentioned = columns_of(self._conditions[stands_for])
                if all(other in plain for other in mentioned):
                    related.add(mentioned[0])
                    first, last = group_of[mentioned[0]], group_of[mentioned[-1]]
                    if first is not last:
                        first |= last
                        for other in last:
                            group_of[other] = first
        groups = {id(group_of[column]): group_of[column] for column in related}
        result = []
        for group in groups.values():
            # Sides of the columns of a group, then those of the part's own conditions on them.
            items = {(c, sides.get(c, full_side(self._attributes[c]))) for c in group}
            items |= {(c, sides[c]) for c in own if columns_of(self._conditions[c])[0] in group}
            result.append(frozenset(items))
        return result

    def _learn(self, group: Group) -> _GroupFacts:
        """Return all that a group says of the sides that occur in the set.

        Past the budget nothing; then no row of it is known, and its queries are called skipped.
        """
        self._work -= GROUP_COST
        if self._work < 0:
            return _GroupFacts()
        in_group = dict(group)
        predicate = conjunction(self._to_predicate(column, side) for column, side in group)
        predicate = conjunction((predicate, *_list_prefixes(group)))
        plain = [column for column in in_group if column not in self._conditions]
        # Rows of the group: guessed examples, or what the search finds.
        facts = _GroupFacts(rows=list(self._find_examples(predicate, in_group, plain)))
        if not facts.rows:
            first = self._find_row(predicate)
            facts.can_hold = first.answer is not Answer.NO
            if first.witness is not None:
                facts.rows.append(dict(first.witness))
        # Decide every side that occurs in the set and has to do with this group.
        is_tied = len(plain) < len(in_group)
        targets = dict.fromkeys(
            stands_for
            for column in plain
            for stands_for in self._mentioned_by[column]
            if all(other in in_group for other in columns_of(self._conditions[stands_for]))
        )
        for column in (*targets, *(plain if is_tied else ())):
            for side, condition in self._targets[column].items():
                # A side that the group's own side lies in follows without a proof.
                own = in_group.get(column)
                if own is not None and side.covers(own):
                    continue
                answer = self._decide(predicate, condition, facts.rows)
                if answer is Answer.NO:
                    continue
                # A yes narrows both, an unknown only what is possible.
                for sides in (facts.possible, facts.sure)[: 1 + (answer is Answer.YES)]:
                    common = side.intersection(sides.get(column, own or side))
                    if not common.is_empty:
                        sides[column] = common
        if is_tied:
            self._need_values(own_columns=plain, group=in_group, facts=facts)
        facts.seen = [self._locate_row(row) for row in _choose_various(facts.rows, plain)]
        return facts

    def _need_values(
        self, own_columns: list[Column], group: dict[Column, Side], facts: _GroupFacts
    ) -> None:
        """Note that a column which a condition of the group mentions is not NULL."""
        tied = {c for x in group if x in self._conditions for c in columns_of(self._conditions[x])}
        for column in own_columns:
            if column in tied and column not in facts.sure:
                side = Side(self._attributes[column].domain, False)
                if side != full_side(self._attributes[column]):
                    facts.sure[column] = side
                    facts.possible.setdefault(column, side)

    def _decide(self, predicate: Predicate, condition: Predicate, rows: list[Row]) -> Answer:
        for row in rows:
            self._work -= 1
            if evaluate(condition, row) is not True:
                return Answer.NO
        if self._budget == 0 or self._work < 0:
            return Answer.UNKNOWN
        self._budget -= 1
        # A row of the group in which the condition does not hold; it may refute others, too.
        counter = self._find_row(conjunction((predicate, Truth(condition, NOT_TRUE))))
        if counter.witness is not None:
            mentioned = {column.key: None for column in collect_columns(predicate)}
            rows.append({**mentioned, **counter.witness})
        return counter.answer.opposite

    def _find_row(self, predicate: Predicate) -> Satisfiability:
        declared = Constraints.of(self._stream, (predicate,))
        return decide_satisfiability(predicate, declared.domains, declared.required)

    def _find_examples(
        self, predicate: Predicate, sides: dict[Column, Side], plain: list[Column]
    ) -> Iterator[Row]:
        """Yield a few rows for which a group holds, each verified."""
        # By column a few values; their combinations are tried in order.
        choices = [
            list(islice(self._list_values(column, sides), MAX_COLUMN_VALUES)) for column in plain
        ]
        for values in islice(product(*choices), MAX_TRIED_ROWS):
            row = {column.key: value for column, value in zip(plain, values, strict=True)}
            if evaluate(predicate, row) is True:
                yield row

    def _list_values(self, column: Column, sides: dict[Column, Side]) -> Iterator[Value | None]:
        """Yield values of a side: NULL, the ends, and texts of all patterns that it must match."""
        side = sides[column]
        if side.null:
            yield None
        type_ = column.type
        patterns = [
            self._conditions[x] for x in sides if self._mentions(x, column) and 1 in sides[x].values
        ]
        # Examples of all patterns in each order, with and without something around them.
        texts = [list_pattern_examples(p)[0] for p in patterns if isinstance(p, Matches)]
        for order in islice(permutations(texts), 6 if texts else 0):
            for around in ("", "~", "!"):
                text = around + around.join(order) + around
                if text in side.values:
                    yield text
        for interval in dict.fromkeys(
            (side.values.intervals or (None,))[:: max(1, len(side.values.intervals) - 1)]
        ):
            if interval is not None:
                for end in _list_ends(interval.low, interval.high, type_.minimum, type_.maximum):
                    yield type_.value(end)
        if not side.values.is_empty:
            yield type_.value(pick_example(side.values, type_))

    def _mentions(self, stands_for: Column, column: Column) -> bool:
        condition = self._conditions.get(stands_for)
        return condition is not None and column in columns_of(condition)

    def _locate_row(self, row: Row) -> dict[Column, Side]:
        """Return where a row lies: in columns, and in all that stand for conditions on these.

        Only unions are compared with that, so only their columns count.
        """
        point: dict[Column, Side] = {}
        # A row is a point in its columns and in those that stand for conditions on them.
        for column, stands_for_it in self._mentioned_by.items():
            if column.key in row:
                if column in self._in_unions:
                    point[column] = _to_point(column, row[column.key])
                for stands_for in self._in_unions.intersection(stands_for_it):
                    condition = self._conditions[stands_for]
                    if all(other.key in row for other in columns_of(condition)):
                        point[stands_for] = self._locate_condition(stands_for, row)
        return point

    def _locate_condition(self, stands_for: Column, row: Row) -> Side:
        for value in (-1, 0, 1):
            points = ValueSet.points(stands_for.type, (value,))
            if (
                not points.is_empty
                and evaluate(restore_condition(stands_for, points, self._conditions), row) is True
            ):
                return Side(points, False)
        return Side(NOTHING, True)

    def _to_predicate(self, column: Column, side: Side) -> Predicate:
        """Return the side as a condition on columns of the stream."""
        condition = self._conditions.get(column)
        if condition is None:
            nulls: list[Predicate] = [IsNull(column)]
            inside: Predicate = Within(column, side.values)
        else:
            nulls = [IsNull(mentioned) for mentioned in columns_of(condition)]
            inside = restore_condition(column, side.values, self._conditions)
        parts = (*(nulls if side.null else ()), *(() if side.values.is_empty else (inside,)))
        return disjunction(parts)


def _choose_various(rows: list[Row], plain: list[Column]) -> list[Row]:
    """Return a few rows: those with the least and the greatest value of each column."""
    if not rows:
        return []
    chosen = []
    for column in plain:

        def size(row: Row, column: Column = column) -> tuple[bool, Any]:
            value = row[column.key]
            return value is not None, 0 if value is None else column.type.ordinal(value)

        chosen += [min(rows, key=size), max(rows, key=size)]
    distinct = {id(row): row for row in chosen}
    return list(distinct.values())[:MAX_EXAMPLE_ROWS]


def _list_prefixes(group: Group) -> Iterator[Predicate]:
    """Yield what ranges of texts begin with, as patterns: these compare with patterns."""
    for column, side in group:
        intervals = side.values.intervals
        if side.null or len(intervals) != 1 or not isinstance(intervals[0].low, str):
            continue
        # The longest prefix that all texts of the range have, as a LIKE pattern.
        for length in range(len(intervals[0].low), 0, -1):
            text = "".join(f"\\{c}" if c in "\\%_" else c for c in intervals[0].low[:length])
            pattern = Pattern("LIKE", f"{text}%")
            if prefix_range(pattern)[0].covers(side.values):
                yield Matches(column, pattern)
                break


def _to_point(column: Column, value: Value | None) -> Side:
    if value is None:
        return Side(NOTHING, True)
    return Side(ValueSet.points(column.type, (column.type.ordinal(value),)), False)


def _list_ends(
    low: Ordinal | None, high: Ordinal | None, least: Ordinal, most: Ordinal | None
) -> Iterator[Ordinal]:
    """Yield the least and the greatest two of an interval, as far as they have a name."""
    first = least if low is None else low
    last = high - 1 if isinstance(high, int) else most
    yield first
    if isinstance(first, int) and isinstance(last, int) and first < last:
        yield from (last, last - 1, first + 1)
