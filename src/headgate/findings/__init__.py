"""Checks and explanations: what is wrong with queries, and why one matched an event or not."""

from headgate.findings.checks import Finding, Findings, check
from headgate.findings.explanation import AtomTruth, Explanation, Flip, explain, find_flip

__all__ = [
    "AtomTruth",
    "Explanation",
    "Finding",
    "Findings",
    "Flip",
    "check",
    "explain",
    "find_flip",
]
