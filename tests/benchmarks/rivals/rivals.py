"""All rivals, by name."""

from __future__ import annotations

from benchmarks.rivals.advanced_gryphon import AdvancedGryphonIndex
from benchmarks.rivals.app import AppIndex
from benchmarks.rivals.gryphon import GryphonIndex
from benchmarks.rivals.k_index import KIndex
from benchmarks.rivals.propagation import PropagationIndex
from benchmarks.rivals.sift import SiftByStepsIndex, SiftIndex
from benchmarks.rivals.static import StaticIndex

RIVALS: tuple[type[StaticIndex], ...] = (
    SiftIndex,
    SiftByStepsIndex,
    KIndex,
    GryphonIndex,
    AdvancedGryphonIndex,
    PropagationIndex,
    AppIndex,
)
