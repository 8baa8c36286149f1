"""Reads what the choices in the state need, in the background, and puts the results into the state."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import pyarrow as pa

from icestats.errors import CallError, MetadataError, StatisticsMissingError, UnsupportedError
from icestats.iceberg.summary import parse_count
from icestats.stats.histogram import Kind
from icestats.table.table import Table
from icestats_widgets.reading.background import Background, explain_error
from icestats_widgets.reading.filters.asked_filter import filter_beside_selection
from icestats_widgets.reading.filters.filter_words import join_filters
from icestats_widgets.reading.histogram_part import HistogramPart, read_histogram_part
from icestats_widgets.reading.selected_part import SelectedPart, drop_statistics, read_part, read_selected_part
from icestats_widgets.reading.selection import Selection
from icestats_widgets.reading.snapshot_comparison import age_of, read_comparison
from icestats_widgets.reading.sparks import read_part_sketches, read_sparks
from icestats_widgets.reading.state_reader import StateReader, read_anew
from icestats_widgets.state import ExplorerState

_COMMON_SHOWN = 12
_FRACTIONS = ("double", "float", "decimal")
_WHOLE = ("int", "long")
_MANY = 100
_ROLLED_UP = ("manifests", "columns", "partitions", "coverage")
_DISTRIBUTED = ["bins", "kind", "whole_range", "window", "selection", "row_filter", "clauses"]
"""What a column's distribution depends on, beside the column."""
_SECONDS_BETWEEN = 0.1
"""Shortest time between progress messages to the browser."""


class Coordinator(StateReader):
    """The only part that reads: views observe the state, and choices are made there."""

    def __init__(self, state: ExplorerState, background: Background) -> None:
        super().__init__(state, background)
        self._reading_part = threading.Lock()
        self._known_part: tuple[Any, ...] = ()
        self._partitions: tuple[Table, pa.Table] | None = None
        state.observe(lambda _: self._read_histogram(), _DISTRIBUTED)
        state.observe(lambda _: self._choose_column(), "column")
        state.observe(lambda _: self._read_part(), ["selection", "manifests", "partitions"])
        state.observe(lambda _: self._read_asked(), ["selection", "row_filter", "clauses", "manifests", "partitions"])
        state.observe(lambda _: self._read_table(), "table")
        state.observe(lambda _: self._compare(), "compared")

    def read_overview(self) -> None:
        """Read the manifest list, which takes milliseconds however many files there are."""
        state = self._state
        try:
            state.overview = state.table.overview()
            state.set_note("overview", None)
        except Exception as error:  # noqa: BLE001 - what a storage's own client raises stops nothing else, too
            state.overview = None
            state.set_note("overview", explain_error(error))
        if state.column is None or state.column not in {field.name for field in state.table.schema.fields}:
            state.column = choose_column(state.table)

    def read_rollups(self) -> None:
        """Start to read everything else: the roll-ups of the manifests, and the committed statistics."""
        table = self._state.table
        for part in _ROLLED_UP:
            # What is made of the roll-ups of an earlier table is not shown while these are read.
            self._background.drop(part)
            self._state.set_loading(part, loading=True)
        read = partial(table.read, progress=self._tell_progress())
        self._background.run("rollups", read, self._rolled_up, self._not_rolled_up)
        self._read_histogram()
        self.start("sketches", table.sketches)
        self.start("together", table.columns_together)
        self.start("sparks", partial(read_sparks, table, [f for f in table.schema.top_level if f.is_primitive]))

    def reload(self) -> None:
        """Open the table anew, and read what it has now."""
        table = self._state.table
        self._state.set_loading("overview", loading=True)
        shown = partial(self._reloaded, table)
        self._background.run("reload", partial(read_anew, table), shown, partial(self._excuse, "overview"))

    def _reloaded(self, asked: Table, table: Table) -> None:
        if self._state.table is not asked:
            # What was read may be older than what a commit, or a person, has shown meanwhile.
            self.reload()
            return
        self._state.set_loading("overview", loading=False)
        self._state.set_note("overview", None)
        self._state.table = table

    def _tell_progress(self) -> Callable[[int, int], None]:
        told = [0.0]

        def tell(done: int, total: int) -> None:
            now = time.monotonic()
            if now - told[0] > _SECONDS_BETWEEN or done == total:
                told[0] = now
                self._state.reading = (done, total)

        return tell

    def _rolled_up(self, table: Table) -> None:
        self._state.reading = (0, 0)
        self.start("columns", table.columns)
        self.start("manifests", table.manifests)
        self.start("partitions", lambda: drop_statistics(table.partitions()))
        self.start("coverage", table.coverage)

    def _not_rolled_up(self, error: Exception) -> None:
        self._state.reading = (0, 0)
        for part in _ROLLED_UP:
            self._excuse(part, error)

    def _read_table(self) -> None:
        self._known_part = ()
        self._state.asked_part = self._state.part_sketches = None
        self.read_overview()
        self.read_rollups()
        # Traitlets tells nobody of manifests that equal those of before.
        self._read_part()
        self._read_asked()

    def _excuse(self, part: str, error: Exception) -> None:
        setattr(self._state, part, {} if part == "sparks" else None)
        super()._excuse(part, error)

    def _choose_column(self) -> None:
        # Another column has another range.
        if self._state.window is None:
            self._read_histogram()
        else:
            self._state.window = None

    def _read_histogram(self) -> None:
        state = self._state
        if state.column is None:
            return
        kind: Kind = "equi-height" if state.kind == "equi-height" else "equi-width"
        row_filter = filter_beside_selection(state, without=f"histogram:{state.column}")
        shown = (state.column, state.bins, kind, state.whole_range, state.window)
        find = None
        if state.selection is not None or row_filter:
            find = partial(self._read_asked_part, state.table, state.selection, row_filter)
        self.start("histogram", partial(_read_histogram, state.table, *shown, find))

    def _read_part(self) -> None:
        state = self._state
        if state.selection is None or state.manifests is None or state.partitions is None:
            self.drop("part")
        else:
            self.start("part", partial(read_selected_part, state.table, state.selection))

    def _read_asked(self) -> None:
        state = self._state
        row_filter, selection = filter_beside_selection(state), state.selection
        if state.manifests is None or state.partitions is None or (selection is None and not row_filter):
            for part in ("asked_part", "part_sketches"):
                self.drop(part)
        else:
            read = partial(self._read_asked_part, state.table, selection, row_filter)
            self.start("asked_part", read)
            self.start("part_sketches", lambda: read_part_sketches(state.table, read()))

    def _read_asked_part(self, table: Table, selection: Selection | None, row_filter: str) -> SelectedPart:
        """Read a part, once for all who ask for the same one: partitions of a large table take much memory."""
        asked = (table, selection, row_filter)
        with self._reading_part:
            if self._known_part[:3] != asked:
                if self._partitions is None or self._partitions[0] is not table:
                    self._partitions = table, drop_statistics(table.partitions())
                self._known_part = (*asked, read_part(*asked, partitions=self._partitions[1]))
            found: SelectedPart = self._known_part[3]
            return found

    def _compare(self) -> None:
        state = self._state
        state.comparison = None
        snapshots = state.table.metadata.snapshots
        chosen = sorted((snapshots[one] for one in state.compared if one in snapshots), key=age_of)
        if len(chosen) == 2:
            self.start("comparison", partial(read_comparison, state.table, *(one.snapshot_id for one in chosen)))


