"""Seeded generators: the same seed gives the same queries and events, for one version of NumPy.

`rules` writes WHERE clauses like those of alert rules, over many attributes of all types. `boxes`
draws range queries over few attributes, with events that match them as often as was asked for.
`flights` writes queries that people might have about flights, and has real flights to go with them.
"""

from headgate.workloads.boxes import Boxes, box_events, boxes
from headgate.workloads.flights import flight_lines, flight_queries, flights
from headgate.workloads.rules import rule_stream, where_clauses

__all__ = [
    "Boxes",
    "box_events",
    "boxes",
    "flight_lines",
    "flight_queries",
    "flights",
    "rule_stream",
    "where_clauses",
]
