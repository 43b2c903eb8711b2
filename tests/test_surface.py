"""Public is what `__init__` lists; heavy libraries stay out until they are needed."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement

import headgate

EXAMPLES = Path(__file__).parents[1] / "examples" / "trades"


@pytest.mark.parametrize("module", [headgate, headgate.sharing, headgate.spark])
def test_all_is_what_is_visible(module: ModuleType) -> None:
    """`hg.<TAB>` shows `__all__`: every listed name exists, and nothing else is public."""
    assert dir(module) == sorted(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)


def test_nothing_unlisted_is_public() -> None:
    """What `headgate` imports for itself is on the list, or has an underscore."""
    unlisted = {
        name
        for name, value in vars(headgate).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    } - set(headgate.__all__)
    assert not unlisted


def test_import_is_light() -> None:
    """`import headgate` brings in neither Spark nor Numba, pandas, matplotlib or DuckDB."""
    heavy = ["pyspark", "numba", "pandas", "matplotlib", "duckdb", "hypothesis"]
    program = f"import sys, headgate; print([m for m in {heavy} if m in sys.modules])"
    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert printed.stdout.strip() == "[]"


def test_commands_do_without_spark(tmp_path: Path) -> None:
    """The commands that do not run on Spark do not import it: it need not even be there."""
    sources = f"-s {EXAMPLES}/schema.sql -q {EXAMPLES}/rules.jsonl"
    commands = [
        "--help",
        "run --help",
        f"init {EXAMPLES}/events.jsonl",
        f"check {sources}",
        f"match {sources} --stream trades {EXAMPLES}/events.jsonl",
        f"explain {sources} cheap",
        f"publish {sources} --to {tmp_path}",
    ]
    program = (
        "import sys; sys.modules['pyspark'] = None\n"  # to import it is an error from now on
        "from typer.testing import CliRunner\n"
        "from headgate.cli.app import app\n"
        "for command in sys.argv[1:]:\n"
        "    print(CliRunner().invoke(app, command.split()).exit_code)\n"
        "import headgate\n"
        "try: headgate.spark\n"
        "except headgate.HeadgateError as error: print(error)\n"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program, *commands], capture_output=True, text=True, check=True
    )
    *codes, refusal = printed.stdout.splitlines()
    assert codes == ["0", "0", "0", "1", "1", "0", "1"]  # 1: there are findings, as always
    assert refusal == "headgate.spark needs PySpark 4.1 to 4.3; pip install 'headgate[spark]'"


def test_the_core_does_not_touch_a_platforms_spark() -> None:
    """Headgate without extras requires neither PySpark nor what PySpark is particular about."""
    requirements = [Requirement(text) for text in metadata.requires("headgate") or ()]
    core = {one.name for one in requirements if one.marker is None or one.marker.evaluate()}
    extra = {
        one.name for one in requirements if one.marker and one.marker.evaluate({"extra": "spark"})
    }
    assert {"pyarrow", "sqlglot"} <= core
    assert not core & {"pyspark", "pyspark-client", "py4j", "pandas", "protobuf", "grpcio"}
    assert {"pyspark", "pandas", "protobuf"} <= extra
