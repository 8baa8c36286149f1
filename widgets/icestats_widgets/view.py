"""What all parts of the explorer share: a heading, a note, and a body that follows the state."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import ipywidgets
import pyarrow as pa

from icestats.answers.markup import escape_text
from icestats_widgets.background import explain_error
from icestats_widgets.state import ExplorerState

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from icestats_widgets.plotly_figure import PlotlyFigure

_logger = logging.getLogger(__name__)


class View(ipywidgets.VBox):
    """A part of the explorer; it can be shown on its own.

    Parameters
    ----------
    state : ExplorerState
        What to show; the view redraws when one of `follows` changes.
    """

    name = ""
    """The part's name in `ExplorerState.notes` and `ExplorerState.loading`."""
    title = ""
    follows: Sequence[str] = ()
    """Traits of the state that the view draws."""
    hears: Sequence[str] = ()
    """Parts whose notes and loading the view shows; by default its own."""

    def __init__(self, state: ExplorerState) -> None:
        self.state = state
        self._drawing = threading.RLock()
        self._figure: PlotlyFigure | None = None
        self.heading = ipywidgets.HTML(f"<h4>{escape_text(self.title)}</h4>")
        self.caption = ipywidgets.HTML()
        self.caption.add_class("icestats-caption")
        self.controls = ipywidgets.HBox()
        self.controls.add_class("icestats-controls")
        self.controls.layout.display = "none"
        self.body = ipywidgets.VBox()
        self.body.add_class("icestats-body")
        super().__init__([self.heading, self.controls, self.caption, self.body])
        self.add_class("icestats-part")
        self.add_class(f"icestats-{self.name}")
        self.build()
        state.observe(lambda _: self.redraw(), list(self.follows))
        state.observe(self._hear, ["notes", "loading"])
        self.redraw()

    def build(self) -> None:
        """Make the permanent widgets."""

    def draw(self) -> None:
        """Show what the state says."""
        raise NotImplementedError

    def to_arrow(self) -> pa.Table | None:
        """Return what is shown as an Arrow table; None if there is nothing yet."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """Return what is shown as a pandas data frame; None if there is nothing yet."""
        found = self.to_arrow()
        return None if found is None else found.to_pandas()

    def code(self) -> str:
        """Return the Python line that gives what is shown."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Draw, and show the error if that fails: a broken part does not affect the others."""
        with self._drawing:
            try:
                self.draw()
            except Exception as error:
                _logger.debug("%s cannot be drawn", self.name, exc_info=True)
                self.show_note(explain_error(error))

    def _hear(self, change: Any) -> None:
        for part in self.hears or (self.name,):
            if change.name == "notes" and change.old.get(part) == change.new.get(part):
                continue
            if change.name == "loading" and (part in change.old) == (part in change.new):
                continue
            self.redraw()
            return

    def say(self, text: str) -> None:
        """Set the line under the heading."""
        self.caption.value = escape_text(text)

    def show_note(self, text: str, *, is_error: bool = True) -> None:
        """Show a sentence instead of the body."""
        kind = "icestats-error" if is_error else "icestats-empty"
        note = f"<div class='{kind}' role='{'alert' if is_error else 'status'}'>{escape_text(text)}</div>"
        if len(self.body.children) == 1 and getattr(self.body.children[0], "value", None) == note:
            return
        self.body.children = [ipywidgets.HTML(note)]

    def show_figure(self, figure: go.Figure, label: str) -> None:
        """Show a figure, replacing the previous one in place if possible."""
        from icestats_widgets.plotly_figure import PlotlyFigure

        if self.figure is not None:
            self.figure.show_figure(figure, label)
            return
        if self._figure is not None:
            self._figure.close()
        self._figure = PlotlyFigure(figure, label)
        self.body.children = [self._figure]

    @property
    def figure(self) -> PlotlyFigure | None:
        """The figure that is shown; None if there is none."""
        return self._figure if self._figure in self.body.children else None

    def set_controls(self, *controls: ipywidgets.Widget) -> None:
        """Show a line of controls under the heading."""
        self.controls.children = controls
        self.controls.layout.display = None

    @property
    def note(self) -> str | None:
        """Why there is nothing to show, or None."""
        text: str | None = self.state.notes.get(self.name)
        return text

    @property
    def is_loading(self) -> bool:
        """Whether the part is being read."""
        return self.name in self.state.loading
