"""What programs see of a job while it runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from headgate.cli.watch import watching
from headgate.spark.streaming.job import Batch, Tally
from headgate.spark.streaming.leader import Evaluation
from headgate.spark.streaming.log import Counts


def test_the_order_is_in_the_progress_line_where_there_is_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    order = Evaluation(["b", "a"], 0.5, 1.25, 0.0, "the first events came")
    with watching(False, cast(Any, Path())) as view:
        view.batch(Batch(0, 1, Counts(), 0.1, {}), Tally())
        view.batch(Batch(1, 1, Counts(), 0.1, {}, order), Tally())
    plain, adaptive = map(json.loads, capsys.readouterr().out.splitlines())
    assert "order" not in plain
    assert adaptive["order"] == {
        "sequence": ["b", "a"],
        "dropping_ratio": 0.5,
        "evaluated": 1.25,
        "micro_ratio": 0.0,
        "rearranged": "the first events came",
    }
