"""All rivals, by name."""

from __future__ import annotations

from headgate.bench.rivals.advanced_gryphon import AdvancedGryphonIndex
from headgate.bench.rivals.app import AppIndex
from headgate.bench.rivals.gryphon import GryphonIndex
from headgate.bench.rivals.k_index import KIndex
from headgate.bench.rivals.propagation import PropagationIndex
from headgate.bench.rivals.sift import SiftByStepsIndex, SiftIndex
from headgate.bench.rivals.static import StaticIndex

RIVALS: tuple[type[StaticIndex], ...] = (
    SiftIndex,
    SiftByStepsIndex,
    KIndex,
    GryphonIndex,
    AdvancedGryphonIndex,
    PropagationIndex,
    AppIndex,
)
