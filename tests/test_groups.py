"""The groups of `tests/conftest.py` take effect: tests of a group share a worker."""

from __future__ import annotations

import pytest


@pytest.mark.xdist_group("group")
def test_xdist_knows_the_group(request: pytest.FixtureRequest) -> None:
    """xdist appends the group to the id of a test; where it fails to, it ignores all groups."""
    if request.config.getoption("loadgroup", False):
        assert request.node.nodeid.endswith("@group")
