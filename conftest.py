"""The examples on our pages run in the folder of the example files."""

from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent / "examples" / "trades"


@pytest.fixture(autouse=True)
def _in_examples(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.path.suffix == ".md":
        monkeypatch.chdir(EXAMPLES)
