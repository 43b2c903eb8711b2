"""Which queries imply which, as a graph with as few edges as say it all.

A query implies another if every row of it is a row of the other. `definition` says it in a few
lines; `implications` finds the same without looking at all pairs.
"""

from headgate.implication.order.definition import Order

__all__ = ["Order"]
