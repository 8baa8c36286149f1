"""plotly's FigureWidget, which finds its JavaScript in the page and is replaced in place."""

from __future__ import annotations

import importlib
import sys
from copy import deepcopy
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go
from traitlets import Dict, Float, Int, List, Unicode

from icestats_widgets.plotly_bundle import find_bundle

_HERE = Path(__file__).parent
_CONFIG = {"responsive": True, "displayModeBar": False, "displaylogo": False, "typesetMath": False, "showTips": False}


class _ImportedWhenUsed(ModuleType):
    """Stands in for a module until something is asked of it."""

    def __getattr__(self, name: str) -> Any:
        self.step_aside()
        return getattr(importlib.import_module(self.__name__), name)

    def step_aside(self) -> None:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]


def _import_figure_widget() -> Any:
    # plotly imports nbformat to look at its version in `show()`. Where jsonschema has its format checkers, that
    # import builds a grammar for well over a second.
    if "nbformat" in sys.modules:
        return go.FigureWidget
    stand_in = sys.modules["nbformat"] = _ImportedWhenUsed("nbformat")
    try:
        return go.FigureWidget
    finally:
        stand_in.step_aside()


if TYPE_CHECKING:
    from plotly.graph_objects import FigureWidget as _FigureWidget
else:
    _FigureWidget = _import_figure_widget()


class PlotlyFigure(_FigureWidget):
    """A plotly figure that can be replaced in place by another one of the same traces.

    Parameters
    ----------
    figure : plotly.graph_objects.Figure
        What to show.
    label : str
        What a screen reader says.
    """

    _esm = _HERE / "plotly_figure.js"

    label = Unicode().tag(sync=True)
    """What a screen reader says.

    Type: str. Default: empty.
    """

    places = List(Int()).tag(sync=True)
    """Places across and down that can be marked; empty where nothing can.

    Type: list of int. Default: empty.
    """

    mark = List(Float()).tag(sync=True)
    """The places that are marked, across from and to, down from and to.

    Type: list of float. Default: empty.
    """

    brush = Dict().tag(sync=True)
    """What a person has marked: `x` and `y`, each from and to, or `clear`; and a number, so that no two are equal.

    Type: dict. Default: empty.
    """

    _bundle_id = Unicode().tag(sync=True)

    def __init__(self, figure: go.Figure, label: str) -> None:
        super().__init__(figure)
        self._config = _CONFIG
        self.label = label

    # The front end needs these when it opens the figure, so they are set before the comm is.
    def open(self) -> None:
        """Send the figure to the front end."""
        self._bundle_id = find_bundle().model_id
        super().open()

    def can_show(self, figure: go.Figure) -> bool:
        """Return whether `show_figure` can show that one: the same kinds of traces in the same order."""
        return [trace.type for trace in self.data] == [trace.type for trace in figure.data]

    def show_figure(self, figure: go.Figure) -> None:
        """Show another figure in the place of this one, in one message.

        Parameters
        ----------
        figure : plotly.graph_objects.Figure
            One that `can_show` says yes to.
        """
        with self.batch_update():
            for shown, wanted in zip(self.data, figure.data, strict=True):
                shown.update(wanted.to_plotly_json(), overwrite=True)
            self.update_layout(figure.layout.to_plotly_json(), overwrite=True)
        # A front end that is still loading plotly has missed the message: it starts from these.
        self._widget_layout = deepcopy(self._layout_obj._props)
        self._widget_data = deepcopy(self._data)
