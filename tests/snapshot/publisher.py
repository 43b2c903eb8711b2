"""A process that publishes sets, one after the other, until it is done or killed.

python -m tests.snapshot.publisher ROOT NAME COUNT
"""

from __future__ import annotations

import sys

from headgate.snapshot import publish
from tests.snapshot.sets import numbered, query, query_set


def main(root: str, name: str, count: int) -> None:
    """Sets that differ little from the one before, and now and then much."""
    for turn in range(count):
        queries = numbered(60, limit=turn // 7)
        queries[turn % 60] = query(f"q{turn % 60}", "side = 'changed'")
        queries.append(query("publisher", f"side = '{name}' AND qty = {turn}"))
        publish(query_set(*queries), root)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
