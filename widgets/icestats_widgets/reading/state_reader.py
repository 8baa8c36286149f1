"""Reads in the background what belongs to traits of the state, and says what is being read and what failed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from icestats.table.table import Table
from icestats_widgets.reading.background import Background, explain_error
from icestats_widgets.state import ExplorerState


class StateReader:
    """Puts what is read into the state, under the name of its trait.

    Parameters
    ----------
    state : ExplorerState
        What is shown and chosen.
    background : Background
        Where the work runs.
    """

    def __init__(self, state: ExplorerState, background: Background) -> None:
        self._state = state
        self._background = background

    def start(self, part: str, work: Callable[[], Any]) -> None:
        """Read what belongs to a trait of the state, and put it there; what fails leaves what is there, with a note."""
        self._state.set_loading(part, loading=True)
        self._background.run(part, work, partial(self._show, part), partial(self._excuse, part))

    def drop(self, part: str) -> None:
        """Take out what belongs to a trait of the state; what is being read of it is not put there any more."""
        self._background.drop(part)
        # At once: what is read next may fail, and would leave it there.
        self._show(part, None)

    def _show(self, part: str, found: Any) -> None:
        setattr(self._state, part, found)
        self._state.set_note(part, None)
        self._state.set_loading(part, loading=False)

    def _excuse(self, part: str, error: Exception) -> None:
        self._state.set_note(part, explain_error(error))
        self._state.set_loading(part, loading=False)


def read_anew(table: Table) -> Table:
    """Return the table as it is now, with what is read first: where it is shown, acts of the page wait."""
    found = table.refresh()
    with suppress(Exception):
        found.overview()
    return found
