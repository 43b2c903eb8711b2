"""Results on disk: the numbers as JSON and the picture as PNG, under the experiment's name."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.result import Result


def write(result: Result, directory: Path) -> None:
    """`NAME.json` and `NAME.png`, in a directory that is made if there is none."""
    directory.mkdir(parents=True, exist_ok=True)
    text = json.dumps(result.as_json(), ensure_ascii=False, indent=2) + "\n"
    (directory / f"{result.experiment}.json").write_text(text, encoding="utf-8")
    result.plot(directory / f"{result.experiment}.png")
