"""The table that a person works with: one snapshot of an Iceberg table, and everything its metadata knows."""

from __future__ import annotations

import importlib
from typing import Any

from icestats.iceberg.catalog import reopen_source
from icestats.table.contents_facet import Contents
from icestats.table.estimates_facet import Estimating
from icestats.table.lifecycle_facet import StatisticsLifecycle
from icestats.table.overview import Overview, build_overview
from icestats.table.planning_facet import Planning
from icestats.table.presentation import render_html, render_text
from icestats.table.statistics_facet import StatisticsFiles


class Table(Contents, StatisticsFiles, StatisticsLifecycle, Estimating, Planning):
    """One snapshot of an Iceberg table, read-only until a `compute(...).commit()`.

    What has been read is kept; `refresh()` gives the table as it is now.

    Parameters
    ----------
    source : Source
        An opened table.
    snapshot_id : int, optional
        By default the current snapshot.
    ref : str, optional
        A branch or a tag instead.
    """

    def refresh(self) -> Table:
        """Return the table as it is now; a pinned snapshot stays."""
        return Table(reopen_source(self._source), *self._pin)

    def explore(self, *, column: str | None = None) -> Any:
        """Return the widget: everything that the metadata knows, and the panel that generates what is missing.

        Parameters
        ----------
        column : str, optional
            The column to begin with; by default one whose distribution is worth seeing.

        Raises
        ------
        ColumnNotFoundError
            The table has no such column.
        """
        # The notebook layer stands above the library: it is looked up when it is asked for.
        return importlib.import_module("icestats_widgets").Explorer(self, column=column)

    def overview(self) -> Overview:
        """Return the figures that the manifest list and metadata.json give: what a table draws of itself."""
        return build_overview(self.name, self.metadata, self.snapshot, self.schema, self._reader.manifest_files)

    def __repr__(self) -> str:
        return render_text(self.overview())

    def _repr_html_(self) -> str:
        return render_html(self.overview())
