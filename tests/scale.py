"""How many random cases a test tries, and from which seed.

| level   | run by           | cases                                                          |
|---------|------------------|----------------------------------------------------------------|
| `quick` | `make test`      | a fifth, always the same ones                                  |
| `full`  | `make test-slow` | all, always the same ones                                      |
| `soak`  | `make soak`      | all, from a new seed in every round, until the time is up      |

`pytest --level` chooses. `conftest.py` calls `use_level` before any test module is imported, since
decorators count their cases while they are imported.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any, Literal, get_args

import pytest
from hypothesis import HealthCheck, settings

Level = Literal["quick", "full", "soak"]
LEVELS: tuple[Level, ...] = get_args(Level)
QUICK_SHARE = 5
HYPOTHESIS_EXAMPLES = 100

_level: Level = "quick"
_soak_seed = 0
cases_tried: Counter[str] = Counter()  # by the test that was running


def use_level(level: Level, soak_seed: int = 0) -> None:
    """Set the level, and the hypothesis profile that goes with it, for this process."""
    global _level, _soak_seed
    _level, _soak_seed = level, soak_seed
    settings.register_profile(
        level,
        derandomize=level != "soak",
        database=None,
        deadline=None,
        max_examples=_scale(HYPOTHESIS_EXAMPLES),
        suppress_health_check=[HealthCheck.too_slow],
        print_blob=True,
    )
    settings.load_profile(level)


def case_count(full: int) -> int:
    """Return how many cases to try of those that a full run has; at least one."""
    count = _scale(full)
    running = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    if running:
        cases_tried[running] += count
    return count


def _scale(full: int) -> int:
    return max(1, full // QUICK_SHARE) if _level == "quick" else full


def at_least(full: int) -> int:
    """Return how often random cases must have met what a full run meets more often than this."""
    return {"quick": full // (2 * QUICK_SHARE), "full": full, "soak": full // 2}[_level]


def seed(shard: int = 0) -> int:
    """Return where random cases begin: the same place in every run, but a new one in a soak."""
    return (_soak_seed * 1_000_003 + shard) % (1 << 32) if _level == "soak" else shard


def slow_unless_in(quick: Collection[Any], values: Iterable[Any]) -> list[Any]:
    """Return parameters of a test, of which those that are not among the quick ones are slow."""
    return [v if v in quick else pytest.param(v, marks=pytest.mark.slow) for v in values]
