"""Compiling the kernel with numba, once a machine: compiled code is kept where it can be written.

numba's own cache goes by the date of the file that a function is in, not of what that function calls, and lies beside
the source. Here the folder is the user's cache folder (or NUMBA_CACHE_DIR) and carries a hash of all of the kernel's
sources, so that it is never stale, whatever an installer does to dates.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba.core.caching import FunctionCache
from platformdirs import user_cache_path

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
_CONFIG: Any = numba.config
_NJIT: Any = numba.njit


def compiled(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a function that releases the interpreter lock, and keep the result for later processes."""
    return _compile(function, inlined=False)


def inlined(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a function into each of its callers."""
    return _compile(function, inlined=True)


class KeptCode(FunctionCache):
    """Compiled code of a function, in files."""

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return the code for a signature, None where it has to be compiled."""
        # numba's own method fills the target first with all that a compiler may need: 92 modules, half of the time that
        # a first call takes. Code that is ready needs none of them, and what compiles fills it by itself.
        with self._guard_against_spurious_io_errors():
            return self._load_overload(signature, target)  # type: ignore[no-untyped-call]  # numba has no types


def _compile(function: Callable[Parameters, Result], *, inlined: bool) -> Callable[Parameters, Result]:
    folder = None if inlined else cache_folder()
    if folder is not None:
        _move_to_lasting_path(function, folder)
    # Without numba's runtime nothing can be allocated, and arrays are not reference-counted: the atomic counting of
    # every view took 30 times as long as the work itself. `_nrt` is numba's own option for that.
    options = {"nogil": True, "error_model": "numpy", "forceinline": inlined, "_nrt": False}
    dispatcher = _NJIT(**options)(function)
    if folder is not None:
        before = _CONFIG.CACHE_DIR
        try:
            _CONFIG.CACHE_DIR = str(folder)
            dispatcher._cache = KeptCode(function)  # type: ignore[no-untyped-call]  # numba has no types
        finally:
            _CONFIG.CACHE_DIR = before
    return cast("Callable[Parameters, Result]", dispatcher)


def _move_to_lasting_path(function: Callable[Parameters, Result], folder: Path) -> None:
    # numba looks compiled code up by the path of its source, and on Spark's executors that is another one each time.
    source = Path(function.__code__.co_filename)
    lasting = folder / source.name
    try:
        if not lasting.exists():
            with tempfile.NamedTemporaryFile(dir=folder, delete=False) as copy:
                copy.write(source.read_bytes())
            Path(copy.name).replace(lasting)
    except OSError:
        return
    function.__code__ = function.__code__.replace(co_filename=str(lasting))


@cache
def cache_folder() -> Path | None:
    """Return the folder of compiled code; None where no folder can be written, and nothing is kept."""
    digest = hashlib.sha256(numba.__version__.encode())
    for source in sorted(Path(__file__).parent.glob("kernel*.py")):
        digest.update(source.read_bytes())
    root = Path(_CONFIG.CACHE_DIR) if _CONFIG.CACHE_DIR else user_cache_path("icestats") / "numba"
    folder = root / digest.hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK | os.X_OK) else None
