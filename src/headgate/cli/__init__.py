"""The command line. `headgate --help` lists the commands, each with examples."""

from headgate.cli.app import main

__all__ = ["main"]
