"""The options of ASC: how the order of evaluation is chosen. Results never depend on it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, get_args

from headgate.errors import UsageError, did_you_mean

SequenceKind = Literal["hybrid", "macro", "fixed"]

MAX_WHOLE_NUMBER = 1 << 40


@dataclass(frozen=True, slots=True)
class AscOptions:
    """The parameters of "Adaptive two-level optimization for selection predicates …".

    | option      | section  | meaning                                                             |
    |-------------|----------|---------------------------------------------------------------------|
    | `sequence`  | 4.2, 4.3 | `macro`: one order for all events; `hybrid`: with micro-arrows,     |
    |             |          | which save some constructs, and take longer to follow than that     |
    |             |          | saves where bitmaps are in a cache; `fixed`: the first order stays  |
    | `period`    | 5.2      | λ: events after which the dropping ratio is computed again          |
    | `threshold` | 5.2      | μ: relative change from which on the order is found again; 0: after |
    |             |          | every period                                                        |
    | `sample`    |          | events of a period that are remembered, for finding an order        |
    | `monitored` | 4.2.3    | τ: events that decide on one place in the sequence, each place with |
    |             |          | its own, as in the paper; None: all of the sample decide on each    |
    | `lookahead` |          | sequence and arrows by the cost of the whole way                    |
    |             |          | (`improve_sequence`); False: step by step, as in the paper          |
    | `fewest`    | 4.3      | events that must have visited a region before it gets a micro-arrow |
    | `block`     |          | words of the bitmaps, in steps of 16 or so, that are evaluated      |
    |             |          | before the next ones, each block until it is empty; 0: all at once, |
    |             |          | as in the paper                                                     |
    | `max_bytes` |          | of all bitmaps; a query that would need more is refused             |
    """

    sequence: SequenceKind = "macro"
    period: int = 100_000
    threshold: float = 0.1
    sample: int = 2_000
    monitored: int | None = None
    lookahead: bool = True
    fewest: int = 10
    block: int = 64
    max_bytes: int = 4 << 30

    def __post_init__(self) -> None:
        if self.sequence not in (known := get_args(SequenceKind)):
            hint = did_you_mean(str(self.sequence), known)
            raise UsageError(f"no sequence `{self.sequence}`; {hint}")
        for name in ("period", "sample", "monitored", "fewest", "block", "max_bytes"):
            value, least = getattr(self, name), 0 if name == "block" else 1
            whole = isinstance(value, int) and not isinstance(value, bool)
            in_range = whole and least <= value <= MAX_WHOLE_NUMBER
            if not in_range and (name, value) != ("monitored", None):
                raise UsageError(
                    f"`{name}` is a whole number from {least} to {MAX_WHOLE_NUMBER:,}, "
                    f"not {value!r}"
                )
        if not isinstance(self.lookahead, bool):
            raise UsageError(f"`lookahead` is True or False, not {self.lookahead!r}")
        number = isinstance(self.threshold, int | float) and not isinstance(self.threshold, bool)
        if not number or not self.threshold >= 0:
            raise UsageError(f"`threshold` is a number from 0 on, not {self.threshold!r}")

    def as_json(self) -> dict[str, object]:
        return {field.name: getattr(self, field.name) for field in fields(self)}
