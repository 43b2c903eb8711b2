"""Results on disk: the numbers as JSON and the picture as PNG, under the experiment's name."""

from __future__ import annotations

import json
from pathlib import Path

from headgate.bench.plot import require_matplotlib
from headgate.bench.result import Result
