"""All rivals, by name."""

from __future__ import annotations

from benchmarks.rivals.counting import AppIndex, SiftByStepsIndex, SiftIndex
from benchmarks.rivals.gryphon import AdvancedGryphonIndex, GryphonIndex
from benchmarks.rivals.k_index import KIndex
from benchmarks.rivals.propagation import PropagationIndex
from benchmarks.rivals.static_index import StaticIndex

RIVALS: tuple[type[StaticIndex], ...] = (
    SiftIndex,
    SiftByStepsIndex,
    KIndex,
    GryphonIndex,
    AdvancedGryphonIndex,
    PropagationIndex,
    AppIndex,
)
