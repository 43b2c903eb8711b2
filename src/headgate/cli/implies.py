"""`headgate implies`: whether every row of one condition is a row of another."""

from __future__ import annotations

from typing import Annotated

import typer

from headgate.cli.output import (
    EXIT_CODES,
    Format,
    FormatOption,
    SchemaOption,
    StreamOption,
    escape,
    load_stream,
    open_console,
    print_json,
    read_condition,
)
from headgate.implication import implies as decide_implication
from headgate.sql import render_row


def implies(
    p: Annotated[str, typer.Argument(metavar="P", help="A condition in SQL.")],
    q: Annotated[str, typer.Argument(metavar="Q", help="The condition that P may imply.")],
    schema: SchemaOption = None,
    stream: StreamOption = None,
    format: FormatOption = Format.table,
) -> None:
    """Find out whether every row of P is a row of Q and, if not, show one that is not.

    A row of a condition is one for which it is TRUE. What CHECK and NOT NULL rule out does not
    count. Exit code 0 for yes, 1 for no, 4 for unknown.

    Examples:

        headgate implies -s schema.sql --stream trades "qty > 10" "qty > 5"

        headgate implies -s schema.sql --stream trades "side = 'buy'" "qty > 3" --format json
    """
    declared = load_stream(schema, stream)
    implication = decide_implication(
        read_condition("P", p, declared), read_condition("Q", q, declared), declared
    )
    # A witness comes with "no" only, and a reason with "unknown" only.
    if format is Format.json:
        fields = {
            "implies": implication.answer,
            "witness": implication.witness,
            "reason": implication.reason,
        }
        print_json(fields)
    elif implication.witness is not None:
        open_console().print(
            f"no: {escape(render_row(implication.witness))} is a row of P and none of Q"
        )
    else:
        open_console().print(
            escape(f"unknown: {implication.reason}" if implication.reason else "yes")
        )
    raise typer.Exit(EXIT_CODES[implication.answer])
