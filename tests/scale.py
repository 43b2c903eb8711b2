"""How many cases a test runs: a moderate number by default, fifty times as many in a soak."""

from __future__ import annotations

import random

import pytest
from hypothesis import settings

SOAK = 50


def soaking() -> bool:
    """Is `--hypothesis-profile=soak` in force?"""
    return settings.get_current_profile_name() == "soak"


# as text, since conftest.py imports this before the profile is in force
in_a_soak = pytest.mark.skipif(
    "config.getoption('--hypothesis-profile') != 'soak'", reason="slow: `make soak` has it"
)
"""For tests that take long, and whose subject others look at too."""


def many(count: int) -> int:
    """This many cases, or fifty times as many in a soak."""
    return count * SOAK if soaking() else count


def seed(shard: int = 0) -> int:
    """Where random cases begin: always the same place, but anywhere in a soak."""
    return random.SystemRandom().randrange(1 << 32) if soaking() else shard
