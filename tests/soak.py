"""Run the tests with random cases again and again, from new seeds, until the time is up.

    python -m tests.soak --minutes 60 [--seed 1] [PATH …]

Each round runs every such test once, with as many cases as a full run has. No test starts within
the last minute. In the end a table says how many cases of each kind were tried, and each failure
comes with its seed and the command that repeats it.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

LAST_START = 60  # seconds before the end after which no test starts
FAILED = 1  # pytest's exit code for failed tests
KIND_WIDTH = 70


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, help="of the first round; a random one by default")
    parser.add_argument("paths", nargs="*", default=["tests"])
    options = parser.parse_args()
    start = time.time()
    seed = random.SystemRandom().randrange(1 << 31) if options.seed is None else options.seed
    until = start + 60 * options.minutes - min(LAST_START, 30 * options.minutes)
    with TemporaryDirectory() as directory:
        log = Path(directory, "cases.jsonl")
        rounds = 0
        while time.time() < until:
            print(f"round {rounds}, seed {seed + rounds}", flush=True)
            code = _run_round(options.paths, seed + rounds, until, log)
            if code > FAILED:
                return code
            rounds += 1
        lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    return _report(lines, rounds, time.time() - start)


def _run_round(paths: list[str], seed: int, until: float, log: Path) -> int:
    """Run every test with random cases once, two at a time."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadgroup"]
    options = ["--level", "soak", "--soak-seed", seed, "--soak-until", until, "--soak-log", log]
    done = subprocess.run(
        [*command, *map(str, options), f"--hypothesis-seed={seed}", *paths], check=False
    )
    return done.returncode


def _report(lines: list[dict[str, Any]], rounds: int, seconds: float) -> int:
    """Print the cases by kind, and the failures; return the exit code."""
    cases: Counter[str] = Counter()
    for line in lines:
        if line["cases"]:
            cases[line["test"].partition("[")[0]] += line["cases"]
    for kind, count in sorted(cases.items()):
        print(f"{kind:<{KIND_WIDTH}} {count:>12,}")
    print(f"{sum(cases.values()):,} cases of {len(cases)} kinds, {rounds} rounds, {seconds:,.0f} s")
    failures = [line for line in lines if line["outcome"] == "failed"]
    for line in failures:
        seed = line["seed"]
        print(f"FAILED with seed {seed}: {line['test']}")
        print(
            f"  python -m pytest --level soak --soak-seed {seed} --hypothesis-seed={seed} "
            f"'{line['test']}'"
        )
    return FAILED if failures else 0


if __name__ == "__main__":
    sys.exit(main())
