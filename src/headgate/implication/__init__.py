"""Decide whether one predicate implies another; if not, what is missing, and how to relax it.

A predicate that stays small is a union of boxes, and in a `space` of cells every box is a product
of ranges of whole numbers. One predicate implies another when its boxes are covered by the other's.
"""

from headgate.implication.decision import Implication, implies
from headgate.implication.relaxation import Relaxation, relax

__all__ = ["Implication", "Relaxation", "implies", "relax"]
