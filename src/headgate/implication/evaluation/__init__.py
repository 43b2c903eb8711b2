"""Find the rows of a batch that satisfy one predicate, be it an OR of thousands of boxes.

Rows become cells of the space in which every box is a product of ranges, and boxes are then found
by integers only: one after the other, by a tree, or by bitmaps.
"""

from headgate.implication.evaluation.evaluator import METHODS, Evaluator, Method

__all__ = ["METHODS", "Evaluator", "Method"]
