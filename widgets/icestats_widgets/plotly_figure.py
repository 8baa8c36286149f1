"""A plotly figure that uses the page's plotly JavaScript and can be replaced in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anywidget
import plotly.graph_objects as go
from plotly.io import to_json
from traitlets import Bool, Dict, Float, Int, List, Unicode

from icestats_widgets.plotly_bundle import find_bundle


class PlotlyFigure(anywidget.AnyWidget):
    """A plotly figure that another one can replace in place.

    The page sends back only what a person does with it. plotly's own FigureWidget also sends each hover and, after each
    change, everything that plotly has filled in.

    Parameters
    ----------
    figure : plotly.graph_objects.Figure
        What to show.
    label : str
        What a screen reader says.
    **traits
        Further traits.
    """

    _esm = Path(__file__).with_name("plotly_figure.js")

    label = Unicode().tag(sync=True)
    """What a screen reader says.

    Type: str. Default: empty.
    """

    picture = Unicode().tag(sync=True)
    """The figure as JSON.

    Type: str. Default: empty.
    """

    opacities = List(List(Float())).tag(sync=True)
    """Opacities of the bars of the first traces, which override the figure's; empty: the figure's own.

    Type: list of list of float. Default: empty.
    """

    places = List(Int()).tag(sync=True)
    """Places across and down that can be selected; empty if none can.

    Type: list of int. Default: empty.
    """

    is_calendar = Bool(False).tag(sync=True)
    """Whether a mark over several places across includes all places down.

    Type: bool. Default: False.
    """

    mark = Dict({"places": [], "number": 0}).tag(sync=True)
    """What is marked; the page shows it once it takes the newest brush into account.

    Type: dict of `places`, across from and to, down from and to, and `number`, the brush's number. Default: none.
    """

    _bundle_id = Unicode().tag(sync=True)

    def __init__(self, figure: go.Figure, label: str, **traits: Any) -> None:
        self._figure = figure
        self.on_point: Callable[[int, int, bool], object] | None = None
        """Called with the trace and the point that are clicked, and whether it looked marked."""
        self.on_brush: Callable[[list[float], int], object] | None = None
        """Called with the places that a person marked, in the form of `mark`, and the number of that brush."""
        self.on_shown: Callable[[], object] | None = None
        """Called when a browser has painted the figure."""
        # The page needs these when it opens the figure.
        first = {"label": label, "picture": _encode(figure), "_bundle_id": find_bundle().model_id}
        super().__init__(**first, **traits)
        self.on_msg(lambda _, message, __: self.receive(message))

    @property
    def data(self) -> Sequence[Any]:
        """The traces of the figure."""
        found: Sequence[Any] = self._figure.data
        return found

    @property
    def layout(self) -> Any:
        """The layout of the figure."""
        return self._figure.layout

    def show_figure(self, figure: go.Figure, label: str) -> None:
        """Replace this figure with another one."""
        self._figure = figure
        self.opacities = []
        self.picture = _encode(figure)
        self.label = label

    def receive(self, message: dict[str, Any]) -> None:
        """Handle messages from the browser: a point was clicked, or places were marked."""
        kind = message.get("kind")
        if kind == "point" and self.on_point is not None:
            self.on_point(int(message["trace"]), int(message["point"]), bool(message.get("is_marked")))
        elif kind == "shown" and self.on_shown is not None:
            self.on_shown()
        elif kind == "brush" and self.on_brush is not None:
            self.on_brush([float(place) for place in message["places"]], int(message["number"]))


def _encode(figure: go.Figure) -> str:
    text: str = to_json(figure, validate=False)
    return text
