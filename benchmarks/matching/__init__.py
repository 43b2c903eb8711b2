"""Loading, matching and routing, next to what people would use otherwise.

| experiment           | what it measures                                                         |
|----------------------|--------------------------------------------------------------------------|
| `load`               | reading a million WHERE clauses, next to sqlglot's parsing               |
| `publish-change`     | publishing one changed query, next to comparing all queries              |
| `check`              | finding mistakes in rules with patterns, next to comparing all pairs     |
| `scan`               | one query after the other, next to DuckDB and NumPy                      |
| `parse`              | JSON lines to typed rows, next to parsing a line at a time               |
| `route`              | a DataFrame on Spark, next to a giant OR and a nested-loop join          |
| `match`, `match-…`   | an index, next to counting, NumPy and a scan                             |
| `match-updates`      | matching after queries changed, next to building anew                    |
"""

from __future__ import annotations

from benchmarks.harness.report import Family
from benchmarks.matching.check import CHECK
from benchmarks.matching.load import LOAD
from benchmarks.matching.match import MATCH, UPDATES
from benchmarks.matching.parse import PARSE
from benchmarks.matching.publish import PUBLISH_CHANGE
from benchmarks.matching.route import ROUTE
from benchmarks.matching.scan import SCAN

MATCHING = Family(
    "Loading, matching and routing",
    (LOAD, PUBLISH_CHANGE, CHECK, SCAN, PARSE, ROUTE, *MATCH, UPDATES),
)
