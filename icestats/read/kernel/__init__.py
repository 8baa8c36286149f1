"""The compiled kernel: inflated blocks of manifests straight into accumulators and Arrow buffers.

Bytes and a decoding program come in; counts, bounds and rows as NumPy arrays go out. It never reads past its buffers,
and knows neither files nor Arrow. To import it imports numba: only modules that decode manifests do.
"""

from __future__ import annotations

import importlib
import os
import sys
from contextlib import suppress
from pathlib import Path
from threading import Thread

from icestats.errors import CallError

_CONFIGURATION = Path(".numba_config.yaml")

# numba that compiles with colorama there exchanges sys.stdout and ends what is printed with an escape sequence
# (numba/numba#3027).
os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")

if _CONFIGURATION.is_file():
    # numba takes its settings from there, among them the folder whose compiled code it unpickles, and nothing forbids
    # it.
    raise CallError(
        f"{_CONFIGURATION.absolute()} would say which compiled code numba runs, as it lies in the current folder: if "
        "it is yours, give its settings as variables NUMBA_... and remove it, else work in another folder"
    )


def _import_numba() -> None:
    # What fails here fails again in the thread that needs numba, which says it.
    with suppress(Exception):
        importlib.import_module("numba")


# An interrupt reaches the main thread alone; numba that is interrupted while it is imported cannot be imported again.
_importing = Thread(target=_import_numba, daemon=True)
_importing.start()
_importing.join()

if getattr(sys.modules.get("numba.core.config"), "DISABLE_JIT", 0):
    raise CallError("numba compiles nothing here, as NUMBA_DISABLE_JIT says: manifests are not read; unset it")
