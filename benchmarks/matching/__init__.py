"""Loading, matching and routing, next to what people would use otherwise.

| experiment           | what it measures                                                         |
|----------------------|--------------------------------------------------------------------------|
| `load`               | reading a million WHERE clauses, next to sqlglot's parsing               |
| `publish-change`     | publishing one changed query, next to comparing all queries              |
| `check`              | finding mistakes in rules with patterns, next to comparing all pairs     |
| `scan`               | one query after the other, next to DuckDB and NumPy                      |
| `parse`, `parse-csv` | JSON lines and CSV to typed rows, next to parsing a line at a time       |
| `route`              | a DataFrame on Spark, next to a nested-loop join and one process         |
| `route-keys`,        | the same, on rules that compare keys, next to Spark's equi-join          |
| `route-or`,          |                                                                          |
| `route-or-keys`      |                                                                          |
| `match`, `match-…`   | an index, next to counting, NumPy and a scan                             |
| `arrow-pass`         | small batches of Arrow, next to the kernel of the index alone            |
| `one-event`          | one dict at a time, next to a list of one                                |
| `auto`               | the default index next to every other, on seventeen families of queries  |
| `match-updates`      | matching after queries changed, next to building anew                    |
| `keyed-kernel`       | the kernel of `keyed` alone, next to a bare one                          |
| `worker-start`       | from a snapshot to the first matches, alone and beside other workers     |
"""

from __future__ import annotations

from benchmarks.harness.report import Family
from benchmarks.matching.auto import AUTO_EXPERIMENT
from benchmarks.matching.check import CHECK
from benchmarks.matching.in_process import ARROW_PASS, ONE_EVENT
from benchmarks.matching.kernel import KEYED_KERNEL
from benchmarks.matching.load import LOAD
from benchmarks.matching.match import MATCH, UPDATES
from benchmarks.matching.parse import PARSE, PARSE_CSV
from benchmarks.matching.publish import PUBLISH_CHANGE
from benchmarks.matching.route import ROUTE, ROUTE_KEYS, ROUTE_OR, ROUTE_OR_KEYS
from benchmarks.matching.scan import SCAN
from benchmarks.matching.worker_start import WORKER_START

MATCHING = Family(
    "Loading, matching and routing",
    (
        *(LOAD, PUBLISH_CHANGE, CHECK, SCAN, PARSE, PARSE_CSV),
        *(ROUTE, ROUTE_KEYS, ROUTE_OR, ROUTE_OR_KEYS, *MATCH, ARROW_PASS, ONE_EVENT, UPDATES),
        *(KEYED_KERNEL, WORKER_START, AUTO_EXPERIMENT),
    ),
)
