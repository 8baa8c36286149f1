"""Machine code that is kept in files, and loaded by LLVM alone.

Code is kept in the user's cache folder, or in NUMBA_CACHE_DIR, in a folder of its own for all that it depends on: the
sources of the kernel and of what compiles it, numba, LLVM, the processor, numba's settings. So it is never stale. Each
file begins with a hash of the rest and of its name, without which it is not believed: damaged code would end the process.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from ctypes import CFUNCTYPE, c_int64, c_void_p
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from platformdirs import user_cache_path

NativeFunction = Callable[[int], int]

_HASH_SIZE = hashlib.sha256().digest_size
_SOURCES = ("kernel*.py", "compiling.py", "code_generation.py", "object_code.py")
_PROTOTYPE = CFUNCTYPE(c_int64, c_void_p)


def read_code(name: str) -> bytes | None:
    """Return the machine code that is kept under a name; None where there is none, or it is damaged."""
    try:
        kept = (cache_folder() / name).read_bytes()
    except OSError:
        return None
    code = kept[_HASH_SIZE:]
    return code if kept[:_HASH_SIZE] == _hash(name, code) else None


def write_code(name: str, code: bytes) -> None:
    """Keep machine code under a name, where that is possible: another process sees all of it or nothing."""
    folder = cache_folder()
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = folder / f"{name}.{uuid4().hex}"
        try:
            unfinished.write_bytes(_hash(name, code) + code)
            unfinished.replace(folder / name)
        except OSError:
            unfinished.unlink(missing_ok=True)


def load_code(name: str, code: bytes) -> NativeFunction:
    """Return the function of a name in machine code, which takes the address of words and releases the interpreter lock."""
    import llvmlite.binding as llvm

    engine = _engine()
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return _PROTOTYPE(engine.get_function_address(name))


@cache
def cache_folder() -> Path:
    """Return the folder of machine code for this very kernel, compiler and processor."""
    digest = hashlib.sha256()
    for part in _dependencies():
        digest.update(len(part).to_bytes(8, "little") + part)
    root = os.environ.get("NUMBA_CACHE_DIR")
    return (Path(root) if root else user_cache_path("icestats") / "numba") / digest.hexdigest()[:16]


def _dependencies() -> Iterator[bytes]:
    import llvmlite

    here = Path(__file__).parent
    for pattern in _SOURCES:
        yield from (source.read_bytes() for source in sorted(here.glob(pattern)))
    yield _numba_version()
    for text in (llvmlite.__version__, np.__version__, sys.implementation.cache_tag, *_target()):
        yield str(text).encode()
    for variable, value in sorted(os.environ.items()):
        if variable.startswith("NUMBA_") and variable != "NUMBA_CACHE_DIR":
            yield f"{variable}={value}".encode()


def _numba_version() -> bytes:
    # To ask numba would be to import it, and importlib.metadata takes as long as loading the code.
    spec = find_spec("numba")
    folders = spec.submodule_search_locations if spec else None
    return Path(folders[0], "_version.py").read_bytes() if folders else b""


@cache
def _target() -> tuple[str, str, str]:
    """Return LLVM's name of the platform, of the processor and of what the processor can do."""
    import llvmlite.binding as llvm

    return llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


@cache
def _engine() -> Any:
    """Return what links machine code into this process; one for all, as each of its own would take a millisecond."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    triple, processor, features = _target()
    machine = llvm.Target.from_triple(triple).create_target_machine(
        cpu=processor, features=features, codemodel="jitdefault", jit=True
    )
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)


def _hash(name: str, code: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\0" + code).digest()
