"""Compiled code: made once, kept, believed only where it is whole, and called only with what it was made for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import icestats

GATHER = """
import sys
import numpy as np
from icestats.read.kernel.kernel_rows import gather_bytes
out = np.zeros(5, np.uint8)
gather_bytes(np.arange(10, dtype=np.uint8), np.array([7, 0, 2]), np.array([2, -1, 3]), out)
print(out.tolist(), "numba" in sys.modules)
"""
COMPILED, LOADED = "[7, 8, 2, 3, 4] True\n", "[7, 8, 2, 3, 4] False\n"
PROBES = """
from typing import NamedTuple
import numpy as np
from icestats.read.kernel.compiling import argument, compiled, inlined

@argument
class Pair(NamedTuple):
    numbers: np.ndarray
    factor: int
    is_doubled: bool

@inlined
def scale(pair, number):
    return number * pair.factor * (2 if pair.is_doubled else 1)

@compiled
def total(pair, start):
    for i in range(pair.numbers.size):
        start += scale(pair, pair.numbers[i])
    return start

@compiled
def corner(array):
    return array.shape[0] * 1_000_000 + np.int64(array.flat[array.size - 1]) * 1000 + array.ndim

@compiled
def middle(array):
    return array[1, 2, 3]

@compiled
def is_less(one, other):
    return one < other

@compiled
def fill(array, value):
    array[:] = value

@compiled
def checked(number):
    assert number > 0
    return number

@compiled
def two(number):
    return number, number

@compiled
def seven():
    return 7
"""


def run(code: str, folder: Path, **environment: str) -> str:
    """What a process prints whose compiled code is in a folder; the test fails where the process does."""
    return subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder)} | environment,
        cwd=folder.parent,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout


def kept(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.fixture(scope="module")
def gathering(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a process has kept the one function that it has compiled."""
    folder = tmp_path_factory.mktemp("gathering")
    assert run(GATHER, folder) == COMPILED
    return folder


@pytest.fixture(scope="module")
def probes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a module of compiled functions, and what is kept of it."""
    folder = tmp_path_factory.mktemp("probes")
    (folder / "kernel_probes.py").write_text(PROBES)
    return folder


def probe(folder: Path, code: str) -> list[str]:
    path = os.pathsep.join([str(folder), *sys.path])
    return run(f"import numpy as np, sys\nfrom kernel_probes import *\n{code}", folder, PYTHONPATH=path).splitlines()


def test_compiled_code_outlives_the_process(gathering: Path) -> None:
    """A second process finds what the first has compiled, in NUMBA_CACHE_DIR, imports no numba, and adds nothing."""
    before = [(path, path.stat().st_mtime_ns) for path in kept(gathering)]
    assert run(GATHER, gathering) == LOADED
    assert [(path, path.stat().st_mtime_ns) for path in kept(gathering)] == before
    assert len(before) == 1


def flip_a_bit(code: bytes) -> bytes:
    return code[:1000] + bytes([code[1000] ^ 4]) + code[1001:]


@pytest.mark.parametrize("damage", [flip_a_bit, lambda code: code[:-100], lambda _: b"", lambda code: code[32:]])
def test_damaged_code_is_compiled_anew(gathering: Path, tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    """Code that is not what was kept is never run; the next process finds it whole."""
    folder = shutil.copytree(gathering, tmp_path / "copy")
    (path,) = kept(folder)
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert run(GATHER, folder) == COMPILED
    assert run(GATHER, folder) == LOADED


def test_code_of_another_function_is_not_believed(gathering: Path, probes: Path, tmp_path: Path) -> None:
    assert probe(probes, "print(seven())") == ["7"]
    folder = shutil.copytree(gathering, tmp_path / "copy")
    (path,) = kept(folder)
    (other,) = probes.rglob("seven_*")
    path.write_bytes(other.read_bytes())
    assert run(GATHER, folder) == COMPILED


def test_processes_may_compile_at_once(tmp_path: Path) -> None:
    """Each is right, and one whole file is left."""
    command = [sys.executable, "-c", GATHER]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    processes = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert all(process.communicate()[0] in (COMPILED, LOADED) for process in processes)
    assert len(kept(tmp_path)) == 1
    assert run(GATHER, tmp_path) == LOADED


def test_nothing_is_kept_where_nothing_can_be_written(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("no folder")
    assert run(GATHER, file) == COMPILED
    assert run(GATHER, file) == COMPILED


def test_code_for_another_processor_is_not_loaded(gathering: Path, tmp_path: Path) -> None:
    """Neither from its own folder, nor if it gets into that of this one."""
    folder = shutil.copytree(gathering, tmp_path / "copy")
    (own,) = kept(folder)
    assert run(GATHER, folder, NUMBA_CPU_NAME="generic") == COMPILED
    (other,) = set(kept(folder)) - {own}
    assert other.name == own.name
    own.write_bytes(other.read_bytes())
    assert run(GATHER, folder) == COMPILED


def test_code_of_other_sources_is_not_loaded(gathering: Path, tmp_path: Path) -> None:
    """What a function calls may lie in another module."""
    folder = shutil.copytree(gathering, tmp_path / "copy")
    package = Path(icestats.__file__).parent
    shutil.copytree(package, tmp_path / "other" / "icestats", ignore=shutil.ignore_patterns("__pycache__"))
    source = tmp_path / "other" / "icestats" / "read" / "kernel_primitives.py"
    line = "out[at + i] = data[start + i]"
    assert line in source.read_text()
    source.write_text(source.read_text().replace(line, f"{line} + 1"))
    path = os.pathsep.join([str(tmp_path / "other"), *sys.path])
    assert run(GATHER, folder, PYTHONPATH=path) == "[8, 9, 3, 4, 5] True\n"
    assert run(GATHER, folder) == LOADED


def test_arguments_of_other_kinds_run_other_code(probes: Path) -> None:
    """Every dtype and number of dimensions, now compiled, now loaded, gives the answer for these."""
    code = """
