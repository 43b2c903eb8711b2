"""Bitmaps of queries by the regions of each attribute, evaluated in an order that adapts.

"Adaptive two-level optimization for selection predicates of multiple continuous queries" (ASC).
`construct` and `definition` have it in plain Python. The fast version: what a construct is about
(`subjects`, `texts`), all bits in one table (`bitmaps`, `fill`, `room`), and an event's way through
it (`evaluate`). An `order` is found from a `sample` of events (`sequences`, `arrows`, `lookahead`),
and found anew when events change (`adapt`, `trigger`). `ordering` holds that together, and
`statistics` lets one index find the order for many.
"""
