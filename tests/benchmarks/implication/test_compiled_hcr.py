"""The compiled HCR and the plain one of the paper agree."""

from __future__ import annotations

import pytest

from benchmarks.implication.compiled_hcr import match_hcr_compiled
from headgate.implication.paper import match_predicates
from tests.implication.boxes import as_set
from tests.implication.test_exact import drawn
from tests.scale import case_count, seed
from tests.strategies import Seeded

pytestmark = pytest.mark.slow  # compiles the kernels of rivals


def test_agree_hcr_compiled_and_plain() -> None:
    """The compiled HCR gives the boxes that the plain one gives."""
    dice = Seeded(seed(2))
    for _ in range(case_count(500)):
        space, query, stream = drawn(dice, 9)
        plain = match_predicates(space, query, stream, "hcr")
        compiled = match_hcr_compiled(space, query, stream)
        assert plain.covered == compiled.covered
        assert as_set(plain.boxes) == as_set(compiled.boxes)
