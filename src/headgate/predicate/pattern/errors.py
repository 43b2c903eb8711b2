"""A LIKE or RLIKE pattern that we do not run, and why."""

from __future__ import annotations


class PatternRefused(ValueError):
    """The pattern has no meaning, or one that we cannot give it; `offset` counts characters.

    >>> raise PatternRefused("lookahead `(?=`", 3, "(?=")
    Traceback (most recent call last):
    ...
    headgate.predicate.pattern.errors.PatternRefused: lookahead `(?=` at character 4
    """

    def __init__(self, reason: str, offset: int, text: str) -> None:
        super().__init__(reason, offset, text)
        self.reason = reason
        self.offset = offset
        self.text = text

    def __str__(self) -> str:
        return f"{self.reason} at character {self.offset + 1}"
