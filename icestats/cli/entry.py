"""The command line's entry: Ctrl-C, SIGTERM and SIGHUP end it as one interrupt, with no traceback, from the start.

The exit code is 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP (a terminal that is closed): all end the JVM and
remove what is temporary.

Nothing heavy is imported here, as the console script imports this module before it calls it.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

INTERRUPTED = 130
_MOMENT_S = 0.01


def main() -> None:
    """Run the command line and exit."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            # Whoever started the process has closed it. What would be said there is for nobody, nor for the next file.
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", closefd=False))
    terminated: list[int] = []

    def terminate(number: int, _frame: FrameType | None) -> None:
        terminated.append(128 + number)
        raise KeyboardInterrupt

    is_ours = sys.unraisablehook is sys.__unraisablehook__
    if is_ours:
        sys.unraisablehook = _interrupt_again
    try:
        for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, terminate)
        code = _import_command_line()()
    except KeyboardInterrupt:
        code = terminated[0] if terminated else INTERRUPTED
    finally:
        if is_ours:
            sys.unraisablehook = sys.__unraisablehook__
    sys.exit(code)


def _interrupt_again(unraisable: sys.UnraisableHookArgs) -> None:
    """Interrupt once more, a moment later: Python drops an interrupt that comes in a callback or a finalizer."""
    if unraisable.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(unraisable)
        return
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, _MOMENT_S)


def _import_command_line() -> Callable[[], int]:
    """Import everything else. Nothing is under way yet, so that an interrupt may end the process at once."""
    # Where interrupts are ignored, or somebody else takes care of them, that stays so.
    is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    try:
        if is_ours:
            # An exception could be lost: what extension modules call back prints it, and goes on.
            signal.signal(signal.SIGINT, _end)
        from icestats.cli.command_line import run
    finally:
        if is_ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    return run


def _end(_number: int, _frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)
