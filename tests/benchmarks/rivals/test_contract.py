"""Every rival keeps every promise of the contract, for the queries that it takes."""

from __future__ import annotations

import pytest

from benchmarks.rivals.static_index import StaticIndex
from headgate.testing import CONTRACT
from headgate.testing.contract import Claim
from tests.benchmarks.rivals.rivals import RIVALS
from tests.scale import slow_unless_in

pytestmark = pytest.mark.slow  # compiles the kernels of rivals

QUICK = [claim for claim in CONTRACT if claim.__name__ not in ("answers_as_scan", "chunks_add_up")]


@pytest.mark.parametrize("claim", slow_unless_in(QUICK, CONTRACT), ids=lambda claim: claim.__name__)
@pytest.mark.parametrize("kind", RIVALS)
def test_contract(kind: type[StaticIndex], claim: Claim) -> None:
    """The claim holds for the rival."""
    claim(kind)
