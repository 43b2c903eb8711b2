"""Patterns: SQL's LIKE, and Java's regular expressions on RE2.

`like` matches LIKE. `java_regex` parses a regular expression and translates it to one that RE2
understands the same, or refuses it by name: `cursor` reads, `character_class` and `character_set`
know what a class holds, and `fragment` puts the pieces together.
"""

from headgate.predicate.pattern.errors import PatternRefused
from headgate.predicate.pattern.java_regex import compile_re2, sample_regex, to_re2
from headgate.predicate.pattern.like import LikePattern, parse_like

__all__ = ["LikePattern", "PatternRefused", "compile_re2", "parse_like", "sample_regex", "to_re2"]
