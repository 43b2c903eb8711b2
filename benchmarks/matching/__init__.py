"""Loading, matching and routing, next to what people would use otherwise.

| experiment           | what it measures                                                         |
|----------------------|--------------------------------------------------------------------------|
| `load`               | reading a million WHERE clauses, next to sqlglot's parsing               |
| `check`              | finding mistakes in rules with patterns, next to comparing all pairs     |
| `scan`               | one query after the other, next to DuckDB and NumPy                      |
| `parse`              | JSON lines to typed rows, next to parsing a line at a time               |
| `route`              | a DataFrame on Spark, next to a nested-loop join and one process         |
| `route-keys`,        | the same, on rules that compare keys, next to Spark's equi-join          |
| `route-or`,          |                                                                          |
| `route-or-keys`      |                                                                          |
| `match`, `match-…`   | an index, next to counting, NumPy and a scan                             |
| `match-updates`      | matching after queries changed, next to building anew                    |
"""

from __future__ import annotations

from benchmarks.harness.report import Family
from benchmarks.matching.check import CHECK
from benchmarks.matching.load import LOAD
from benchmarks.matching.match import MATCH, UPDATES
from benchmarks.matching.parse import PARSE
from benchmarks.matching.route import ROUTE, ROUTE_KEYS, ROUTE_OR, ROUTE_OR_KEYS
from benchmarks.matching.scan import SCAN

MATCHING = Family(
    "Loading, matching and routing",
    (LOAD, CHECK, SCAN, PARSE, ROUTE, ROUTE_KEYS, ROUTE_OR, ROUTE_OR_KEYS, *MATCH, UPDATES),
)
