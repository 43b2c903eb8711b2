"""The contract that every index passes, for our own indexes and for yours.

import pytest
from headgate.testing import CONTRACT

@pytest.mark.parametrize("claim", CONTRACT, ids=lambda claim: claim.__name__)
def test_contract(claim):
    claim(MyIndex)

An index for a part of the language has a class method `refusal`, which says of a query why it is
not taken, or None. Such an index is held to every claim for the queries that it takes.
"""

from headgate.testing.contract import CONTRACT, check_index
from headgate.testing.generate import every_type, random_rows, random_where

__all__ = ["CONTRACT", "check_index", "every_type", "random_rows", "random_where"]
