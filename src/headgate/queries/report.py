"""What a load accepted and refused: each bad row, and the reasons grouped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from headgate.errors import SqlError


@dataclass(frozen=True, slots=True)
class RowError:
    """A query that was not accepted."""

    error: SqlError
    id: str | None = None

    def as_json(self) -> dict[str, object]:
        """Return the error as it stands in the `errors` list of `headgate check`."""
        position = self.error.position
        hint = f"; {self.error.hint}" if self.error.hint else ""
        return {
            "file": position.file,
            "line": position.line,
            "column": position.column,
            "id": self.id,
            "message": self.error.message + hint,
            "text": self.error.text,
        }


@dataclass
class LoadReport:
    """Counts and errors of all files that a query set was read from."""

    accepted: int = 0
    errors: list[RowError] = field(default_factory=list)

    @property
    def total(self) -> int:
        """The number of queries that were read, accepted or not."""
        return self.accepted + len(self.errors)

    def reasons(self) -> Sequence[tuple[str, int]]:
        """Return the reasons for refusal with their counts, most frequent first."""
        return Counter(row.error.topic for row in self.errors).most_common()

    def summary(self) -> str:
        """Return the counts and the most frequent reasons in one line.

        >>> LoadReport(accepted=3).summary()
        '3 of 3 accepted'
        """
        text = f"{self.accepted:,} of {self.total:,} accepted"
        reasons = self.reasons()
        shown = "; ".join(f"{count:,}: {reason}" for reason, count in reasons[:5])
        more = f"; and {len(reasons) - 5} more reasons" if len(reasons) > 5 else ""
        return f"{text}; {shown}{more}" if shown else text
