"""Given one predicate, an OR of thousands of boxes perhaps, which rows of a batch satisfy it?

Rows become cells of the space in which every box is a product of ranges, and boxes are then found
by whole numbers alone: one after the other, by a tree, or by bitmaps.
"""

from headgate.implication.evaluation.evaluator import METHODS, Evaluator, Method

__all__ = ["METHODS", "Evaluator", "Method"]
