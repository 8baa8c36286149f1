"""The distribution of the selected column."""

from __future__ import annotations

import ipywidgets
import pyarrow as pa
from traitlets import link

from icestats.answers.markup import escape_text
from icestats.answers.text import counted, render_count
from icestats.iceberg.metadata import Snapshot, TableMetadata
from icestats.iceberg.types import parse_type
from icestats.stats.histogram import UPPER_IS_CUT
from icestats_widgets.axis import brief_label
from icestats_widgets.histogram_figure import build_histogram_figure
from icestats_widgets.histogram_part import HistogramPart
from icestats_widgets.state import KINDS
from icestats_widgets.view import View

_SHOWN_RANKS = {0.0: "min", 0.05: "5 %", 0.25: "25 %", 0.5: "median", 0.75: "75 %", 0.95: "95 %", 1.0: "max"}


class HistogramView(View):
    """A column's histogram from its committed KLL sketch, without touching data files."""

    name = "histogram"
    title = "Distribution"
    follows = ("histogram", "column", "selection")

    def build(self) -> None:
        """Make the permanent widgets."""
        self.kind = kind = ipywidgets.ToggleButtons(
            options=KINDS, tooltips=["Bins of equal width", "Bins of equal count"]
        )
        bins = ipywidgets.BoundedIntText(min=5, max=200, step=5, description="bins")
        self.whole = whole = ipywidgets.Checkbox(description="include far tails", indent=False)
        link((self.state, "kind"), (kind, "value"))
        link((self.state, "bins"), (bins, "value"))
        link((self.state, "whole_range"), (whole, "value"))
        self.set_controls(kind, bins, whole)
        self._shown: HistogramPart | None = None

    def draw(self) -> None:
        """Show the histogram."""
        part = self.state.histogram
        column = self.state.column
        self.heading.value = f"<h4>Distribution{f' of {escape_text(column)}' if column else ''}</h4>"
        if column is None:
            self.show_note("No column to show.", is_error=False)
        elif part is not None and part.histogram.column == column:
            self._show(part)
        elif self.is_loading:
            self.caption.add_class("icestats-loading")
        elif self.note:
            self.say("")
            self.show_note(f"{self.note}. Or generate it below.", is_error=False)
        if not self.is_loading:
            self.caption.remove_class("icestats-loading")

    def _show(self, part: HistogramPart) -> None:
        histogram = part.histogram
        table = self.state.table
        self.kind.disabled = histogram.type in ("string", "boolean")
        self.whole.disabled = not (part.is_cut or self.state.whole_range)
        text = describe_histogram(part, table.metadata, table.snapshot)
        if part.where is not None:
            text = f"for the partitions where {part.where}: {text}"
        elif self.state.selection is not None:
            text = f"for the whole table, because the selected part has no sketches: {text}"
        self.say(text)
        if histogram.n == 0:
            self.show_note("No values: every row is null or NaN, or there are no rows.", is_error=False)
            return
        if not histogram.counts:
            self.show_note("No finite values: every value is an infinity, or too large to draw.", is_error=False)
            return
        if self.figure is None or self._shown is not part:
            self.show_figure(build_histogram_figure(part), f"Histogram of {histogram.column}")
            self._shown = part

    def to_arrow(self) -> pa.Table | None:
        """Return the bins that are drawn."""
        return None if self.state.histogram is None else self.state.histogram.histogram.to_arrow()

    def code(self) -> str:
        """Return the Python line that gives the histogram."""
        part = self.state.histogram
        where = "" if part is None or part.where is None else f", where={part.where!r}"
        return f"table.histogram({self.state.column!r}, bins={self.state.bins}, kind={self.state.kind!r}{where})"


def describe_histogram(part: HistogramPart, metadata: TableMetadata, snapshot: Snapshot | None) -> str:
    """Return what a reader must know about a histogram: its source, age and error, and what is not drawn."""
    histogram = part.histogram
    then = " for that snapshot" if histogram.commits_behind else ""
    error = f"every count is exact{then}" if histogram.rank_error == 0 else (
        f"band: each count ± {histogram.count_error:,.0f} (rank error {histogram.rank_error:.2%} at 99 %){then}"
    )  # fmt: skip
    nan = f", {render_count(histogram.nan_count)} NaN" if parse_type(histogram.type).name in ("float", "double") else ""
    texts = [
        f"{histogram.type}, {counted(histogram.n, 'value')}, {counted(histogram.null_count, 'null')}{nan}",
        f"{histogram.source.upper()} sketch of {_age(histogram.snapshot_id, metadata, snapshot)}",
        error,
    ]
    if part.below + part.above > 0:
        ends = ((part.below, "below"), (part.above, "above"))
        outside = [f"{count:,.0f} values {where}" for count, where in ends if count]
        texts.append(f"only the middle is drawn; it leaves out about {' and '.join(outside)} it")
    if histogram.upper_is_cut:
        texts.append(UPPER_IS_CUT)
    if part.window is not None:
        texts.append("the axis shows only the middle; the outermost bins extend further")
    if part.asked != histogram.kind:
        why = "" if histogram.type == "string" else ": the tails are too long for bins of equal width"
        texts.append(f"{histogram.kind} bins{why}")
    quantiles = [
        f"{label} {brief_label(histogram.type, histogram.quantiles[rank])}"
        for rank, label in _SHOWN_RANKS.items()
        if rank in histogram.quantiles and histogram.type != "string"
    ]
    return " · ".join(texts) + (f" — {', '.join(quantiles)}" if quantiles else "")


def _age(snapshot_id: int | None, metadata: TableMetadata, snapshot: Snapshot | None) -> str:
    if snapshot is None or snapshot_id is None:
        return "an unknown snapshot"
    for age, ancestor in enumerate(metadata.ancestors(snapshot)):
        if ancestor.snapshot_id == snapshot_id:
            behind = "" if age == 0 else f", {counted(age, 'commit')} behind"
            return f"this snapshot ({snapshot_id})" if age == 0 else f"snapshot {snapshot_id}{behind}"
    return f"snapshot {snapshot_id}, which is not an ancestor of this one"
