"""Functions that are compiled once a machine: later processes load the kept machine code, and never import numba.

An argument is an array (contiguous in C order, aligned, writable), an integer, a flag, or a named tuple of them; a result
is an integer, a flag or None. A call flattens its arguments into 64-bit words, of an array its address and shape, and
hands over where the words are; code_generation makes the machine code that takes them, object_code keeps and loads it.
"""

from __future__ import annotations

import hashlib
import threading
from array import array
from collections.abc import Callable, Iterable
from ctypes import addressof, c_char
from functools import cached_property
from inspect import signature
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np

from icestats.read.object_code import NativeFunction, load_code, read_code, write_code

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Kinds = tuple[Any, ...]
Class = TypeVar("Class", bound=type)

NOTHING, INTEGER, FLAG, RAISED = range(4)
"""What machine code says of its result, which is in the first word."""

_NO_CHARACTERS = c_char * 0
_lock = threading.RLock()


def compiled(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a function that releases the interpreter lock, and keep the result for later processes."""
    return cast("Callable[Parameters, Result]", CompiledFunction(function, inlined=False))


def inlined(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a function into each of its callers."""
    return cast("Callable[Parameters, Result]", CompiledFunction(function, inlined=True))


def argument(named_tuple: Class) -> Class:
    """Let a named tuple remember its words: a call takes a few microseconds, and flattening twenty arrays as many."""
    names = {"__module__": named_tuple.__module__, "__doc__": named_tuple.__doc__, "flattened": None}
    return cast("Class", type(named_tuple.__name__, (named_tuple,), names))


class CompiledFunction:
    """A function that runs as machine code; numba is imported only where that has to be made."""

    def __init__(self, function: Callable[..., Any], *, inlined: bool) -> None:
        self.function = function
        self.inlined = inlined
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self._native: dict[Kinds, NativeFunction] = {}

    def __call__(self, *arguments: Any) -> Any:
        """Run the machine code for arguments of these kinds."""
        kinds, words = flatten(arguments)
        native = self._native.get(kinds) or self._prepare(kinds, arguments)
        # Threads call at the same time: each call has words of its own.
        block = array("q", words or [0])
        result = native(block.buffer_info()[0])
        if result == NOTHING:
            return None
        if result == INTEGER:
            return block[0]
        if result == FLAG:
            return bool(block[0])
        raise RuntimeError(f"the machine code of {self.__name__} raised an exception")

    def _prepare(self, kinds: Kinds, arguments: tuple[Any, ...]) -> NativeFunction:
        """Load the code for arguments of some kinds, or make it."""
        with _lock:
            if kinds not in self._native:
                signature(self.function).bind(*arguments)
                digest = hashlib.sha256(repr((self.function.__module__, kinds)).encode()).hexdigest()
                name = f"{self.__name__}_{digest[:24]}"
                code = read_code(name)
                if code is None:
                    from icestats.read.code_generation import generate_code

                    code = generate_code(self.function, arguments, name)
                    write_code(name, code)
                self._native[kinds] = load_code(name, code)
            return self._native[kinds]

    @property
    def _numba_type_(self) -> Any:
        """The type by which numba knows what to call where a compiled function names this one."""
        return self._callee._numba_type_

    @cached_property
    def _callee(self) -> Any:
        from icestats.read.code_generation import build_callee

        return build_callee(self.function, inlined=self.inlined)


def flatten(values: Iterable[Any]) -> tuple[Kinds, list[int]]:
    """Return of what kinds arguments are, and their words.

    Raises
    ------
    TypeError
        One of them is nothing that compiled functions take.
    """
    kinds: list[Any] = []
    words: list[int] = []
    for value in values:
        if type(value) is np.ndarray:
            if not value.flags.carray:
                raise TypeError("an array for compiled code is not contiguous, aligned and writable: copy it")
            kinds.append(value.dtype)
            kinds.append(value.ndim)
            words.append(addressof(_NO_CHARACTERS.from_buffer(value)))
            words += value.shape
        elif isinstance(value, tuple):
            if (flattened := getattr(value, "flattened", None)) is None:
                flattened = _flatten_tuple(value)
            kinds.append(flattened[0])
            words += flattened[1]
        elif isinstance(value, bool | np.bool_):
            kinds.append(bool)
            words.append(int(value))
        elif isinstance(value, int | np.integer):
            kinds.append(int)
            words.append(int(value))
        else:
            raise TypeError(f"compiled code takes no {type(value).__name__}: expected an array, an integer or a flag")
    return tuple(kinds), words


def _flatten_tuple(value: Any) -> tuple[str, list[int]]:
    kinds, words = flatten(value)
    # Text is hashed once, however many kinds it stands for.
    flattened = repr((type(value).__module__, type(value).__name__, kinds)), words
    if hasattr(value, "flattened"):
        value.flattened = flattened
    return flattened
