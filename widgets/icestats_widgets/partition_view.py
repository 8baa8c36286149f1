"""The partitions, as a heat map, a calendar or bars."""

from __future__ import annotations

from operator import is_
from typing import Any

import ipywidgets
import pyarrow as pa
from traitlets import link

from icestats_widgets.partition_figure import build_partition_figure
from icestats_widgets.state import PARTITION_VALUES
from icestats_widgets.view import View


class PartitionView(View):
    """How records, files and bytes lie over the partitions."""

    name = "partitions"
    title = "Partitions"
    follows = ("partitions", "partition_value")

    def build(self) -> None:
        """Make the widgets that stay."""
        choice = ipywidgets.ToggleButtons(options=PARTITION_VALUES, tooltips=["Show " + v for v in PARTITION_VALUES])
        link((self.state, "partition_value"), (choice, "value"))
        self.set_controls(choice)
        self._drawn: tuple[Any, Any] | None = None

    def draw(self) -> None:
        """Show the partitions."""
        partitions = self.state.partitions
        if partitions is None:
            if self.note:
                self.show_note(self.note)
            else:
                self.show_note("Reading the manifests …", is_error=False)
            return
        if partitions.num_rows == 0:
            self.say("0 partitions")
            self.show_note("No partitions: nothing has been written to this table yet.", is_error=False)
            return
        table = self.state.table
        drawn = (partitions, self.state.partition_value)
        if self.figure is not None and self._drawn is not None and all(map(is_, drawn, self._drawn)):
            return
        picture = build_partition_figure(
            partitions, table.metadata.specs, table.metadata.default_spec_id, table.schema, self.state.partition_value
        )
        if picture is None:
            self.say("not partitioned")
            self.show_note("The table is not partitioned: all its files are in one place.", is_error=False)
            return
        self.say(f"{picture.caption}: {self.state.partition_value} of data files")
        self._drawn = drawn
        self.show_figure(picture.figure, f"Partitions: {self.state.partition_value} of data files")

    def to_arrow(self) -> pa.Table | None:
        """Return the partitions."""
        return self.state.partitions

    def code(self) -> str:
        """Return the Python line that gives the partitions."""
        return "table.partitions()"
