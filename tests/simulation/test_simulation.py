"""Seeds of the simulation: none breaks a rule, and each does the same every time."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import numba
import pytest

from tests.simulation.__main__ import replay
from tests.simulation.environment import controlled
from tests.simulation.simulation import run_seed
from tests.simulation.turns import Turns

CHUNK = 20


@pytest.mark.parametrize("first", range(0, 200, CHUNK))
def test_no_seed_breaks_a_rule(first):
    broken = [outcome for seed in range(first, first + CHUNK) if (outcome := run_seed(seed)).violations]
    said = [f"seed {outcome.seed}: {outcome.violations[0]}\n  {replay(outcome.seed)}" for outcome in broken]
    assert not broken, "\n".join(said)


def test_a_seed_is_the_same_each_time_whatever_the_order_of_hashes():
    code = "from tests.simulation.simulation import run_seed; print([run_seed(s).trace_hash for s in range(8)])"
    hashes = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
            timeout=600,
        ).stdout
        for seed in ("1", "2")
    ]
    assert hashes[0].count(",") == 7
    assert hashes[0] == hashes[1]


def test_code_that_is_compiled_meanwhile_changes_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    compiled = numba.njit(cache=True)(lambda number: number + 1)
    turns = Turns(0)
    with controlled(turns):
        assert compiled(1) == 2
    assert list(tmp_path.rglob("*.nbc"))
    assert turns.random.getstate() == Turns(0).random.getstate()


def test_other_threads_keep_their_own_time():
    """py4j's among them, which sleeps for as long as the process lives."""
    ended, errors = threading.Event(), []

    def wait():
        try:
            while not ended.is_set():
                time.sleep(0.001)
        except BaseException as error:  # noqa: BLE001 - whatever it is
            errors.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    outcome = run_seed(0)
    ended.set()
    thread.join()
    assert (errors, outcome.trace_hash) == ([], run_seed(0).trace_hash)
