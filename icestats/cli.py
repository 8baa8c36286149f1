"""The command line's entry: an interrupt ends it with exit code 130 and no traceback, from the first import on.

Nothing else is imported here, as the console script imports this module before it calls it.
"""

from __future__ import annotations

import sys

INTERRUPTED = 130


def main() -> None:
    """Run the command line and exit."""
    try:
        from icestats.command_line import run

        code = run()
    except KeyboardInterrupt:
        code = INTERRUPTED
    sys.exit(code)
