"""A condition in contexts: every condition on one stream is decided, only comparisons are left.

A context says of each attribute in which of few sets of values it lies, or that it is NULL, and how
attributes of one row that are compared are ordered. What is then left of the condition is an OR of
comparisons between streams, without NULLs. Alternatives that others cover are dropped, and those
that are too narrow are widened as far as the condition allows: `a < c OR a >= c` is no comparison
at all. So a context shows faults that are none in the whole, and where one alternative is left, and
has a fault, rows of just this context show it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, permutations, product

from headgate.errors import ExpansionTooLarge
from headgate.predicate import (
    And,
    Atom,
    Column,
    Compare,
    Constant,
    IsNull,
    Matches,
    Operator,
    Predicate,
    Within,
    collect_columns,
    columns_of,
    iter_atoms,
    to_monotone,
)
from headgate.predicate.atoms import MIRROR
from headgate.predicate.comparison import OPERATOR_TESTS
from headgate.queries import Query, find_attribute
from headgate.schema import ValueSet, union
from headgate.stateful.analysis.alternatives import Alternative, split_inequalities
from headgate.stateful.analysis.case import (
    Case,
    build_case,
    counts_duplicates,
    find_attribute_key,
    list_argument_columns,
    list_output_columns,
    merge_twin_lines,
    rename_columns,
)
from headgate.stateful.analysis.faults import Fault, find_faults
from headgate.stateful.analysis.lines import group_into_lines
from headgate.stateful.analysis.theory.closure import compute_closure

MAX_CONTEXTS = 1_000
MAX_CONTEXT_ALTERNATIVES = 24  # of what is left of the condition in one context
MAX_OUTPUT_VALUES = 4  # of a column that are looked at one by one
MAX_CELL_INTERVALS = 4  # of a cell that is split into its intervals

Ties = frozenset[Compare]  # comparisons between streams that all hold

_ORDERS: tuple[Operator, ...] = ("<", "=", ">")
_SIGNS: dict[Operator, int] = {"<": -1, "=": 0, ">": 1}
_NEGATIONS: dict[Operator, tuple[Operator, ...]] = {
    "<": (">=",), "<=": (">",), "=": ("<", ">"), ">=": ("<",), ">": ("<=",), "<>": ("=",)
}  # fmt: skip
_WIDER: dict[Operator, tuple[Operator, ...]] = {
    "<": ("<=",), "<=": (), "=": ("<=", ">="), ">=": (), ">": (">=",)
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ContextCases:
    """What is left of the condition in one context: its alternatives, as cases, and their faults.

    `is_exact` where there is one alternative: the condition, in this context, says just that.
    """

    cases: tuple[Case, ...]
    faults: tuple[tuple[Case, Fault], ...]
    is_exact: bool


def iter_context_cases(query: Query, *, finely: bool) -> Iterator[ContextCases]:
    """Yield what is left of a query's condition in each context; ExpansionTooLarge past the cap.

    More contexts, `finely`, also order the attributes of a row that are compared with the same
    ones, and cut them by all constants that these are compared with.
    """
    condition = split_inequalities(to_monotone(query.where))
    columns = _list_columns(query, condition)
    for context in _list_contexts(query, condition, finely=finely):
        alternatives = context.evaluate(condition)
        if not alternatives:
            continue
        sole = _find_sole_row(query, condition, context, columns)
        if sole is not None:
            yield ContextCases((sole,), (), is_exact=False)
        else:
            yield _Residue(query, context.atoms, alternatives).find_cases()


def _find_sole_row(
    query: Query, condition: Predicate, context: _Context, columns: Sequence[Column]
) -> Case | None:
    """Return the case that two occurrences have the same row, if that is as good as any two.

    Where duplicates do not count, and a row fulfils the condition with itself, what it gives with
    others is no news, if it is the same. The case says so by equalities.
    """
    if counts_duplicates(query):
        return None
    for first, second in permutations(range(len(query.sources)), 2):
        alias, other = query.sources[first].alias, query.sources[second].alias
        streams = {query.sources[n].stream for n in (first, second)}
        if len(streams) > 1 or any(query.sources[n].rows is not None for n in (first, second)):
            continue

        def rename(column: Column, other: str = other, alias: str = alias) -> Column:
            return replace(column, source=alias) if column.source == other else column

        given = (*list_output_columns(query), *list_argument_columns(query))
        if not all(context.is_same(query, column, rename(column)) for column in given) or [
            frozenset()
        ] != context.evaluate(rename_columns(condition, rename)):
            continue
        own = [c for c in columns if c.source == alias]
        atoms = [a for a in context.atoms if {c.source for c in columns_of(a)} != {other}]
        atoms += [IsNull(replace(c, source=other)) for c in own if c in context.nulls]
        atoms += [Compare(c, "=", replace(c, source=other)) for c in own if c not in context.nulls]
        case = build_case(query, tuple(atoms), marked=True)
        if case is not None and next(find_faults(query, case), None) is None:
            return case
    return None


@dataclass(frozen=True, slots=True)
class _Context:
    """Decided conditions on one stream; a column with neither a set nor NULL is not mentioned."""

    nulls: frozenset[Column]
    sets: Mapping[Column, ValueSet]
    atoms: Alternative

    def is_same(self, query: Query, first: Column, second: Column) -> bool:
        """Return whether two columns have the same value in all rows: they are one, or fixed."""
        if first == second:
            return True
        sets = [
            self.sets.get(column) or find_attribute(query, column).domain
            for column in (first, second)
            if column in self.sets or not find_attribute(query, column).nullable
        ]
        values = [known.finite_ordinals(1) for known in sets]
        return len(values) == 2 and values[0] is not None and values[0] == values[1]

    def evaluate(self, node: Predicate) -> list[Ties]:
        """Return the alternatives of what is left; an empty one says that the condition holds."""
        if isinstance(node, Atom):
            truth = self._decide(node)
            if truth is None:
                assert isinstance(node, Compare)
                return [frozenset({node})]
            return [frozenset()] if truth else []
        parts = [self.evaluate(part) for part in node.parts]  # type: ignore[union-attr]
        if not isinstance(node, And):
            return _drop_wider(ties for part in parts for ties in part)
        alternatives: list[Ties] = [frozenset()]
        for part in parts:
            alternatives = _drop_wider(a | b for a, b in product(alternatives, part))
            if len(alternatives) > MAX_CONTEXT_ALTERNATIVES:
                raise ExpansionTooLarge("its condition has too many alternatives in one context")
        return alternatives

    def _decide(self, atom: Atom) -> bool | None:
        """Return whether an atom is TRUE; None for a comparison between streams."""
        if isinstance(atom, Constant):
            return atom.value is True
        if isinstance(atom, IsNull):
            return atom.column in self.nulls
        if isinstance(atom, Compare):
            if atom.left in self.nulls or atom.right in self.nulls:
                return False
            if atom.left.source != atom.right.source:
                return None
            return self._is_ordered(atom)
        if atom.column in self.nulls:
            return False
        # Sets are cut by every set that the condition has for the column: all of it, or nothing.
        return (
            atom.values.covers(self.sets[atom.column])
            if isinstance(atom, Within)
            else (atom in self.atoms)
        )

    def may_hold(self, node: Predicate) -> bool:
        """Return whether a condition can be TRUE, as far as the context goes."""
        if isinstance(node, Atom):
            if isinstance(node, Constant | Compare):
                return self._decide(node) is not False or self._is_undecided(node)
            if node.column in self.nulls:
                return isinstance(node, IsNull)
            known = self.sets.get(node.column)
            if known is None or not isinstance(node, Within | IsNull):
                return True
            return isinstance(node, Within) and node.values.covers(known)
        if isinstance(node, And):
            return all(self.may_hold(part) for part in node.parts)
        return any(self.may_hold(part) for part in node.parts)  # type: ignore[union-attr]

    def _is_undecided(self, atom: Constant | Compare) -> bool:
        """Return whether two columns of a row may still be ordered in any way."""
        if isinstance(atom, Constant) or {atom.left, atom.right} & self.nulls:
            return False
        ordered = ({a.left, a.right} for a in self.atoms if isinstance(a, Compare))
        return atom.left != atom.right and {atom.left, atom.right} not in ordered

    def _is_ordered(self, atom: Compare) -> bool:
        if atom.left == atom.right:
            return atom.operator in ("=", "<=", ">=")
        for known in self.atoms:
            if isinstance(known, Compare) and {known.left, known.right} == {atom.left, atom.right}:
                sign = _SIGNS[known.operator] * (1 if known.left == atom.left else -1)
                return bool(OPERATOR_TESTS[atom.operator](sign, 0))
        return False


def _drop_wider(alternatives: Iterable[Ties]) -> list[Ties]:
    """Return the alternatives without those that say more than another one."""
    kept: list[Ties] = []
    for ties in sorted(set(alternatives), key=lambda ties: (len(ties), sorted(map(repr, ties)))):
        if not any(other <= ties for other in kept):
            kept.append(ties)
    return kept


def _list_contexts(query: Query, condition: Predicate, *, finely: bool) -> list[_Context]:
    """Return all contexts without contradictions, dimension by dimension."""
    contexts = [_Context(frozenset(), {}, ())]
    for dimension in _list_dimensions(query, condition, finely=finely):
        contexts = [
            extended
            for context in contexts
            for extended in _extend_context(context, dimension)
            if extended.may_hold(condition) and not is_contradiction(query, extended.atoms)
        ]
        if len(contexts) > MAX_CONTEXTS:
            raise ExpansionTooLarge(f"its condition has over {MAX_CONTEXTS:,} contexts")
    return contexts


@dataclass(frozen=True, slots=True)
class _Dimension:
    """A column with its choices, a pair of columns of one row to be ordered, or a pattern."""

    columns: tuple[Column, ...]
    choices: tuple[Atom, ...]


def _extend_context(context: _Context, dimension: _Dimension) -> Iterator[_Context]:
    # A pair with a NULL has no order, and a NULL matches no pattern.
    if context.nulls & set(dimension.columns):
        yield context
        return
    for atom in dimension.choices:
        atoms = (*context.atoms, atom)
        if isinstance(atom, IsNull):
            yield _Context(context.nulls | {atom.column}, context.sets, atoms)
        elif isinstance(atom, Within):
            yield _Context(context.nulls, {**context.sets, atom.column: atom.values}, atoms)
        else:
            yield _Context(context.nulls, context.sets, atoms)


def _list_dimensions(query: Query, condition: Predicate, *, finely: bool) -> list[_Dimension]:
    """Return what contexts decide: columns first, then orders within a row, then patterns."""
    columns = _list_columns(query, condition)
    atoms = list(iter_atoms(condition))
    compares = [atom for atom in atoms if isinstance(atom, Compare)]
    lines = merge_twin_lines(query, group_into_lines(columns, compares))
    dimensions = []
    for column in columns:
        line = next(line for line in lines if column in line)
        attributes = {find_attribute_key(query, c) for c in (line if finely else (column,))}
        cutting = [
            atom.values
            for atom in atoms
            if isinstance(atom, Within)
            and atom.column.type == column.type
            and find_attribute_key(query, atom.column) in attributes
        ]
        cutting += _list_output_values(query, column)
        dimensions.append(_Dimension((column,), tuple(_list_cells(query, column, cutting))))
    pairs = {
        frozenset({c.left, c.right})
        for c in compares
        if c.left.source == c.right.source and c.left != c.right
    }
    # The same pair is ordered in all occurrences of its stream.
    named = {frozenset(find_attribute_key(query, c) for c in pair) for pair in pairs}
    for line in lines:
        for left, right in combinations(line, 2):
            keys = frozenset({find_attribute_key(query, left), find_attribute_key(query, right)})
            if left.source == right.source and (finely or keys in named):
                orders = tuple(Compare(left, operator, right) for operator in _ORDERS)
                dimensions.append(_Dimension((left, right), orders))
    patterns = dict.fromkeys((a.column, a.pattern) for a in atoms if isinstance(a, Matches))
    for column, pattern in patterns:
        both = (Matches(column, pattern), Matches(column, pattern, negated=True))
        dimensions.append(_Dimension((column,), both))
    return dimensions


def _list_columns(query: Query, condition: Predicate) -> tuple[Column, ...]:
    """Return the columns of a condition, in all occurrences of their streams.

    What is put out counts too, if it is one of few values: of a self-join it decides whether a row
    can stand for another.
    """
    given = (c for c in list_output_columns(query) if any(_list_output_values(query, c)))
    mentioned = tuple(dict.fromkeys((*collect_columns(condition), *given)))
    # streams may have attributes of one name and different types: a twin is of the same stream
    twins = (
        Column(column.name, column.type, source.alias)
        for column in mentioned
        for source in query.sources
        if column.source and find_attribute_key(query, column) == (source.stream.name, column.name)
    )
    return tuple(dict.fromkeys((*mentioned, *twins)))


def _list_output_values(query: Query, column: Column) -> list[ValueSet]:
    """Return the values of a column of a self-join, each alone, if they are few and put out."""
    streams = [source.stream.name for source in query.sources]
    keys = {find_attribute_key(query, output) for output in list_output_columns(query)}
    is_put_out = find_attribute_key(query, column) in keys
    if counts_duplicates(query) or len(set(streams)) == len(streams) or not is_put_out:
        return []
    ordinals = find_attribute(query, column).domain.finite_ordinals(MAX_OUTPUT_VALUES)
    return [ValueSet.points(column.type, (ordinal,)) for ordinal in ordinals or ()]


def _list_cells(query: Query, column: Column, cutting: Sequence[ValueSet]) -> Iterator[Atom]:
    """Yield sets of values that no set of the condition cuts; and NULL."""
    attribute = find_attribute(query, column)
    cells = [] if attribute.domain.is_empty else [attribute.domain]
    for values in dict.fromkeys(cutting):
        parts = (c.intersection(v) for c in cells for v in (values, values.complement()))
        cells = [part for part in parts if not part.is_empty]
    for cell in cells:
        # A set with holes is not seen as a whole by the theory: its intervals are.
        intervals = cell.intervals
        if len(intervals) > MAX_CELL_INTERVALS:
            intervals = ()
        yield from (Within(column, ValueSet.of(interval)) for interval in intervals)
        yield from () if intervals else (Within(column, cell),)
    if attribute.nullable:
        yield IsNull(column)


def is_contradiction(query: Query, atoms: Alternative) -> bool:
    """Return whether the comparisons and sets of an alternative contradict each other."""
    case = build_case(query, atoms)
    return case is None or not compute_closure(case.query).satisfiable


@dataclass(frozen=True)
class _Residue:
    """What is left of a condition in a context: at least one of the alternatives holds."""

    query: Query
    context: Alternative
    alternatives: list[Ties]

    @cached_property
    def _possible(self) -> list[Ties]:
        return [ties for ties in self.alternatives if not self._contradicts(ties)]

    def _contradicts(self, ties: Iterable[Compare]) -> bool:
        return is_contradiction(self.query, (*self.context, *ties))

    def find_cases(self) -> ContextCases:
        """Return the alternatives, as wide as they can be, and the faults of those needed."""
        wide = _drop_wider(self._widen(ties) for ties in self._possible)
        cases = {ties: self._build_case(ties) for ties in wide}
        faults = {t: tuple(find_faults(self.query, c)) for t, c in cases.items()}
        # What others cover is left out: first what has faults, and then the narrower.
        for ties in sorted(wide, key=lambda ties: (not faults[ties], -len(ties))):
            others = [other for other in cases if other != ties]
            if others and self._covers(others, ties):
                del cases[ties]
        return ContextCases(
            tuple(cases.values()),
            tuple((case, fault) for ties, case in cases.items() for fault in faults[ties]),
            len(cases) == 1,
        )

    def _build_case(self, ties: Ties) -> Case:
        ordered = sorted(ties, key=repr)
        case = build_case(self.query, (*self.context, *ordered), marked=True)
        assert case is not None
        return case

    def _widen(self, ties: Ties) -> Ties:
        """Leave out comparisons, or make them wider, while the condition still follows."""
        for tie in sorted(ties, key=repr):
            rest = ties - {tie}
            wider = [replace(tie, operator=operator) for operator in _WIDER[tie.operator]]
            for candidate in (rest, *(rest | {each} for each in wider)):
                if self._covers(self._possible, candidate):
                    ties = candidate
                    break
            else:
                # `<` and `>` are `<>`, which costs little where duplicates do not count.
                if tie.operator in ("<", ">") and not counts_duplicates(self.query):
                    turned = replace(tie, operator=MIRROR[tie.operator])
                    if self._covers(self._possible, rest | {turned}):
                        ties = rest | {replace(tie, operator="<>")}
        return ties

    def _covers(self, alternatives: Sequence[Ties], ties: Ties) -> bool:
        """Return whether one of the alternatives holds wherever the comparisons do."""
        # What follows from `<>` follows from `<` and from `>`.
        unequal = next((tie for tie in ties if tie.operator == "<>"), None)
        if unequal is not None:
            sides = [replace(unequal, operator=operator) for operator in ("<", ">")]
            return all(self._covers(alternatives, ties - {unequal} | {side}) for side in sides)
        if self._contradicts(ties):
            return True
        if not alternatives:
            return False
        # Falsify the first alternative in every way; then the others must hold.
        first, *others = alternatives
        return all(
            self._covers(others, ties | {replace(tie, operator=operator)})
            for tie in sorted(first, key=repr)
            for operator in _NEGATIONS[tie.operator]
        )


def merge_contexts(query: Query, alternatives: Iterable[Alternative]) -> list[Alternative]:
    """Return fewer alternatives that say the same: those that differ in one condition are united.

    a < 3 AND b < c, a >= 3 AND b < c  ->  a IS NOT NULL AND b < c

    None of them gets a fault by that.
    """
    pending = dict.fromkeys(frozenset(atoms) for atoms in alternatives)
    # Each round unites some alternatives, so this ends.
    while _merge_once(query, pending):
        pass
    return [tuple(sorted(atoms, key=repr)) for atoms in pending]


def _merge_once(query: Query, pending: dict[frozenset[Atom], None]) -> bool:
    """Unite what differs in one condition on one stream; False where there is nothing to unite."""
    # By all other conditions and the columns of the one: the conditions in which they differ.
    groups: dict[tuple[frozenset[Atom], tuple[Column, ...]], list[Atom]] = {}
    for atoms in pending:
        for atom in atoms:
            columns = columns_of(atom)
            if len({column.source for column in columns}) == 1:
                groups.setdefault((atoms - {atom}, columns), []).append(atom)
    has_merged = False
    for (rest, columns), members in groups.items():
        for some, united in _list_unions(query, rest, columns, members):
            parts = [rest | {atom} for atom in some]
            if len(some) < 2 or not all(part in pending for part in parts):
                continue
            case = build_case(query, (*rest, *united), marked=True)
            if case is not None and next(find_faults(query, case), None) is None:
                for part in parts:
                    del pending[part]
                pending[rest | set(united)] = None
                has_merged = True
    return has_merged


def _list_unions(
    query: Query, rest: frozenset[Atom], columns: tuple[Column, ...], members: list[Atom]
) -> Iterator[tuple[list[Atom], tuple[Atom, ...]]]:
    """Yield conditions that can be united, and what they say together."""
    others = {column for atom in rest for column in columns_of(atom)}
    sets = [atom for atom in members if isinstance(atom, Within)]
    if sets:
        values = union(atom.values for atom in sets)
        attribute = find_attribute(query, columns[0])
        # All values and NULL are no condition, unless a comparison needs a value.
        nulls = [atom for atom in members if isinstance(atom, IsNull)]
        if nulls and values.covers(attribute.domain) and columns[0] not in others:
            yield [*sets, *nulls], ()
        if values.only_interval is not None:
            yield list[Atom](sets), (Within(columns[0], values),)
    orders = {atom.operator: atom for atom in members if isinstance(atom, Compare)}
    every = list[Atom](orders.values())
    # All three orders say no more than that both columns have a value, which others say too.
    if len(orders) == len(_ORDERS) and others.issuperset(columns):
        yield every, ()
    for operator in ("<=", ">="):
        if orders.keys() == {operator[0], "="}:
            yield every, (Compare(columns[0], operator, columns[1]),)
