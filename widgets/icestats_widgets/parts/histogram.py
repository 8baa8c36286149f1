"""The distribution of the selected column."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from icestats.answers.text import counted, render_count
from icestats.iceberg.types import parse_type
from icestats.stats.column_accumulator import can_distribute
from icestats.stats.histogram import UPPER_IS_CUT, Histogram
from icestats.stats.kll_items import item_value, to_item
from icestats_widgets.drawing.axis import brief_label, typed_position
from icestats_widgets.drawing.canvas import Picture
from icestats_widgets.drawing.histogram_figure import build_histogram_figure, edge_positions, has_log_values
from icestats_widgets.drawing.values_figure import build_values_figure
from icestats_widgets.page.blocks import (
    Block,
    button,
    choice,
    fact,
    facts_block,
    figure_block,
    form_block,
    number,
    text_block,
    toggle,
)
from icestats_widgets.page.part import Part
from icestats_widgets.reading.filters.asked_filter import add_clause, add_range, drop_chip, filter_beside_selection
from icestats_widgets.reading.histogram_part import HistogramPart
from icestats_widgets.state import KINDS

_SHOWN_RANKS = {0.0: "least", 0.05: "5%", 0.25: "25%", 0.5: "median", 0.75: "75%", 0.95: "95%", 1.0: "largest"}
_LABELLED = ("string", "boolean")


class HistogramPanel(Part):
    """A column's histogram from its committed KLL sketch, without touching data files."""

    name = "histogram"
    title = "Distribution"
    tab = "columns"
    follows = (
        "histogram", "column", "selection", "row_filter", "clauses",
        "log_counts", "log_values", "window", "kind", "bins", "whole_range",
    )  # fmt: skip

    def build(self) -> None:
        """Nothing is drawn yet."""
        self._picture: Picture | None = None

    def blocks(self) -> list[Block]:
        """Return the histogram with its controls."""
        self._picture = None
        part, column = self.state.histogram, self.state.column
        if column is None:
            return [text_block("No column to show.", "quiet")]
        if part is None or part.histogram.column != column:
            if self.is_loading:
                return [text_block(f"{column}: reading …", "busy")]
            live = "The tab Statistics can make one." if self._can_be_made else ""
            return [text_block(f"{self.note}.", "quiet", live=live)] if self.note else []
        return [self._controls(part), *self._shown(part)]

    @property
    def _can_be_made(self) -> bool:
        column, fields = self.state.column, self.state.table.schema.top_level
        is_possible = any(field.name == column and can_distribute(field) is None for field in fields)
        return is_possible and "asked_part" not in self.state.notes

    def caption(self) -> str:
        """Return the column, and of which rows the picture is."""
        part, column = self.state.histogram, self.state.column
        if part is None or part.histogram.column != column:
            return ""
        of = "the whole table"
        if part.where is not None:
            of = f"the partitions where {part.where}{self._untold}"
            if part.holds_more:
                of = f"the partitions that {part.where} touches{self._untold}, not only the rows that it selects"
        elif self._is_asked:
            of = f"the whole table{part.of_whole}"
        return f"{column}, {part.histogram.type}: {of}."

    @property
    def _untold(self) -> str:
        """What of the selection the picture leaves out, because no filter can say it."""
        selection = self.state.selection
        untold = "" if selection is None else selection.untold(self.state.table.schema)
        return f", not only {untold}" if untold else ""

    @property
    def _is_asked(self) -> bool:
        clauses = filter_beside_selection(self.state, without=f"histogram:{self.state.column}")
        return self.state.selection is not None or bool(clauses)

    def to_arrow(self) -> pa.Table | None:
        """Return the bins that are drawn."""
        return None if self.state.histogram is None else self.state.histogram.histogram.to_arrow()

    def code(self) -> str:
        """Return the Python line that gives the bins that are drawn, and those that lie outside."""
        part = self.state.histogram
        if part is None or part.histogram.column != self.state.column:
            return ""
        where = "" if part.where is None else f", where={part.where!r}"
        where += ", partial='include'" if part.holds_more else ""
        kind = "" if part.histogram.kind == KINDS[0] else f", kind={part.histogram.kind!r}"
        return f"table.histogram({self.state.column!r}, bins={part.bins}{kind}{where})"

    def on_kind(self, value: Any) -> None:
        """Bins of equal width, or of about equal count."""
        if value in KINDS:
            self.state.kind = value

    def on_bins(self, value: Any) -> None:
        """Take a number of bins."""
        if isinstance(value, int) and 2 <= value <= 200:
            self.state.bins = value

    def on_tails(self, value: Any) -> None:
        """Draw the far tails too, or not."""
        self.state.whole_range = bool(value)

    def on_logx(self, value: Any) -> None:
        """Take a logarithmic axis of values, or a linear one."""
        self.state.log_values = bool(value)

    def on_bars_log(self, value: Any) -> None:
        """Take a logarithmic axis of counts, or a linear one."""
        self.state.log_counts = bool(value.get("on")) if isinstance(value, dict) else False

    def on_bars_zoom(self, value: Any) -> None:
        """Show a range that was dragged over."""
        ends = self._find_range(value)
        if ends is not None:
            self.state.window = ends

    def on_bars_reset(self, _: Any) -> None:
        """Show all again."""
        self.state.window = None

    def on_bars_range(self, value: Any) -> None:
        """Show a range that was typed."""
        part = self.state.histogram
        if part is not None and isinstance(value, dict):
            ends = [typed_position(part.histogram.type, str(value.get(name, ""))) for name in ("lower", "upper")]
            if ends[0] < ends[1]:
                self.state.window = (ends[0], ends[1])

    def on_bars_mark(self, value: Any) -> None:
        """Add the bins that were dragged over to the filter."""
        part, ends = self.state.histogram, self._find_range(value)
        if part is None or ends is None or part.histogram.type in _LABELLED:
            return
        self._ask(part, *_snap(part, *ends))

    def on_bars_choose(self, value: Any) -> None:
        """Add the value or the range of a bar to the filter."""
        part = self.state.histogram
        place = None if part is None else self.number_of(self.key_of(value), "", len(part.histogram.counts))
        if part is None or place is None:
            return
        if part.histogram.type == "boolean" or _has_values_for_bins(part.histogram):
            column = part.histogram.column
            add_clause(self.state, f"histogram:{column}", column, part.histogram.edges[place])
        else:
            self._ask(part, place, place + 1)

    def _ask(self, part: HistogramPart, first: int, end: int) -> None:
        edges, column = part.histogram.edges, part.histogram.column
        if edges[first] == edges[end]:
            add_clause(self.state, f"histogram:{column}", column, edges[first])
            return
        # The last bin of all has its upper edge too.
        is_last = end + 1 == len(edges) and not part.above
        add_range(self.state, f"histogram:{column}", column, edges[first], edges[end], with_upper=is_last)

    def on_bars_clear(self, _: Any) -> None:
        """Take what was marked out of the filter."""
        drop_chip(self.state, f"clause:histogram:{self.state.column}")

    def _controls(self, part: HistogramPart) -> Block:
        fields = []
        if part.histogram.type not in _LABELLED:
            fields.append(choice("histogram.kind", "bins", self.state.kind, [(one, one) for one in KINDS]))
            fields.append(number("histogram.bins", "how many", self.state.bins, 2, 200))
            if part.is_cut or self.state.whole_range:
                fields.append(toggle("histogram.tails", "far tails", self.state.whole_range))
            if has_log_values(part):
                fields.append(toggle("histogram.logx", "log values", self.state.log_values))
        return form_block(*fields)

    def _shown(self, part: HistogramPart) -> list[Block]:
        histogram = part.histogram
        if histogram.n == 0:
            why = "every row is null or NaN, or there are no rows"
            if histogram.commits_behind != 0:
                why = "every row was null or NaN, or there were none"
            return [text_block(f"No values: {why}.", "quiet"), text_block(describe_histogram(part), "quiet")]
        if not histogram.counts and self.state.window is not None:
            again = button("histogram.bars.reset", "Show everything again")
            return [text_block("No values lie in the range that is shown.", "quiet"), form_block(again)]
        if not histogram.counts:
            return [text_block("No finite values: every value is an infinity, or too large to draw.", "quiet")]
        self._picture = build_histogram_figure(
            part, width=self.width("bars"), log_count=self.state.log_counts, log_value=self.state.log_values,
            note=self._untold.strip(", ") if part.where else "the whole table's distribution" if self._is_asked else "",
        )  # fmt: skip
        is_ordered = histogram.type not in _LABELLED
        ends = [brief_label(histogram.type, edge) for edge in (histogram.edges[0], histogram.edges[-1])]
        figure = figure_block(
            "bars", self._picture.svg, f"Histogram of {histogram.column}", marks="x" if is_ordered else "",
            can_zoom=is_ordered, is_zoomed=self.state.window is not None, log=self.state.log_counts,
            typed=(ends[0], ends[1]) if is_ordered else None, name=f"histogram {histogram.column}",
        )  # fmt: skip
        return [
            figure,
            *_quantiles(histogram),
            *self._common(part),
            text_block(describe_histogram(part), "quiet"),
        ]

    def _common(self, part: HistogramPart) -> list[Block]:
        if not part.common:
            return []
        histogram = part.histogram
        rows = histogram.n + (histogram.null_count or 0) + (histogram.nan_count or 0)
        picture = build_values_figure(part.common, rows, width=self.width("values"))
        label = f"Most common values of {histogram.column}"
        of = "all rows" if part.where is None else "the rows of these partitions"
        return [
            text_block(f"Most common values, and their share of {of}", "quiet"),
            figure_block("values", picture.svg, label, name=f"values {histogram.column}"),
        ]

    def on_values_choose(self, value: Any) -> None:
        """Add a common value to the filter."""
        part = self.state.histogram
        place = None if part is None else self.number_of(self.key_of(value), "", len(part.common))
        if part is None or place is None:
            return
        histogram, text = part.histogram, part.common[place][0]
        typed = item_value(histogram.type, to_item(histogram.type, text))
        add_clause(self.state, f"histogram:{histogram.column}", histogram.column, typed)

    def _find_range(self, value: Any) -> tuple[float, float] | None:
        return None if self._picture is None else self._picture.find_range(value)


