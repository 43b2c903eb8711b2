"""Why did a query match an event, or why not, and what small change would flip that?"""

from headgate.explain.explanation import AtomTruth, Explanation, explain
from headgate.explain.flip import Flip, find_flip

__all__ = ["AtomTruth", "Explanation", "Flip", "explain", "find_flip"]
