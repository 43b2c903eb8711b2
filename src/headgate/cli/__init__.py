"""The command line. `headgate --help` lists the commands, each with examples."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; Ctrl-C while it is still being imported is no traceback either."""
    try:
        from headgate.cli.app import main as run
    except KeyboardInterrupt:
        sys.exit(130)  # as shells say it
    run()
