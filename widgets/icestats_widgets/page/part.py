"""What all parts of the explorer share: they follow the state, give blocks, and take what a person does."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import pyarrow as pa

from icestats.answers.text import printable
from icestats_widgets.page.blocks import Block, text_block
from icestats_widgets.page.grid import Grid
from icestats_widgets.reading.background import explain_error
from icestats_widgets.reading.question_coordinator import QuestionCoordinator
from icestats_widgets.state import ExplorerState

_logger = logging.getLogger(__name__)


class Part:
    """A part of the explorer.

    Parameters
    ----------
    state : ExplorerState
        What to show; the part is drawn again when one of `follows` changes.
    """

    name: ClassVar[str] = ""
    """The part's name in acts, in `ExplorerState.notes` and `ExplorerState.loading`."""
    title: ClassVar[str] = ""
    tab: ClassVar[str] = ""
    """The tab on which it stands."""
    is_beside: ClassVar[bool] = False
    """Whether it stands on top of the part that follows, both beside the part before."""
    follows: ClassVar[Sequence[str]] = ()
    """Traits of the state that the part shows."""
    hears: ClassVar[Sequence[str]] = ()
    """Names in the state's notes and loading that the part shows; by default its own."""

    def __init__(self, state: ExplorerState) -> None:
        self.state = state
        self.grids: dict[str, Grid] = {}
        """The part's grids by their id."""
        self._drawn_of: tuple[object, ...] = ()
        self.redraw: Callable[[], object] = lambda: None
        """Draws the part again; the explorer sets it."""
        self.send: Callable[[dict[str, Any]], object] = lambda _: None
        """Sends a message to the page; the explorer sets it."""
        self.build()

    def build(self) -> None:
        """Make what stays the same, such as grids."""

    def blocks(self) -> list[Block]:
        """Return what to show now."""
        raise NotImplementedError

    def caption(self) -> str:
        """Return the sentence below the title; on a second line what a person can do, which no saved picture says."""
        return ""

    def to_arrow(self) -> pa.Table | None:
        """Return what is shown as an Arrow table; None if there is nothing yet."""
        return None

    def code(self) -> str:
        """Return the Python line that gives what is shown; empty if there is none."""
        return ""

    def add_grid(self, grid_id: str, label: str, columns: Sequence[dict[str, Any]], **options: Any) -> Grid:
        """Make a `Grid`, and keep it, so that acts on it find it."""
        grid = self.grids[grid_id] = Grid(grid_id, label, columns, **options)
        return grid

    def has_new(self, *shown: object) -> bool:
        """Return whether these are other objects than at the last call; to compare what is in them would take long."""
        before, self._drawn_of = self._drawn_of, shown
        return len(before) != len(shown) or any(one is not other for one, other in zip(before, shown, strict=True))

    def width(self, figure_id: str, usual: int = 620) -> int:
        """Return the pixels that a figure has on the page."""
        width: int = self.state.widths.get(f"{self.name}.{figure_id}", usual)
        return width

    def act(self, verb: str, value: Any) -> None:
        """Do what a person asks for: the method `on_<verb>`, or what a grid of the part does."""
        grid_id, _, grid_verb = verb.partition(".")
        if grid_verb and grid_id in self.grids:
            answer = self.grids[grid_id].act(grid_verb, value if isinstance(value, dict) else {})
            if answer is None:
                self.redraw()
            else:
                self.send({**answer, "grid": f"{self.name}.{grid_id}"})
            return
        method = getattr(self, "on_" + verb.replace(".", "_"), None)
        if method is None:
            _logger.debug("%s has no %r", self.name, verb)
            return
        method(value)

    def document(self) -> dict[str, Any]:
        """Return the part as the page draws it. A part that cannot be drawn says why, and harms no other."""
        try:
            blocks, caption = self.blocks(), self.caption()
        except BaseException as error:
            # What it has drawn may be half of it.
            self._drawn_of = ()
            if not isinstance(error, Exception):
                raise
            _logger.debug("%s cannot be drawn", self.name, exc_info=True)
            blocks, caption = [text_block(explain_error(error), "bad")], ""
        return {
            "name": self.name, "title": self.title, "caption": printable(caption.replace("\n", " ")),
            "about": printable(caption.partition("\n")[0]), "is_busy": self.is_loading, "blocks": blocks,
            "code": self.code(),
        }  # fmt: skip

    @staticmethod
    def key_of(value: Any) -> str:
        """Return the key of the mark that a person chose; empty if there is none."""
        return str(value.get("key", "")) if isinstance(value, dict) else ""

    @staticmethod
    def number_of(key: str, prefix: str, count: int) -> int | None:
        """Return the number in a key, such as 3 of `c3`; None if it has none, or one that is not below a count."""
        number = key.removeprefix(prefix)
        is_one = key.startswith(prefix) and number.isdecimal() and int(number) < count
        return int(number) if is_one else None

    @property
    def note(self) -> str | None:
        """Why there is nothing to show, or None."""
        return next((text for name in self._names if (text := self.state.notes.get(name))), None)

    @property
    def is_loading(self) -> bool:
        """Whether the part is being read."""
        return any(name in self.state.loading for name in self._names)

    @property
    def _names(self) -> Sequence[str]:
        return self.hears or (self.name,)


class AskingPart(Part):
    """A part that starts plans, estimates and comparisons.

    Parameters
    ----------
    state : ExplorerState
        As for every part.
    questions : QuestionCoordinator
        What answers.
    """

    def __init__(self, state: ExplorerState, questions: QuestionCoordinator) -> None:
        self.questions = questions
        super().__init__(state)
