"""Does one predicate imply another; if not, what is left over, and how should the other be relaxed?

A predicate that stays small is a union of boxes, and in a `space` of cells every box is a product
of ranges of whole numbers. One predicate implies another when its boxes are covered by the other's.
"""

from headgate.implication.decision import Implication, implies
from headgate.implication.relaxation import Relaxation, relax

__all__ = ["Implication", "Relaxation", "implies", "relax"]
