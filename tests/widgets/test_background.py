from __future__ import annotations

import threading

from icestats.errors import CallError
from icestats_widgets.background import Background, explain_error


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


def test_waiting_ends_in_time() -> None:
    """Waiting says when something is still under way."""
    background = Background()
    gate = threading.Event()
    background.run("a", lambda: gate.wait(30), lambda _: None, lambda _: None)
    assert not background.wait(0.01)
    gate.set()
    assert background.wait(30)
