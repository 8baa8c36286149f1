"""The kernel's machine code, which numba keeps in a folder: only where nobody else can change it, and never needed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

from numba import njit

from icestats.read.private_folder import is_private

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def compile_and_keep(function: Callable[_Parameters, _Result], **options: Any) -> Callable[_Parameters, _Result]:
    """Compile a function at its first call, with options of numba's `njit`, and keep the machine code if possible."""
    try:
        made: Any = njit(cache=True, **options)(function)
        is_kept = _is_kept_privately(Path(made.stats.cache_path))
    except (RuntimeError, OSError):
        # numba raises a RuntimeError where it can write to no folder.
        is_kept = False
    if is_kept:
        _make_dispensable(made._cache)
    else:
        made = njit(**options)(function)
    return cast("Callable[_Parameters, _Result]", made)


def _is_kept_privately(folder: Path) -> bool:
    """Whether numba may unpickle what it finds in a folder, which runs whatever it says; a new one is closed first."""
    # Of an empty XDG_CACHE_HOME numba makes a folder in the current one, which may be a table's, of a stranger.
    if not folder.is_absolute():
        return False
    if folder.name != "__pycache__" and is_private(folder.parent, "*.nb[ic]") and not any(folder.iterdir()):
        folder.chmod(0o700)
    return is_private(folder, "*.nb[ic]")


def _make_dispensable(cache: Any) -> None:
    """Have numba compile what it has kept and cannot read, and go on where it can keep nothing: a full disk, say."""
    load, save = cache.load_overload, cache.save_overload

    def load_if_whole(*arguments: Any) -> Any:
        try:
            return load(*arguments)
        except Exception:  # noqa: BLE001 - unpickling damaged bytes raises anything
            with suppress(OSError):
                cache.flush()
            return None

    def save_if_possible(*arguments: Any) -> None:
        # An index that is damaged and cannot be written anew is read again here.
        with suppress(Exception):
            save(*arguments)

    cache.load_overload, cache.save_overload = load_if_whole, save_if_possible