def choose_column(table: Table) -> str | None:
    """Return the column to start with, one whose distribution is worth seeing.

    The first column of fractions; else the first numeric column known to have many distinct values; else the first.
    """
    columns = [field for field in table.schema.top_level if field.is_primitive]
    known = {
        blob.field_ids[0]: ndv
        for file in table.metadata.statistics
        for blob in file.blobs
        if len(blob.field_ids) == 1 and (ndv := parse_count(blob.properties.get("ndv"))) is not None
    }
    fractions = [field for field in columns if field.type.startswith(_FRACTIONS)]
    numbers = [field for field in columns if field.type in _WHOLE and known.get(field.field_id, 0) > _MANY]
    return next((field.name for field in [*fractions, *numbers, *columns]), None)


def _read_histogram(
    table: Table,
    column: str,
    bins: int,
    kind: Kind,
    whole_range: bool,
    window: tuple[float, float] | None,
    find_part: Callable[[], SelectedPart] | None,
) -> HistogramPart:
    read = partial(table.histogram, column)
    make = partial(read_histogram_part, bins=bins, kind=kind, whole_range=whole_range, window=window)
    part = None if find_part is None else find_part()
    where = None if part is None else _say(table, part)
    if part is not None and where is not None:
        # Without sketches by partition the whole table's is drawn, and said so.
        with suppress(StatisticsMissingError, CallError, UnsupportedError):
            found = make(partial(read, where=where, partial=part.partial))
            common = _read_common(table, column, where, part.partial)
            return replace(found, where=where, holds_more=part.partial == "include", common=common)
    found = make(read)
    found = replace(found, common=_read_common(table, column))
    return found if part is None else replace(found, of_whole=_explain_whole(part))


def _read_common(
    table: Table, column: str, where: str | None = None, how_partial: Literal["refuse", "include"] = "refuse"
) -> tuple[tuple[str, int, int], ...]:
    """Return the most common values, if some are: a value that is there once is none."""
    try:
        rows = table.frequent_values(column, where=where, partial=how_partial).slice(0, _COMMON_SHOWN).to_pylist()
    except (MetadataError, CallError, StatisticsMissingError):
        return ()
    counted = [(row["value"], row["rows_at_least"], row["rows_at_most"]) for row in rows]
    return tuple(one for one in counted if one[0] is not None and one[1] > 1)


def _say(table: Table, part: SelectedPart) -> str | None:
    """Return the filter of the partitions whose distribution is drawn: of a mark, as much as a filter can say."""
    selection = part.selection
    if part.where is not None or selection is None or len(table.metadata.specs) != 1:
        return part.where
    said = selection.row_filter(table.schema)
    return join_filters([*([part.row_filter] if part.row_filter else []), said]) if said else None


def _explain_whole(part: SelectedPart) -> str:
    if not part.is_whole:
        return ", because there are no sketches of just what is asked"
    return ", not only of the rows that the filter selects" if part.holds_more else ", all of which the filter selects"
