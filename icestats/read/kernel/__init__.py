"""The compiled kernel: inflated blocks of manifests straight into accumulators and Arrow buffers.

Bytes and a decoding program come in; counts, bounds and rows as NumPy arrays go out. It never reads past its buffers,
and knows neither files nor Arrow. To import it imports numba: only modules that decode manifests do.
"""

from __future__ import annotations

import importlib
import os
from threading import Thread

# numba that compiles with colorama there exchanges sys.stdout and ends what is printed with an escape sequence
# (numba/numba#3027).
os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")

# An interrupt reaches the main thread alone; numba that is interrupted while it is imported cannot be imported again.
_importing = Thread(target=importlib.import_module, args=("numba",), daemon=True)
_importing.start()
_importing.join()
