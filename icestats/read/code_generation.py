"""Python functions -> machine code that needs nothing of Python or numba when it runs: the only module that imports numba."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.compiler import Flags, compile_extra
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher, cpu_target
from numba.np.arrayobj import populate_array
from numba.np.numpy_support import from_dtype

from icestats.read.compiling import FLAG, INTEGER, NOTHING, RAISED

# Without numba's runtime nothing can be allocated, and arrays are not reference-counted: the atomic counting of every
# view took 30 times as long as the work itself. `_nrt` is numba's own option for that.
_OPTIONS = {
    "nopython": True,
    "error_model": "numpy",
    "_nrt": False,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
_WORD = ir.IntType(64)
_RESULTS = {types.none: NOTHING, types.int64: INTEGER, types.boolean: FLAG}


def build_callee(function: Callable[..., Any], *, inlined: bool) -> Any:
    """Return a function as numba compiles it where compiled ones call it."""
    return CPUDispatcher(function, targetoptions=_OPTIONS | {"forceinline": inlined})


@global_compiler_lock  # type: ignore[untyped-decorator]  # numba has no types
def generate_code(function: Callable[..., Any], arguments: tuple[Any, ...], name: str) -> bytes:
    """Compile a function for arguments like these into an object file.

    Parameters
    ----------
    function : callable
        What to compile, with all that it calls.
    arguments : tuple
        Of the kinds that `compiling.flatten` takes.
    name : str
        What the function is called in the object file: it takes the address of the arguments' words, overwrites the
        first with the result, and returns what the result is.

    Raises
    ------
    TypeError
        The function returns or calls what compiled functions cannot.
    """
    flags = Flags()
    cpu_target.options.parse_as_flags(flags, _OPTIONS)
    # The library is completed here, after the entry has been added.
    flags.no_compile = True
    context = cpu_target.target_context
    found = tuple(_find_type(argument) for argument in arguments)
    made = compile_extra(cpu_target.typing_context, context, function, found, None, flags, {})
    if made.fndesc.restype not in _RESULTS:
        raise TypeError(f"{function.__name__} returns {made.fndesc.restype}: expected an integer, a flag or None")
    made.library.add_ir_module(_build_entry(context, made.fndesc, name))
    made.library.finalize()
    _, _, (code, bitcode) = made.library.serialize_using_object_code()
    missing = [callee.name for callee in llvm.parse_bitcode(bitcode).functions if _is_foreign(callee)]
    if missing:
        raise TypeError(f"{function.__name__} calls {missing[0]}, which only numba has: compiled code cannot")
    return bytes(code)


def _is_foreign(function: Any) -> bool:
    return function.is_declaration and not function.name.startswith("llvm.")


def _find_type(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        return types.Array(from_dtype(argument.dtype), argument.ndim, "C")
    if isinstance(argument, tuple):
        return types.NamedTuple([_find_type(item) for item in argument], type(argument))
    return types.boolean if isinstance(argument, bool | np.bool_) else types.int64


def _build_entry(context: Any, function: Any, name: str) -> Any:
    """Build the function that takes words, and calls the compiled one by numba's convention."""
    module = context.create_module(name)
    entry = ir.Function(module, ir.FunctionType(_WORD, [_WORD.as_pointer()]), name)
    builder = ir.IRBuilder(entry.append_basic_block())
    callee_kind = context.call_conv.get_function_type(function.restype, function.argtypes)
    callee = ir.Function(module, callee_kind, function.llvm_func_name)
    words = _load_words(builder, entry.args[0])
    values = [_build_value(context, builder, kind, words) for kind in function.argtypes]
    status, result = context.call_conv.call_function(
        builder, callee, function.restype, function.argtypes, values, attrs=("noinline",)
    )
    with builder.if_then(status.is_error, likely=False):
        builder.ret(_WORD(RAISED))
    if function.restype is not types.none:
        builder.store(builder.zext(result, _WORD), entry.args[0])
    builder.ret(_WORD(_RESULTS[function.restype]))
    return module


def _load_words(builder: Any, start: Any) -> Iterator[Any]:
    index = 0
    while True:
        yield builder.load(builder.gep(start, [_WORD(index)]))
        index += 1


def _build_value(context: Any, builder: Any, kind: Any, words: Iterator[Any]) -> Any:
    """Build an argument from its words."""
    if isinstance(kind, types.Array):
        return _build_array(context, builder, kind, words)
    if isinstance(kind, types.BaseTuple):
        return context.make_tuple(builder, kind, [_build_value(context, builder, item, words) for item in kind])
    word = next(words)
    return builder.trunc(word, context.get_value_type(kind)) if kind is types.boolean else word


def _build_array(context: Any, builder: Any, kind: Any, words: Iterator[Any]) -> Any:
    item = context.get_data_type(kind.dtype)
    size = context.get_abi_sizeof(item)
    word = context.get_value_type(types.intp)
    address = builder.inttoptr(next(words), item.as_pointer())
    shape = [builder.trunc(next(words), word) for _ in range(kind.ndim)]
    strides = [word(size)]
    for extent in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], extent))
    array = context.make_array(kind)(context, builder)
    populate_array(array, address, shape, strides[: kind.ndim], word(size), None)
    return array._getvalue()
