"""The fuzzed readers: whole inputs are read, what libFuzzer finds is kept, and a crash shows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.__main__ import CORPUS, run
from tests.fuzz.fuzz_targets import TARGETS

ROOT = Path(__file__).parents[2]
CRASH = """
import os
from tests.fuzz import __main__, fuzz_targets
crash = lambda data: os.abort() if data[:1] == b"C" else None
fuzz_targets.TARGETS["theta"] = fuzz_targets.FuzzTarget(crash, (), lambda: iter([b"ABCD"]))
__main__.fuzz("theta")
"""


@pytest.mark.parametrize("name", TARGETS)
def test_whole_inputs_are_read(name: str):
    read = [TARGETS[name].read(data) for data in TARGETS[name].inputs()]
    assert read


@pytest.mark.skipif(sys.platform != "linux", reason="libFuzzer for Python is there for Linux")
def test_what_is_found_is_kept_for_the_next_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    assert run("theta", 1)
    assert len(list((tmp_path / CORPUS / "theta").iterdir())) > len(list(TARGETS["theta"].inputs()))


@pytest.mark.skipif(sys.platform != "linux", reason="libFuzzer for Python is there for Linux")
def test_a_crash_shows_and_leaves_what_broke(tmp_path: Path):
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "whole").write_bytes(b"ABCD")
    command = [sys.executable, "-c", CRASH, "-max_total_time=60", f"-artifact_prefix={tmp_path}/", tmp_path / "corpus"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    assert done.returncode != 0
    (broken,) = tmp_path.glob("crash-*")
    assert broken.read_bytes()[:1] == b"C"
