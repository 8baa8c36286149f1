from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from icestats.errors import CallError
from icestats_widgets.reading.background import Background, explain_error


def test_only_the_newest_of_a_kind_is_delivered() -> None:
    """What was started earlier and ends later does not overwrite the newest."""
    background = Background()
    gate = threading.Event()
    delivered: list[str] = []

    def slow() -> str:
        gate.wait(30)
        return "old"

    background.run("column", slow, delivered.append, lambda error: delivered.append(str(error)))
    background.run("column", lambda: "new", delivered.append, lambda error: delivered.append(str(error)))
    background.run("other", lambda: "other", delivered.append, lambda error: delivered.append(str(error)))
    gate.set()
    assert background.wait(30)
    assert sorted(delivered) == ["new", "other"]


def test_a_failure_is_delivered_instead() -> None:
    """An error arrives where it can be shown; one that nobody expected is named."""
    background = Background()
    told: list[str] = []

    def fail() -> None:
        raise CallError("bins is 0: expected a whole number from 1")

    background.run("a", fail, lambda _: None, lambda error: told.append(explain_error(error)))
    assert background.wait(30)
    background.run("b", lambda: 1 // 0, lambda _: None, lambda error: told.append(explain_error(error)))
    assert background.wait(30)
    assert told == [
        "bins is 0: expected a whole number from 1",
        "unexpected ZeroDivisionError: integer division or modulo by zero",
    ]


@pytest.mark.parametrize("has_started", [False, True])
def test_an_interrupt_as_work_starts_leaves_nothing_to_wait_for(has_started: bool) -> None:
    """Whether the thread runs by then or not; what it finds is delivered."""
    background = Background()
    delivered: list[str] = []

    class Interrupted(threading.Thread):
        def start(self) -> None:
            if has_started:
                super().start()
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading, "Thread", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            background.run(
                "a", lambda: str(background.is_wanted()), delivered.append, lambda e: delivered.append(repr(e))
            )
    for thread in threading.enumerate():
        if thread.name == "icestats a":
            thread.join(30)
    assert background.wait(30)
    assert delivered == ["True"] * has_started


def test_waiting_ends_in_time() -> None:
    """Waiting says when something is still under way."""
    background = Background()
    gate = threading.Event()
    background.run("a", lambda: gate.wait(30), lambda _: None, lambda _: None)
    assert not background.wait(0.01)
    gate.set()
    assert background.wait(30)


def test_a_part_is_delivered_only_while_it_is_wanted() -> None:
    """Work hears that later work of its kind has been started, and what it has found so far is dropped."""
    background = Background()
    is_replaced, has_begun = threading.Event(), threading.Event()
    shown: list[str] = []
    wanted: list[bool] = []

    def slow() -> None:
        wanted.append(background.deliver_part(lambda: shown.append("first part")))
        has_begun.set()
        is_replaced.wait(30)
        wanted.append(background.deliver_part(lambda: shown.append("second part")))

    background.run("list", slow, lambda _: shown.append("old"), lambda _: None)
    assert has_begun.wait(30)
    background.run("list", lambda: None, lambda _: shown.append("new"), lambda _: None)
    is_replaced.set()
    assert background.wait(30)
    assert wanted == [True, False]
    assert sorted(shown) == ["first part", "new"]


def test_a_process_that_ends_meanwhile_ends_well() -> None:
    """Work that is inside DuckDB when Python ends is waited for, and its result dropped, without an abort."""
    code = """
import threading
import duckdb
from icestats_widgets.reading.background import Background

started = threading.Event()

def work():
    started.set()
    duckdb.execute("set enable_progress_bar = false")
    return duckdb.sql("select count(*) from range(200000000) t(a) where a % 7 = 3").fetchall()

Background().run("count", work, print, print)
started.wait()
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
