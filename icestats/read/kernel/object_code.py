"""Machine code in files, and loading it with LLVM alone.

It is kept in the user's cache folder, or in NUMBA_CACHE_DIR, in a folder for all that it depends on: the sources of the
kernel and of what compiles it, numba and its settings, LLVM, the processor. So it is never stale, whatever an installer
does to dates. Each file begins with a hash of its place and contents, without which it is not believed: damaged code
would end the process.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress
from ctypes import CFUNCTYPE, c_int64, c_void_p
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

import llvmlite
import llvmlite.binding as llvm
import numpy as np
from platformdirs import user_cache_path

from icestats.read.kernel.compiling import MachineCode

_HASH_SIZE = hashlib.sha256().digest_size
_FUNCTION = CFUNCTYPE(c_int64, c_void_p)


def name_code(function: Callable[..., Any], kinds: Hashable) -> str:
    """Return the name of a function's code for some kinds of arguments: of its file, and within it."""
    digest = hashlib.sha256(repr((function.__module__, kinds)).encode()).hexdigest()
    return f"{function.__name__}_{digest[:24]}"


def read_code(name: str) -> bytes | None:
    """Return the object file that is kept under a name; None where there is none, or it is damaged."""
    try:
        path = cache_folder() / name
        kept = path.read_bytes()
    except OSError:
        return None
    code = kept[_HASH_SIZE:]
    return code if kept[:_HASH_SIZE] == _hash(path, code) else None


def write_code(name: str, code: bytes) -> None:
    """Keep an object file where that is possible; whoever reads it finds all of it, or nothing."""
    with suppress(OSError):
        path = cache_folder() / name
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f"{name}.{uuid4().hex}")
        try:
            unfinished.write_bytes(_hash(path, code) + code)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)


def load_code(name: str, code: bytes) -> MachineCode:
    """Return the function of that name in an object file."""
    engine = _engine()
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return _FUNCTION(engine.get_function_address(name))


@cache
def cache_folder() -> Path:
    """Return the folder of machine code of this very kernel, compiler and processor.

    Raises
    ------
    OSError
        The sources are no files: there is none.
    """
    digest = hashlib.sha256()
    for part in _dependencies():
        digest.update(len(part).to_bytes(8, "little") + part)
    root = os.environ.get("NUMBA_CACHE_DIR")
    return (Path(root) if root else user_cache_path("icestats") / "numba") / digest.hexdigest()[:16]


def _dependencies() -> Iterator[bytes]:
    yield _numba_version()
    for text in (llvmlite.__version__, np.__version__, sys.implementation.cache_tag, sys.maxsize, *_target()):
        yield str(text).encode()
    for variable, value in sorted(os.environ.items()):
        if variable.startswith("NUMBA_") and variable != "NUMBA_CACHE_DIR":
            yield f"{variable}={value}".encode()
    here = Path(__file__)
    compiler = (here, here.with_name("compiling.py"), here.with_name("code_generation.py"))
    for source in (*compiler, *sorted(here.parent.glob("kernel*.py"))):
        yield source.read_bytes()


def _numba_version() -> bytes:
    # To ask numba is to import it, and importlib.metadata takes as long as all of the loading.
    spec = find_spec("numba")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("No module named 'numba'", name="numba")
    return Path(spec.submodule_search_locations[0], "_version.py").read_bytes()


@cache
def _target() -> tuple[str, str, str]:
    """Return LLVM's names of the platform, of the processor, and of what the processor can do."""
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


@cache
def _engine() -> Any:
    """Return what links object files into this process: one for all, as each takes a millisecond.

    Where two files define a function by the same name, for what calls it, it is the same function of the same source.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    triple, processor, features = _target()
    machine = llvm.Target.from_triple(triple).create_target_machine(
        cpu=processor, features=features, codemodel="jitdefault", jit=True
    )
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)


def _hash(path: Path, code: bytes) -> bytes:
    return hashlib.sha256(f"{path.parent.name}/{path.name}\n".encode() + code).digest()
