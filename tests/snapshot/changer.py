"""A process that publishes changes of the current version, one after the other.

python -m tests.snapshot.changer ROOT NAME COUNT
"""

from __future__ import annotations

import sys

from headgate.queries import Change
from headgate.snapshot import open_current, publish
from tests.snapshot.sets import query


def main(root: str, name: str, count: int) -> None:
    """Add a query in every turn; `one` and `two` also remove one of their own half."""
    turn = len([i for i in open_current(root).query_set().ids if i.startswith(name)])
    half = {"one": 0, "two": 1}.get(name)
    for _ in range(count):
        removed = () if half is None else (f"q{2 * turn + half}",)
        publish(Change(added=(query(f"{name} {turn}", "qty = 1"),), removed=removed), root)
        turn += 1


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
