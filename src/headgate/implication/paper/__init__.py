"""Predicate matching as the paper has it, in plain Python, with its counts.

"Matching and Evaluation of Disjunctive Predicates for Data Stream Sharing", section 3 and
Appendix A: quick check, two heuristics, and exact matching with three split strategies, each with
or without the quick check and an index. They are what our own exact method is compared with.
"""

from headgate.implication.paper.matching import METHODS, Method, match_predicates, match_prepared
from headgate.implication.paper.stream_predicate import StreamPredicate

__all__ = ["METHODS", "Method", "StreamPredicate", "match_predicates", "match_prepared"]
