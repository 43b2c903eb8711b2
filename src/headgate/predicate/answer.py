"""Answers in three values: yes, no, or unknown where neither can be proven."""

from __future__ import annotations

from enum import StrEnum

from headgate.errors import UsageError


class Answer(StrEnum):
    """The answer to a question that may stay undecided.

    Members equal their plain words and are written as such in JSON. An answer has no truth value:
    `if answer:` would take "no" or "unknown" for a yes, so it raises an error.

    Examples
    --------
    >>> Answer.YES == "yes", f"{Answer.UNKNOWN}", Answer("no")
    (True, 'unknown', <Answer.NO: 'no'>)
    >>> bool(Answer.NO)
    Traceback (most recent call last):
        ...
    headgate.errors.UsageError: an answer is yes, no or unknown, neither true nor false; \
compare it, as in `answer is Answer.YES`
    """

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"

    @property
    def opposite(self) -> Answer:
        """Return no for yes, yes for no; what is unknown stays unknown."""
        return {Answer.YES: Answer.NO, Answer.NO: Answer.YES}.get(self, self)

    def __bool__(self) -> bool:
        raise UsageError(
            "an answer is yes, no or unknown, neither true nor false; "
            "compare it, as in `answer is Answer.YES`"
        )
