"""Who reads WHERE clauses in the experiment `load`, each to run in a process of its own.

Each offers `answer`, the predicates of a sample in one spelling, and `run`, which is timed. All of
a load is on Headgate's clock: file, JSON, parse, bind, typed atoms, query set. sqlglot is timed on
parsing alone, of texts that it holds already.
"""

from __future__ import annotations

import json
from pathlib import Path

import sqlglot
import sqlglot.tokenizer_core

from benchmarks.harness.machine import peak_megabytes
from benchmarks.harness.worker import Commands
from headgate.queries import QuerySet, read_queries
from headgate.sql import Scope, render_predicate
from headgate.sql.binder import parse_condition
from headgate.sql.fast_path import FastPath


def headgate_reads(schema: str, sample: str, rules: str) -> Commands:
    """Return commands that read the whole file with Headgate."""
    query_sets: list[QuerySet] = []

    def run() -> int:
        query_sets.append(read_queries(schema, rules, strict=True))
        return len(query_sets[0])

    def answer() -> list[str]:
        return [
            render_predicate(query.where) for query in read_queries(schema, sample, strict=True)
        ]

    def fast_percent() -> float:
        scope, texts = _sample(schema, sample)
        fast_path = FastPath(scope)
        return 100 * sum(fast_path.parse(text) is not None for text in texts) / len(texts)

    return {
        "run": run,
        "answer": answer,
        "reset": query_sets.clear,
        "fast_percent": fast_percent,
        "peak": peak_megabytes,
    }


def sqlglot_parses(schema: str, sample: str) -> Commands:
    """Return commands that parse each text of the sample; answers are bound by `sql.binder`."""
    scope, texts = _sample(schema, sample)

    def run() -> None:
        for text in texts:
            sqlglot.parse_one(text, dialect="spark")

    def answer() -> list[str]:
        return [render_predicate(parse_condition(text, scope)) for text in texts]

    def is_compiled() -> bool:
        return not str(sqlglot.tokenizer_core.__file__).endswith(".py")

    return {"run": run, "answer": answer, "is_compiled": is_compiled}


def _sample(schema: str, sample: str) -> tuple[Scope, list[str]]:
    scope = Scope.of(read_queries(schema).schema.stream())
    lines = Path(sample).read_text(encoding="utf-8").splitlines()
    return scope, [json.loads(line)["where"] for line in lines]
