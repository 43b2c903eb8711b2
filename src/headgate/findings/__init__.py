"""Check and explain: what is wrong with these queries, and why did this one not match?"""

from headgate.findings.checks import Finding, check
from headgate.findings.explanation import AtomTruth, Explanation, explain
from headgate.findings.flip import Flip, find_flip

__all__ = ["AtomTruth", "Explanation", "Finding", "Flip", "check", "explain", "find_flip"]
