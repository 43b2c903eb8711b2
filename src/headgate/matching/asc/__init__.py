"""Bitmaps of queries by the regions of each attribute, evaluated in an order that adapts.

"Adaptive two-level optimization for selection predicates of multiple continuous queries" (ASC).
"""