for kind in (np.int64, np.uint8, np.int16, np.float64):
    for shape in ((4,), (3, 4), (2, 3, 4)):
        print(corner(np.arange(np.prod(shape)).astype(kind).reshape(shape)))
print("numba" in sys.modules)
"""
    answers = [str(rows * 1_000_000 + last * 1000 + ndim) for rows, last, ndim in ((4, 3, 1), (3, 11, 2), (2, 23, 3))]
    assert probe(probes, code) == [*answers * 4, "True"]
    assert probe(probes, code) == [*answers * 4, "False"]


def test_results_are_integers_flags_and_none(probes: Path) -> None:
    code = """
pair = Pair(np.array([1, 2, 3]), 10, False)
print(total(pair, 5), total(pair._replace(is_doubled=True), np.int64(-5)), scale(pair, 4), seven())
print(is_less(1, 2), is_less(2, 1), is_less(np.True_, True), is_less(-2**63, 2**63 - 1))
array = np.zeros(3, np.uint8); print(fill(array, 9), array.tolist())
print(middle(np.arange(120).reshape(4, 5, 6)), total(Pair(np.zeros(0, np.int64), 1, True), -1))
"""
    assert probe(probes, code) == [
        "65 115 40 7",
        "True False False True",
        "None [9, 9, 9]",
        "45 -1",
    ]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("fill(np.zeros((4, 4), np.int64)[:, 1], 1)", "TypeError: compiled code takes arrays that are contiguous,"),
        ("fill(np.frombuffer(bytes(8), np.uint8), 1)", "TypeError: compiled code takes arrays that are contiguous,"),
        ("corner(np.frombuffer(bytearray(17), np.int64, 1, 1))", "TypeError: compiled code takes arrays"),
        ("corner(np.zeros(3, '>i8'))", "TypeError: compiled code takes arrays of numbers in this machine's byte order"),
        ("corner(np.zeros(3, 'c16'))", "TypeError: compiled code takes arrays of numbers in this machine's byte order"),
        ("is_less(1.5, 2)", "TypeError: compiled code takes arrays, integers, flags and named tuples of them, not 1.5"),
        ("is_less(1, None)", "TypeError: compiled code takes arrays, integers, flags and named tuples of them, not No"),
        ("is_less(1)", "TypeError: missing a required argument: 'other'"),
        ("is_less(2**63, 1)", "OverflowError: "),
        ("two(1)", "TypeError: two returns UniTuple(int64 x 2): expected an integer, a flag or None"),
        ("checked(-1)", "RuntimeError: checked raised an exception in compiled code"),
    ],
)
def test_what_compiled_code_cannot_do_is_refused(probes: Path, call: str, error: str) -> None:
    """In one line; and what the function can do, it still does."""
    code = f"""
try:
    {call}
except Exception as error:
    print(f"{{type(error).__name__}}: {{error}}")
print(checked(3))
"""
    first, *rest = probe(probes, code)
    assert first.startswith(error)
    assert rest == ["3"]


def test_a_copy_of_a_named_tuple_has_words_of_its_own(probes: Path) -> None:
    """Its arrays are others, at other places."""
    code = """
import copy, pickle
pair = Pair(np.array([1, 2, 3]), 1, False)
print(total(pair, 0))
copies = [copy.deepcopy(pair), pickle.loads(pickle.dumps(pair)), copy.copy(pair)]
pair.numbers[:] = 100
print(*[total(copied, 0) for copied in copies], total(pair, 0), type(copies[0]).__name__, copies[0].factor)
"""
    assert probe(probes, code) == ["6", "6 6 300 300 Pair 1"]


def test_threads_call_at_once(probes: Path) -> None:
    """Each has its own result, however many run, and although all make the first call at the same time."""
    code = """
from concurrent.futures import ThreadPoolExecutor
def work(number):
    pair = Pair(np.full(1000, number), 1, False)
    return {total(pair, 0) for _ in range(200)} == {1000 * number}
with ThreadPoolExecutor(8) as pool:
    print(all(pool.map(work, range(64))))
"""
    assert probe(probes, code) == ["True"]
