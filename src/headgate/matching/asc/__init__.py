"""Bitmaps of queries by the regions of each attribute, evaluated in an order that adapts.

"Adaptive two-level optimization for selection predicates of multiple continuous queries" (ASC).
`index` is the index. `constructs` are what the paper calls attribute selection constructs, and
`bitmaps` keeps the bits of all of them in one table. An `order` of evaluation is chosen by a sample
of events; `adaptive_order` chooses another when the `monitor` says that events have changed. One
index can choose the order for many, by their `Statistics`. What is compiled lies in `kernels`.
"""
