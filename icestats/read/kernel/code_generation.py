"""Python functions -> machine code that runs without Python and numba. No other module imports numba."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numba.core.compiler
import numba.core.types
import numba.extending
import numba.np.arrayobj
import numpy as np
from llvmlite import ir
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher, cpu_target
from numba.np.numpy_support import from_dtype

from icestats.read.kernel.compiling import FLAG, INTEGER, NOTHING, RAISED

# numba has no types.
_COMPILER: Any = numba.core.compiler
_TYPES: Any = numba.core.types
_ARRAYS: Any = numba.np.arrayobj
_EXTENDING: Any = numba.extending
_TARGET: Any = cpu_target

# Without numba's runtime nothing can be allocated, and arrays are not reference-counted: the atomic counting of every
# view took 30 times as long as the work itself. `_nrt` is numba's own option for that.
_OPTIONS = {
    "nopython": True,
    "error_model": "numpy",
    "_nrt": False,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
_WORD, _INT = ir.IntType(64), ir.IntType(32)
_RESULTS = {_TYPES.none: NOTHING, _TYPES.int64: INTEGER, _TYPES.boolean: FLAG}


def build_callee(function: Callable[..., Any], *, inlined: bool) -> Any:
    """Return a function as numba compiles it where compiled ones call it."""
    return CPUDispatcher(function, targetoptions=_OPTIONS | {"forceinline": inlined})


@cache
def build_foreign_call() -> Any:
    """Return numba's type of `compiling.call_address`."""

    def call_address(_: Any, function: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any) -> Any:
        def build(_: Any, builder: Any, __: Any, values: Any) -> Any:
            kind = ir.FunctionType(_INT, [_WORD] * 6)
            result = builder.call(builder.inttoptr(values[0], kind.as_pointer()), values[1:])
            return builder.sext(result, _WORD)

        return _TYPES.int64(function, a, b, c, d, e, f), build

    made = _EXTENDING.intrinsic(call_address)
    _TARGET.typing_context.refresh()
    return _TARGET.typing_context.resolve_value_type(made)


def generate_code(function: Callable[..., Any], arguments: tuple[Any, ...], name: str) -> bytes:
    """Compile a function, and all that it calls, into an object file.

    Parameters
    ----------
    function : callable
        What to compile.
    arguments : tuple
        Arguments of the kinds to compile it for, of those that `compiling.flatten` takes.
    name : str
        The name of the function in the object file. It takes the address of the words of arguments, overwrites the
        first with the result, and returns what that is.

    Raises
    ------
    TypeError
        What it takes, returns or calls is nothing for a process without numba.
    """
    with global_compiler_lock:
        kinds = tuple(_find_type(argument) for argument in arguments)
        flags = _COMPILER.Flags()
        _TARGET.options.parse_as_flags(flags, _OPTIONS)
        # The code is not finished until `_build_entry` has been added.
        flags.no_compile = True
        context = _TARGET.target_context
        made = _COMPILER.compile_extra(_TARGET.typing_context, context, function, kinds, None, flags, {})
        if _TYPES.unliteral(made.fndesc.restype) not in _RESULTS:
            raise TypeError(f"{function.__name__} returns {made.fndesc.restype}: expected an integer, a flag or None")
        made.library.add_ir_module(_build_entry(context, made.fndesc, name))
        made.library.finalize()
        _, _, (code, bitcode) = made.library.serialize_using_object_code()
    foreign = [callee.name for callee in llvm.parse_bitcode(bitcode).functions if _is_foreign(callee)]
    if foreign:
        raise TypeError(f"{function.__name__} calls {foreign[0]} of numba: what it does has to be done without")
    return bytes(code)


def _is_foreign(function: Any) -> bool:
    return function.is_declaration and not function.name.startswith("llvm.")


def _find_type(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        if argument.dtype.kind not in "iufb" or not argument.dtype.isnative:
            raise TypeError(f"compiled code takes arrays of numbers in this machine's byte order, not {argument.dtype}")
        return _TYPES.Array(from_dtype(argument.dtype), argument.ndim, "C")
    if isinstance(argument, tuple):
        return _TYPES.NamedTuple([_find_type(item) for item in argument], type(argument))
    return _TYPES.boolean if isinstance(argument, bool | np.bool_) else _TYPES.int64


def _build_entry(context: Any, function: Any, name: str) -> Any:
    """Build the function that takes words, and calls the compiled one as numba's functions call each other."""
    module = context.create_module(name)
    entry = ir.Function(module, ir.FunctionType(_WORD, [_WORD.as_pointer()]), name)
    builder = ir.IRBuilder(entry.append_basic_block())
    convention = context.call_conv
    callee_type = convention.get_function_type(function.restype, function.argtypes)
    callee = ir.Function(module, callee_type, function.llvm_func_name)
    words = _load_words(builder, entry.args[0])
    values = [_build_value(context, builder, kind, words) for kind in function.argtypes]
    status, result = convention.call_function(
        builder, callee, function.restype, function.argtypes, values, attrs=("noinline",)
    )
    with builder.if_then(status.is_error, likely=False):
        builder.ret(_WORD(RAISED))
    returned = _RESULTS[_TYPES.unliteral(function.restype)]
    if returned != NOTHING:
        builder.store(builder.zext(result, _WORD), entry.args[0])
    builder.ret(_WORD(returned))
    return module


def _load_words(builder: Any, start: Any) -> Iterator[Any]:
    index = 0
    while True:
        yield builder.load(builder.gep(start, [_WORD(index)]))
        index += 1


def _build_value(context: Any, builder: Any, kind: Any, words: Iterator[Any]) -> Any:
    """Build an argument from the next words."""
    if isinstance(kind, _TYPES.Array):
        return _build_array(context, builder, kind, words)
    if isinstance(kind, _TYPES.BaseTuple):
        return context.make_tuple(builder, kind, [_build_value(context, builder, item, words) for item in kind])
    return builder.trunc(next(words), context.get_value_type(kind))


def _build_array(context: Any, builder: Any, kind: Any, words: Iterator[Any]) -> Any:
    item = context.get_data_type(kind.dtype)
    extent = context.get_value_type(_TYPES.intp)
    address = builder.inttoptr(next(words), item.as_pointer())
    shape = [builder.trunc(next(words), extent) for _ in range(kind.ndim)]
    size = extent(context.get_abi_sizeof(item))
    strides = [size]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    array = context.make_array(kind)(context, builder)
    _ARRAYS.populate_array(array, address, shape, strides[: kind.ndim], size, None)
    return array._getvalue()
