"""The checker gives what Figure 2 gives, set by set."""

from __future__ import annotations

import pytest

from headgate.stateful.analysis.theory.checker import is_bounded
from tests.scale import case_count, seed
from tests.stateful.figure_2 import figure_2
from tests.stateful.random_queries import FAMILIES, queries


@pytest.mark.parametrize("family", ["integers", "at most"])
def test_agree_with_figure_2(family: str) -> None:
    """On all sets of at most four attributes, each with all of its orders."""
    verdicts = []
    for query in queries(FAMILIES[family], seed(7), case_count(400)):
        verdicts.append(is_bounded(query))
        assert verdicts[-1] == figure_2(query), query
    assert 0.2 < sum(verdicts) / len(verdicts) < 0.9
