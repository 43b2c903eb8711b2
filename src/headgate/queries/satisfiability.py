"""Can a query ever give a row?"""

from __future__ import annotations

from headgate.predicate import Satisfiability, collect_columns, decide_satisfiability
from headgate.sql.query import Query, find_attribute


def satisfiable_query(query: Query) -> Satisfiability:
    """Can the query ever give a row, given the CHECK and NOT NULL of its streams?"""
    attributes = {c: find_attribute(query, c) for c in collect_columns(query.where)}
    domains = {c: a.domain for c, a in attributes.items() if not a.domain.is_everything}
    required = [c for c, a in attributes.items() if not a.nullable]
    return decide_satisfiability(query.where, domains, required)
