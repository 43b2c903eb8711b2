"""Seeded generators: the same seed gives the same queries and events, for one version of NumPy.

| generator         | queries                                                                      |
|-------------------|------------------------------------------------------------------------------|
| `rules`           | WHERE clauses like those of alert rules, on many attributes of all types     |
| `begen`           | a few of 400 attributes each, as in the BE-Tree paper; a million in a second |
| `begen_of_names`  | the same, derived from the letters of real names                             |
| `q_grams`         | a name each, by the letters that follow each other in it                     |
| `range_queries`   | ranges on some of 20 integers that every event has, as in the ASC paper      |
| `selections`      | fifty on few of those integers: the query sets of the ASC paper              |
| `boxes`           | ranges on a few attributes, spread over the whole space                      |
| `covering_boxes`  | boxes that tile and overlap a part of it, as in the stream-sharing paper     |
| `disjunctions`    | ORs of random boxes on few values, as in the stream-sharing paper            |
| `pattern_rules`   | twenty text patterns each, as rules have that look for attacks in logs       |
| `mixed`           | ANDs, ORs and NOTs of everything that WHERE has                              |
| `real_selections` | fifty that describe some rows of real data, as in the ASC paper              |
| `networks`        | boxes that overlap by so much, wanted by the peers of a random network       |

`rules`, `q_grams`, `disjunctions` and the two selections leave it to chance, more or
less, how often an event matches; all others come with events that match as often as was asked for.
"""

from benchmarks.workloads.begen import begen, begen_of_names
from benchmarks.workloads.boxes import Boxes, box_events, boxes, covering_boxes
from benchmarks.workloads.city_names import list_city_texts
from benchmarks.workloads.conjunctions import Conjunctions
from benchmarks.workloads.disjunctions import DisjunctionSpec, disjunctions, in_one_space
from benchmarks.workloads.integer_events import IntegerEvents
from benchmarks.workloads.mixed import Mixed, mixed, mixed_events
from benchmarks.workloads.networks import READINGS, SOURCE, NetworkedQueries, networked_queries
from benchmarks.workloads.pattern_rules import PatternRules, pattern_rules
from benchmarks.workloads.q_grams import gram_events, q_grams
from benchmarks.workloads.range_queries import range_queries
from benchmarks.workloads.real_selections import (
    RealSelections,
    connection_selections,
    flight_selections,
    nsl_kdd,
)
from benchmarks.workloads.rules import rule_stream, where_clauses
from benchmarks.workloads.selection_ranges import SelectionSpec, region_deviation
from benchmarks.workloads.selections import (
    LARGE_SELECTIONS,
    SELECTION_SETS,
    selection_queries,
    skewed_tuples,
    uniform_tuples,
)

__all__ = [
    "LARGE_SELECTIONS",
    "READINGS",
    "SELECTION_SETS",
    "SOURCE",
    "Boxes",
    "Conjunctions",
    "DisjunctionSpec",
    "IntegerEvents",
    "Mixed",
    "NetworkedQueries",
    "PatternRules",
    "RealSelections",
    "SelectionSpec",
    "begen",
    "begen_of_names",
    "box_events",
    "boxes",
    "connection_selections",
    "covering_boxes",
    "disjunctions",
    "flight_selections",
    "gram_events",
    "in_one_space",
    "list_city_texts",
    "mixed",
    "mixed_events",
    "networked_queries",
    "nsl_kdd",
    "pattern_rules",
    "q_grams",
    "range_queries",
    "region_deviation",
    "rule_stream",
    "selection_queries",
    "skewed_tuples",
    "uniform_tuples",
    "where_clauses",
]
