"""Hypothesis profiles: `default` repeats exactly and is quick; `soak` is random and long."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from tests.scale import SOAK

EXAMPLES = 100

settings.register_profile(
    "default",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "soak", settings.get_profile("default"), derandomize=False, max_examples=EXAMPLES * SOAK
)
settings.load_profile("default")
