"""Checking rules with text patterns before they run: contradictions, duplicates, implications.

The rules are those of `workloads.pattern_rules`: AND and OR over some twenty patterns each. One
contestant is `hg.check` as a user calls it, with every limit in force. The other compares all
pairs by the definition, on so few rules that it ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.harness.experiment import Contestant, Experiment, Fact, Round, Unit
from benchmarks.workloads import generate_pattern_rules
from headgate.findings.checks import Finding, check
from headgate.implication.order.definition import order_by_definition
from headgate.predicate import to_monotone
from headgate.queries import QuerySet
from headgate.schema import Schema

SIZES = (10_000, 100_000)
PAIRWISE = 100  # rules, of which all pairs are compared
MIN_RULES = 20


@contextmanager
def prepare(size: int, scale: float, seed: int) -> Iterator[Round]:
    """Prepare the rules as queries; reading them from a file is not timed."""
    count = max(MIN_RULES, round(size * scale))
    rules = generate_pattern_rules(count, seed=seed)
    queries = QuerySet(Schema((rules.stream,)), rules.queries())
    few = list(queries)[:PAIRWISE]
    # What the last turn said, for the facts.
    findings: list[Finding] = []

    def run_check() -> None:
        findings[:] = check(queries)

    def implied_among_few() -> tuple[object, ...]:
        """Return who implies whom among the few; both contestants must agree on them."""
        listed = check(QuerySet(queries.schema, few))
        return tuple((f.id, f.duplicate_of, f.implied_by) for f in listed)

    def implied_by_definition() -> tuple[object, ...]:
        order = order_by_definition([to_monotone(query.where) for query in few], rules.stream)
        ids = [query.id for query in few]
        return tuple(
            (
                ids[at],
                None if order.same_as[at] == at else ids[order.same_as[at]],
                tuple(ids[other] for other in order.implied_by[at]),
            )
            for at in range(len(few))
        )

    def facts() -> dict[str, Fact]:
        is_open = sum("open" in finding.reason for finding in findings)
        return {f"Rules of {count:,} with something open, %": round(100 * is_open / count, 3)}

    yield Round(
        count,
        (
            Contestant("check", count, answer=implied_among_few, run=run_check),
            Contestant(
                "all pairs",
                len(few),
                answer=implied_by_definition,
                run=implied_by_definition,
                note=f"sample of {len(few)}",
            ),
        ),
        facts,
    )


CHECK = Experiment(
    name="check",
    title="Checking rules of some twenty text patterns each",
    sizes=SIZES,
    size_label="rules",
    unit=Unit("µs per rule", "cost", 1e6),
    baseline="all pairs",
    prepare=prepare,
    repeats=3,
)
