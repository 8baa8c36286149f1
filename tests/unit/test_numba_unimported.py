"""Numba is imported to compile, and for nothing else: where code is kept, or not compiled yet, reading does without."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa

import icestats
from benchmarks.generated_table import Shape, generate


def test_importing_the_kernel_imports_neither_numba_nor_llvm() -> None:
    modules = "kernel, kernel_bounds, kernel_decode, kernel_groups, kernel_merge, kernel_output, kernel_rows"
    code = f"import sys; from icestats.read import {modules}; print({{'numba', 'llvmlite'}} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"


def test_a_table_is_read_without_numba(tmp_path: Path) -> None:
    """Once its kernels are kept, a process answers everything from them, and the same."""
    location = str(generate(tmp_path, Shape(3, 60, 2, 12)) / "metadata" / "v1.metadata.json")
    code = f"""
import sys
import icestats
import pyarrow as pa
table = icestats.load({location!r})
for name in ("manifests", "partitions", "columns", "files"):
    found = getattr(table, name)()
    with pa.ipc.new_file(f"{tmp_path}/{{name}}", found.schema) as out:
        out.write(found)
print("numba" in sys.modules)
"""
    environment = os.environ | {"ICESTATS_CACHE": "off"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    assert subprocess.check_output([sys.executable, "-c", code], env=environment, text=True) == "False\n"
    table = icestats.load(location)
    for name in ("manifests", "partitions", "columns", "files"):
        with pa.ipc.open_file(tmp_path / name) as found:
            assert found.read_all().equals(getattr(table, name)())


def test_a_first_look_at_a_table_compiles_nothing(small_table, tmp_path):
    """Where the kernel is not compiled yet, the list is read without it, and without numba."""
    code = (
        "import sys, icestats\n"
        "table = icestats.load(sys.argv[1])\n"
        "print(table.manifest_files().num_rows, 'numba' in sys.modules, 'fastavro' in sys.modules)\n"
        "if sys.argv[2] == 'used':\n"
        "    table.files()\n"
    )
    run = [sys.executable, "-c", code, small_table.metadata_location]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    for use, expected in (("used", "False True"), ("again", "False False")):
        done = subprocess.run([*run, use], env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.split(maxsplit=1)[1].strip() == expected
