"""Makes `data/` next to this file, photons of some nights, and runs the network's plan on them.

    python examples/sky/run.py [--nights N] [--prepare-only]

Everything follows from a seed, and what an earlier run left in `data/` is removed first.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

HERE = Path(__file__).resolve().parent
DATA = HERE / "data"
FIRST = datetime(2026, 1, 1, 20, tzinfo=UTC)
NIGHTS = 10
PHOTONS = 5_000  # a night
SEED = 2026


def main() -> None:
    parser = argparse.ArgumentParser(description="Photons, through a network that shares streams.")
    parser.add_argument("--nights", type=int, default=NIGHTS, metavar="N")
    parser.add_argument("--prepare-only", action="store_true", help="write data/, run nothing")
    options = parser.parse_args()
    print(prepare(DATA, options.nights))
    if not options.prepare_only:
        from headgate.cli.app import main as headgate

        sys.argv = ["headgate", "run", str(HERE / "pipeline.toml"), "--format", "table"]
        headgate()


def prepare(data: Path, nights: int) -> str:
    """Write the photons of so many nights, a file each; return what was done."""
    shutil.rmtree(data, ignore_errors=True)
    (data / "photons").mkdir(parents=True)
    # One generator for all nights, so that more nights leave the first ones as they are.
    dice = random.Random(SEED)
    for night in range(nights):
        start = FIRST + timedelta(days=night)
        lines = [json.dumps(_make_photon(start, dice)) for _ in range(PHOTONS)]
        path = data / "photons" / f"{start:%Y-%m-%d}.jsonl"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return f"{nights * PHOTONS:,} photons of {nights} nights in {data.name}/photons"


def _make_photon(start: datetime, dice: random.Random) -> dict[str, object]:
    """Return a photon, uniform over the part of the sky that is seen."""
    photon: dict[str, object] = {
        "ra": round(dice.uniform(100, 150), 4),
        "dec": round(dice.uniform(-60, -30), 4),
        "detected_at": (start + timedelta(seconds=dice.uniform(0, 36_000))).isoformat(),
        "detector": dice.choice("ABC"),
    }
    if dice.random() >= 0.01:  # else its energy is not known
        photon["energy"] = round(dice.uniform(0.1, 2.4), 4)
    return photon


if __name__ == "__main__":
    main()
