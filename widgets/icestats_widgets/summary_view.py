"""The strip of totals."""

from __future__ import annotations

import ipywidgets
import pyarrow as pa

from icestats.answers.markup import element
from icestats.table.overview import Overview, build_figures, describe_snapshot
from icestats_widgets.view import View


class SummaryView(View):
    """The table's totals, from the manifest list and metadata.json."""

    name = "summary"
    follows = ("overview", "table")
    hears = ("overview",)

    def build(self) -> None:
        """Make the permanent widgets."""
        self.body.layout.min_height = "auto"

    def draw(self) -> None:
        """Show the figures."""
        table = self.state.table
        self.heading.value = element("h3", table.name, title=table.metadata.location)
        overview = self.state.overview
        if overview is None:
            self.show_note(self.state.notes.get("overview", "The manifest list has not been read."))
            return
        self.say(describe_snapshot(overview))
        self.body.children = [ipywidgets.HTML(render_summary(overview))]

    def to_arrow(self) -> pa.Table | None:
        """Return the figures: `label` and `text`, one row per figure."""
        overview = self.state.overview
        if overview is None:
            return None
        return pa.table(dict(zip(("label", "text"), zip(*build_figures(overview), strict=True), strict=True)))

    def code(self) -> str:
        """Return the Python line that gives the figures."""
        return "table.overview()"


def render_summary(overview: Overview) -> str:
    """Return the figures as HTML, with text from the table escaped."""
    figures = (element("div", element("span", label), element("b", text)) for label, text in build_figures(overview))
    return element("div", *figures, class_="icestats-figures")
