"""A predicate is a set of rows: those for which it is TRUE.

It is written as atoms (`atoms`) under AND, OR, NOT and truth tests (`tree`), evaluated in three
values (`evaluation`), and rewritten without changing its truth (`simplification`). Where only
TRUE matters it has a form without negation (`monotone`); where that stays small it is a union of
boxes (`box`, `normal_form`).
"""

from headgate.predicate.answer import Answer
from headgate.predicate.atoms import (
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
from headgate.predicate.box import NULL, Box, Volume
from headgate.predicate.comparison import are_comparable, values_where
from headgate.predicate.evaluation import Row, evaluate, evaluate_atom
from headgate.predicate.monotone import to_monotone
from headgate.predicate.normal_form import Conjunct, estimate_dnf_size, to_dnf
from headgate.predicate.satisfiability import Satisfiability, decide_satisfiability
from headgate.predicate.simplification import push_negations, simplify
from headgate.predicate.tree import (
    FALSE,
    TRUE,
    UNKNOWN,
    And,
    Not,
    Or,
    Predicate,
    Truth,
    collect_columns,
    columns_of,
    conjunction,
    disjunction,
    iter_atoms,
)

__all__ = [
    "FALSE",
    "NULL",
    "TRUE",
    "UNKNOWN",
    "And",
    "Answer",
    "Atom",
    "Box",
    "Column",
    "Compare",
    "Conjunct",
    "Constant",
    "IsNull",
    "Matches",
    "Not",
    "Operator",
    "Or",
    "Pattern",
    "Predicate",
    "Row",
    "Satisfiability",
    "Truth",
    "Volume",
    "Within",
    "are_comparable",
    "collect_columns",
    "columns_of",
    "conjunction",
    "decide_satisfiability",
    "disjunction",
    "estimate_dnf_size",
    "evaluate",
    "evaluate_atom",
    "iter_atoms",
    "push_negations",
    "simplify",
    "to_dnf",
    "to_monotone",
    "values_where",
]
