"""All commands, and how errors are shown.

Exit codes: 0 yes or all well, 1 no or findings, 2 wrong usage, 3 bad input, 4 unknown.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.text import Text
from typer.core import TyperGroup

import headgate
from headgate.cli.check import check
from headgate.cli.compact import compact
from headgate.cli.explain import explain
from headgate.cli.forget import forget
from headgate.cli.implies import implies
from headgate.cli.init import init
from headgate.cli.match import match
from headgate.cli.output import (
    BAD_INPUT,
    WRONG_USAGE,
    open_error_console,
    print_error,
    print_warning,
)
from headgate.cli.publish import publish
from headgate.cli.relax import relax
from headgate.cli.run import run
from headgate.cli.share_advise import advise
from headgate.cli.share_compare import compare
from headgate.cli.share_plan import plan
from headgate.errors import HeadgateError, UsageError, make_printable


class PrintableGroup(TyperGroup):
    """Commands whose usage errors, which Typer prints, repeat arguments in printable form."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Read the arguments of the program itself."""
        with _make_errors_printable():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:
        """Read the arguments of a command, and run it."""
        with _make_errors_printable():
            return super().invoke(ctx)


@contextmanager
def _make_errors_printable() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        # Typer has moved the class of its errors before; all of them have a message to be shown.
        if hasattr(error, "format_message"):
            message = make_printable(error.format_message())
            error.format_message = lambda: message
        raise


app = typer.Typer(
    name="headgate",
    cls=PrintableGroup,
    help="Very many standing SQL queries over data streams.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
# The help lists commands in this order: from a first schema to a running job.
for command in (init, check, match, explain, implies, relax, publish, run, compact, forget):
    app.command()(command)
share = typer.Typer(
    help="Plan how queries share streams: in a network, or among the jobs of one cluster.",
    no_args_is_help=True,
)
share.command()(plan)
share.command()(compare)
share.command()(advise)
app.add_typer(share, name="share")


def _show_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"headgate {headgate.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Very many standing SQL queries over data streams."""
    del version


class _ConsoleHandler(logging.Handler):
    """Prints what libraries log, but for errors of py4j: what it logs, it raises too."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[0] if record.exc_info else None
        if error is None or not error.__module__.startswith("py4j."):
            open_error_console().print(Text(self.format(record)))


def main() -> None:
    """Run a command; every foreseen error is one line on stderr, never a traceback."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)  # what it logs, it raises too
    logging.basicConfig(handlers=[_ConsoleHandler()], format="%(levelname)s: %(message)s")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: print_warning(str(message))
            app()
    # UsageError is a HeadgateError too, so it comes first: it has an exit code of its own.
    except UsageError as error:
        print_error(str(error))
        sys.exit(WRONG_USAGE)
    except HeadgateError as error:
        print_error(str(error))
        sys.exit(BAD_INPUT)
    # The reader, such as `head`, has seen enough. Closing stderr silences the interpreter's remark.
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except KeyboardInterrupt:
        print_error("interrupted")
        sys.exit(130)
