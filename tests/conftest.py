"""The levels of `tests.scale`, which tests each of them runs, and what a soak writes down.

`make test` runs everything that is not marked `slow`, with a fifth of the random cases. `make
test-slow` runs the slow tests, and those with random cases again with all of them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Generator
from pathlib import Path
from typing import cast

import pytest
from hypothesis import is_hypothesis_test

from tests import scale

# Tests of a group run in one worker: there is one Spark session, and no kernel is compiled twice.
WORKER_GROUPS = {
    "spark": ("tests/spark/",),
    "matching": (
        *("matching/", "tests/benchmarks/", "tests/cli/", "tests/findings/", "headgate/testing/"),
        *("tests/property/test_index", "be-tree.md", "asc.md", "choose-an-index.md"),
    ),
    "implication": ("implication/", "sharing/", "share-streams.md", "compare-conditions.md"),
}


# The doctests of these compile kernels that nothing else in `make test` needs.
SLOW_PATHS = ("benchmarks/rivals/",)


def pytest_configure(config: pytest.Config) -> None:
    scale.use_level(cast(scale.Level, config.getoption("--level")), config.getoption("--soak-seed"))


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose the tests of a level, unless tests were chosen by name or expression."""
    for item in items:
        for group, paths in WORKER_GROUPS.items():
            if any(path in item.nodeid for path in paths):
                item.add_marker(pytest.mark.xdist_group(group))
                break
    level = config.getoption("--level")
    if config.getoption("-m") or any("::" in argument for argument in config.args):
        return
    kept = [item for item in items if _belongs_to(item, level)]
    left_out = [item for item in items if not _belongs_to(item, level)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


def _belongs_to(item: pytest.Item, level: str) -> bool:
    is_slow = item.get_closest_marker("slow") is not None or item.nodeid.startswith(SLOW_PATHS)
    if level == "quick":
        return not is_slow
    return has_random_cases(item) or (is_slow and level == "full")


def has_random_cases(item: pytest.Item) -> bool:
    """Return whether the cases of a test grow with the level."""
    function = getattr(item, "function", None)
    if function is None:
        return False
    named = getattr(function, "__globals__", {})
    return is_hypothesis_test(function) or "case_count" in named or "cases" in named


@pytest.fixture(autouse=True)
def _stop_when_time_is_up(request: pytest.FixtureRequest) -> None:
    until = request.config.getoption("--soak-until")
    if until and time.time() > until:
        pytest.skip("the time of the soak is up")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In a soak, write down how many cases each test tried, and how it ended."""
    report = yield
    log = item.config.getoption("--soak-log")
    if log and call.when == "call" and report.outcome != "skipped":
        cases = scale.cases_tried.pop(item.nodeid, 0)
        function = getattr(item, "function", None)
        if function is not None and is_hypothesis_test(function):
            cases += function._hypothesis_internal_use_settings.max_examples
        line = {
            "test": _without_group(item.nodeid),
            "cases": cases,
            "outcome": report.outcome,
            "seed": item.config.getoption("--soak-seed"),
        }
        with Path(log).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    return report


def _without_group(nodeid: str) -> str:
    """Return the id of a test as pytest takes it, without the group that xdist appends."""
    test, _, group = nodeid.rpartition("@")
    return test if group in WORKER_GROUPS else nodeid
