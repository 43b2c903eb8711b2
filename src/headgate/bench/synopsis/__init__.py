"""Joins and aggregates that run for ever: their state and their speed, beside Spark's own join.

| experiment                       | what it asks                                                  |
|----------------------------------|---------------------------------------------------------------|
| `synopsis`                       | does the state stay the same, from 10 to 1,000 micro-batches? |
| `synopsis-q3`, `-q4`, `-q6`,     | how many events a second, when a million have gone by?        |
| `-q7`, `-sum`, `-count`, `-max`  |                                                               |
| `synopsis-process`               | how many tuples a second without Spark?                       |
"""

from __future__ import annotations

from headgate.bench.experiment import Experiment
from headgate.bench.synopsis.in_process import IN_PROCESS
from headgate.bench.synopsis.state import STATE
from headgate.bench.synopsis.throughput import THROUGHPUT

SYNOPSIS: tuple[Experiment, ...] = (STATE, *THROUGHPUT, IN_PROCESS)
