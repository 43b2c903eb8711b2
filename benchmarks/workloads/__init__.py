"""Seeded generators: the same seed gives the same queries and events, for one version of NumPy.

| module            | queries                                                                      |
|-------------------|------------------------------------------------------------------------------|
| `rules`           | WHERE clauses like those of alert rules, on many attributes of all types     |
| `begen`           | a few of 400 attributes each, as in the BE-Tree paper; the same, derived     |
|                   | from the letters of real names                                               |
| `q_grams`         | a name each, by the letters that follow each other in it                     |
| `range_queries`   | ranges on some of 20 integers that every event has, as in the ASC paper      |
| `selections`      | fifty on few of those integers: the query sets of the ASC paper              |
| `boxes`           | ranges on a few attributes, spread over the whole space; boxes that tile and |
|                   | overlap a part of it, as in the stream-sharing paper                         |
| `disjunctions`    | ORs of random boxes on few values, as in the stream-sharing paper            |
| `pattern_rules`   | twenty text patterns each, as rules have that look for attacks in logs       |
| `mixed`           | ANDs, ORs and NOTs of everything that WHERE has                              |
| `real_selections` | fifty that describe some rows of real data, as in the ASC paper              |
| `networks`        | boxes that overlap by so much, wanted by the peers of a random network       |

`rules`, `q_grams`, `disjunctions` and the two selections leave it to chance, more or less, how
often an event matches; all others come with events that match as often as was asked for.
"""

from benchmarks.workloads.begen import generate_begen, generate_begen_of_names
from benchmarks.workloads.boxes import (
    Boxes,
    generate_box_events,
    generate_boxes,
    generate_covering_boxes,
)
from benchmarks.workloads.conjunctions import Conjunctions
from benchmarks.workloads.disjunctions import (
    DisjunctionSpec,
    generate_disjunctions,
    place_in_one_space,
)
from benchmarks.workloads.integer_events import IntegerEvents
from benchmarks.workloads.mixed import Mixed, generate_mixed, generate_mixed_events
from benchmarks.workloads.networks import (
    READINGS,
    SOURCE,
    NetworkedQueries,
    generate_networked_queries,
)
from benchmarks.workloads.pattern_rules import PatternRules, generate_pattern_rules
from benchmarks.workloads.q_grams import generate_gram_queries, list_city_texts, make_gram_events
from benchmarks.workloads.range_queries import generate_range_queries
from benchmarks.workloads.real_selections import (
    RealSelections,
    read_nsl_kdd,
    select_connections,
    select_flights,
)
from benchmarks.workloads.rules import generate_where_clauses, make_rule_stream
from benchmarks.workloads.selection_ranges import SelectionSpec, measure_region_deviation
from benchmarks.workloads.selections import (
    LARGE_SELECTIONS,
    SELECTION_SETS,
    draw_skewed_tuples,
    draw_uniform_tuples,
    generate_selections,
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
    "draw_skewed_tuples",
    "draw_uniform_tuples",
    "generate_begen",
    "generate_begen_of_names",
    "generate_box_events",
    "generate_boxes",
    "generate_covering_boxes",
    "generate_disjunctions",
    "generate_gram_queries",
    "generate_mixed",
    "generate_mixed_events",
    "generate_networked_queries",
    "generate_pattern_rules",
    "generate_range_queries",
    "generate_selections",
    "generate_where_clauses",
    "list_city_texts",
    "make_gram_events",
    "make_rule_stream",
    "measure_region_deviation",
    "place_in_one_space",
    "read_nsl_kdd",
    "select_connections",
    "select_flights",
]
