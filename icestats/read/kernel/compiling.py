"""Functions that are compiled once a machine: later processes load the machine code, and never import numba.

They take arrays (contiguous in C order, aligned, writable), integers, flags, and named tuples of these; they return an
integer, a flag or None. A call flattens its arguments into 64-bit words, of an array its address and shape, and passes
on where the words are. `code_generation` makes the machine code that takes them, `object_code` keeps and loads it.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Iterable
from ctypes import addressof, c_char
from functools import cache, cached_property
from inspect import signature
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Class = TypeVar("Class", bound=type)
MachineCode = Callable[[int], int]
"""Takes the address of words, and releases the interpreter lock."""
Kinds = tuple[Any, ...]
"""Of what kinds arguments are: of an array dtype and dimensions, `int`, `bool`, a text for a named tuple."""

NOTHING, INTEGER, FLAG, RAISED = range(4)
"""What machine code returns: what its result is, which then is in the first word."""

_CHARACTERS: Any = c_char * 0
_lock = threading.RLock()


def compiled(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a function that releases the interpreter lock, and keep the result for later processes.

    What it calls and its constants are in modules named `kernel*`: by these sources `object_code` knows what is stale.
    """
    return cast("Callable[Parameters, Result]", CompiledFunction(function, inlined=False))


def inlined(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a function into each of its callers."""
    return cast("Callable[Parameters, Result]", CompiledFunction(function, inlined=True))


def argument(named_tuple: Class) -> Class:
    """Let a named tuple remember its words, which take longer to find than most calls."""
    members = {
        "__module__": named_tuple.__module__,
        "__doc__": named_tuple.__doc__,
        # A copy has arrays of its own.
        "__reduce__": lambda self: (type(self), tuple(self)),
        "flattened": None,
    }
    return cast("Class", type(named_tuple.__name__, (named_tuple,), members))


class CompiledFunction:
    """A function that runs as machine code, which is looked for, and made if need be, when it is first called."""

    def __init__(self, function: Callable[..., Any], *, inlined: bool) -> None:
        self.function = function
        self.inlined = inlined
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self._code: dict[Kinds, MachineCode] = {}

    def __call__(self, *arguments: Any) -> Any:
        """Run the machine code for arguments of these kinds."""
        kinds, words = flatten(arguments)
        code = self._code.get(kinds) or self._prepare(kinds, arguments)
        # Words of its own for each call, as many may run at a time; one at least, for the result.
        block = array("q", words or [0])
        result = code(block.buffer_info()[0])
        if result == NOTHING:
            return None
        if result == INTEGER:
            return block[0]
        if result == FLAG:
            return bool(block[0])
        raise RuntimeError(f"{self.__name__} raised an exception in compiled code, which cannot tell more")

    def load(self, kinds: Kinds) -> bool:
        """Load the machine code for arguments of these kinds, where it is kept; say whether it is loaded now."""
        from icestats.read.kernel.object_code import load_code, name_code, read_code

        with _lock:
            if kinds not in self._code:
                name = name_code(self.function, kinds)
                kept = read_code(name)
                if kept is None:
                    return False
                self._code[kinds] = load_code(name, kept)
            return True

    def _prepare(self, kinds: Kinds, arguments: tuple[Any, ...]) -> MachineCode:
        with _lock:
            signature(self.function).bind(*arguments)
            if not self.load(kinds):
                from icestats.read.kernel.code_generation import generate_code
                from icestats.read.kernel.object_code import load_code, name_code, write_code

                name = name_code(self.function, kinds)
                made = generate_code(self.function, arguments, name)
                write_code(name, made)
                self._code[kinds] = load_code(name, made)
            return self._code[kinds]

    @property
    def _numba_type_(self) -> Any:
        """What numba asks an object for that a function names: here, what is to be called."""
        return self._callee._numba_type_

    @cached_property
    def _callee(self) -> Any:
        from icestats.read.kernel.code_generation import build_callee

        return build_callee(self.function, inlined=self.inlined)


class _ForeignCall:
    """What compiled code calls foreign functions by."""

    @cached_property
    def _numba_type_(self) -> Any:
        from icestats.read.kernel.code_generation import build_foreign_call

        return build_foreign_call()


call_address = cast("Callable[..., int]", _ForeignCall())
"""In compiled code: call a C function, given by its address, with six words; it returns an `int`."""


def is_kept(function: Callable[..., Any], *arguments: Any) -> bool:
    """Say whether a compiled function runs with such arguments without being compiled first."""
    if not isinstance(function, CompiledFunction):
        raise TypeError(f"{function!r:.80} is not compiled")
    kinds, _ = flatten(arguments)
    return function.load(kinds)


def flatten(values: Iterable[Any]) -> tuple[Kinds, list[int]]:
    """Return of what kinds arguments are, and their words.

    Raises
    ------
    TypeError
        Compiled code does not take one of them.
    """
    kinds: list[Any] = []
    words: list[int] = []
    for value in values:
        kind = type(value)
        if kind is np.ndarray:
            if not value.flags.carray:
                raise TypeError("compiled code takes arrays that are contiguous, aligned and writable: copy this one")
            kinds.append(value.dtype)
            kinds.append(value.ndim)
            words.append(addressof(_CHARACTERS.from_buffer(value)))
            words += value.shape
        elif kind is int or kind is bool:
            kinds.append(kind)
            words.append(value)
        elif isinstance(value, tuple):
            name, more = getattr(value, "flattened", None) or _flatten_tuple(value)
            kinds.append(name)
            words += more
        elif isinstance(value, np.integer | np.bool_):
            kinds.append(bool if kind is np.bool_ else int)
            words.append(int(value))
        else:
            raise TypeError(f"compiled code takes arrays, integers, flags and named tuples of them, not {value!r:.50}")
    return tuple(kinds), words


def _flatten_tuple(value: Any) -> tuple[str, list[int]]:
    kinds, words = flatten(value)
    flattened = _name_kinds(value.__class__, kinds), words
    if hasattr(value, "flattened"):
        value.flattened = flattened
    return flattened


@cache
def _name_kinds(kind: type, kinds: Kinds) -> str:
    """Return a text for the kinds in a named tuple, whose hash Python finds once only."""
    return repr((kind.__module__, kind.__name__, kinds))