def _snap(part: HistogramPart, lower: float, upper: float) -> tuple[int, int]:
    # The edges of the bins are values of the column; what lies between them may be none.
    positions = edge_positions(part)
    first = min(range(len(positions) - 1), key=lambda place: abs(positions[place] - lower))
    end = min(reversed(range(first + 1, len(positions))), key=lambda place: abs(positions[place] - upper))
    return first, end


def _has_values_for_bins(histogram: Histogram) -> bool:
    # A column of few values has a bin for each: the last one ends where it begins, as may one of several numbers.
    edges = histogram.edges
    is_one = len(edges) > 1 and edges[-1] == edges[-2]
    first = to_item(histogram.type, edges[0]) if is_one else None
    return is_one and (histogram.type == "string" or to_item(histogram.type, edges[1]) - first <= 1)


def _quantiles(histogram: Histogram) -> list[Block]:
    if histogram.type == "string":
        return []
    found = [
        fact(label, brief_label(histogram.type, histogram.quantiles[rank]))
        for rank, label in _SHOWN_RANKS.items()
        if rank in histogram.quantiles
    ]
    return [facts_block(*found)] if found else []


def describe_histogram(part: HistogramPart) -> str:
    """Return what a reader must know about a histogram: its source, age and error, and what is not drawn."""
    histogram = part.histogram
    then = " for that snapshot" if histogram.commits_behind else ""
    error = f"every count is exact{then}" if histogram.rank_error == 0 else (
        f"band: each count ± {histogram.count_error:,.0f} at 99% confidence "
        f"(rank error {histogram.rank_error:.2%}){then}"
    )  # fmt: skip
    nan = f", {render_count(histogram.nan_count)} NaN" if parse_type(histogram.type).name in ("float", "double") else ""
    texts = [
        f"{counted(histogram.n, 'value')}, {counted(histogram.null_count, 'null')}{nan}",
        f"{histogram.source.upper()} sketch of {_age(histogram.snapshot_id, histogram.commits_behind)}",
        error,
    ]
    if part.below + part.above > 0:
        ends = ((part.below, "below"), (part.above, "above"))
        outside = [f"{count:,.0f} values {where}" for count, where in ends if count]
        texts.append(f"only a part is drawn; it leaves out about {' and '.join(outside)} it")
    if histogram.upper_is_cut:
        texts.append(UPPER_IS_CUT)
    if part.window is not None:
        texts.append("the axis shows only a part; the outermost bins extend further")
    if part.asked != histogram.kind:
        why = "" if histogram.type == "string" else ": the tails are too long for bins of equal width"
        texts.append(f"{histogram.kind} bins{why}")
    return " · ".join(texts)


def _age(snapshot_id: int | None, commits_behind: int | None) -> str:
    if snapshot_id is None:
        return "an unknown snapshot"
    if commits_behind is None:
        return f"snapshot {snapshot_id}, which is not an ancestor of this one"
    behind = f", {counted(commits_behind, 'commit')} behind"
    return f"snapshot {snapshot_id}{behind}" if commits_behind else f"this snapshot ({snapshot_id})"
