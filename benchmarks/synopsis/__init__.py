"""Joins and aggregates that run for ever: their state and their speed, beside Spark's own join.

| experiment                       | what it asks                                                  |
|----------------------------------|---------------------------------------------------------------|
| `synopsis-state`                 | does the state stay the same, from 10 to 1,000 micro-batches? |
| `synopsis-q3`, `-q4`, `-q6`,     | how many events a second, when a million have gone by?        |
| `-q7`, `-sum`, `-count`, `-max`  |                                                               |
| `synopsis-batches`               | and how does that depend on the size of a micro-batch?        |
| `synopsis-process`               | how many tuples a second without Spark?                       |
"""

from __future__ import annotations

from benchmarks.harness.report import Family
from benchmarks.synopsis.in_process import IN_PROCESS
from benchmarks.synopsis.state import STATE
from benchmarks.synopsis.throughput import BY_BATCH, THROUGHPUT

SYNOPSIS = Family(
    "Joins and aggregates in bounded memory, next to Spark's own",
    (IN_PROCESS, *THROUGHPUT, BY_BATCH, STATE),
)
