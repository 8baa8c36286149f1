"""Which partitions are too small or too large: how their sizes are distributed, and all of them by size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import to_rows
from icestats.answers.text import counted, render_bytes
from icestats.iceberg.partition_columns import name_specs
from icestats_widgets.drawing.size_figure import build_size_figure, read_span
from icestats_widgets.page.blocks import Block, button, figure_block, form_block, side_block
from icestats_widgets.page.cells import bytes_cell, count_cell, text_cell
from icestats_widgets.page.grid import BuiltRows, Row, Seen
from icestats_widgets.page.part import Part
from icestats_widgets.reading.partition_names import PartitionNames, find_typed_fields
from icestats_widgets.reading.selection import FieldRange, Selection, field_range

FAR = 10
"""A partition that many times smaller or larger than the median stands out."""
_SIZE, _FILES, _RECORDS = "total_data_file_size_in_bytes", "data_file_count", "data_record_count"
_COLUMNS = (
    {"name": "partition", "title": "partition", "width": "minmax(140px,2fr)"},
    {"name": "size", "title": "size", "width": "minmax(84px,.8fr)", "align": "end"},
    {"name": "median", "title": "of the median", "width": "minmax(76px,.6fr)", "align": "end",
     "about": "its size as a multiple of the median partition's"},
    {"name": "files", "title": "files", "width": "minmax(54px,.5fr)", "align": "end"},
    {"name": "file_size", "title": "average file", "width": "minmax(74px,.6fr)", "align": "end"},
    {"name": "records", "title": "records", "width": "minmax(78px,.7fr)", "align": "end"},
)  # fmt: skip


class SizesPart(Part):
    """The sizes of partitions."""

    name = "sizes"
    title = "Partition sizes"
    tab = "layout"
    follows = ("partitions", "selection")
    hears = ("partitions",)

    def build(self) -> None:
        """Make the grid, smallest partitions first."""
        self.grid = self.add_grid(
            "list", "Partitions by size", _COLUMNS, most_rows=8, placeholder="search partitions", on_choose=self._choose
        )
        self.grid.sort = {"column": "size", "descending": False}
        self._read_from: Any = None
        self._partitions: pa.Table = pa.table({})
        self._sizes = np.zeros(0)
        self._range: tuple[float, float] | None = None

    def blocks(self) -> list[Block]:
        """Return the distribution, and the partitions by size."""
        partitions = self.state.partitions
        if partitions is None or not self._has_fields(partitions):
            return []
        if partitions is not self._read_from:
            self._read(partitions)
        median = float(np.median(self._sizes))
        picture = build_size_figure(
            [int(size) for size in self._sizes],
            width=self.width("sizes"),
            small=median / FAR,
            large=median * FAR,
            selected=self._range,
        )
        label = f"Sizes of {counted(len(self._sizes), 'partition')}"
        blocks = [side_block(figure_block("sizes", picture.svg, label, name="partition sizes"), self.grid.block())]
        if self._range is not None:
            text = f"Listed: {render_bytes(int(self._range[0]))} to {render_bytes(int(self._range[1]))}"
            blocks.append(form_block(button("sizes.all", "List all", about=text)))
        return blocks

    def caption(self) -> str:
        """Return what sizes are compared with."""
        if self.note:
            return self.note
        if self.state.partitions is None:
            return "Reading the manifests …"
        if not self._has_fields(self.state.partitions):
            return "The table is not partitioned: all its files are in one place."
        if self._read_from is not self.state.partitions:
            return ""
        median = render_bytes(int(np.median(self._sizes)))
        return f"The median partition has {median}.\nClick a bar to list its partitions, a row to select it."

    def to_arrow(self) -> pa.Table | None:
        """Return the partitions, smallest first."""
        return None if self.state.partitions is None else self.state.partitions.sort_by(_SIZE)

    def code(self) -> str:
        """Return the Python line that gives the partitions by size."""
        return f"table.partitions().sort_by({_SIZE!r})"

    def on_sizes_choose(self, value: Any) -> None:
        """List the partitions of a bar."""
        self._range = read_span(self.key_of(value))
        self._list()
        self.redraw()

    def on_all(self, _: Any) -> None:
        """List all partitions."""
        self._range = None
        self._list()
        self.redraw()

    def _has_fields(self, partitions: pa.Table) -> bool:
        return bool(partitions.num_rows and partitions["partition"].type.num_fields)

    def _read(self, partitions: pa.Table) -> None:
        self._read_from, self._range = partitions, None
        self._partitions = partitions.combine_chunks()
        self._sizes = partitions[_SIZE].to_numpy().astype(float)
        self._list()

    def _list(self) -> None:
        partitions, numbers = self._partitions, None
        if self._range is not None:
            numbers = np.flatnonzero((self._sizes >= self._range[0]) & (self._sizes <= self._range[1]))
        files = partitions[_FILES]
        average = pc.divide(partitions[_SIZE].cast(pa.float64()), files.cast(pa.float64()))
        named = PartitionNames(self.state.table.metadata, self.state.table.schema)
        heads = to_rows(partitions.select(["partition", "spec_id"]))
        names = pa.array([named.text(**row) or "not partitioned" for row in heads], pa.string())
        median, most = float(np.median(self._sizes)) or 1.0, int(self._sizes.max(initial=0))
        columns = {
            "partition": names, "size": partitions[_SIZE], "median": partitions[_SIZE], "files": files,
            "file_size": average, "records": partitions[_RECORDS],
        }  # fmt: skip

        def build(number: int) -> Row:
            size, count = int(self._sizes[number]), files[number].as_py()
            share = size / median
            kind = "bad" if share < 1 / FAR or share > FAR else ""
            times = f"{share:.2g} ×" if share < 0.1 else f"{share:,.2f} ×" if share < 10 else f"{share:,.0f} ×"
            cells = [
                text_cell(names[number].as_py(), kind="strong"),
                bytes_cell(size, most),
                {**text_cell(times, kind=kind), "v": share},
                count_cell(count),
                bytes_cell(size // count if count else None),
                count_cell(partitions[_RECORDS][number].as_py()),
            ]
            return {"key": f"p{number}", "depth": 0, "cells": cells}

        self.grid.show(BuiltRows(columns, names, build, numbers))

    def _ranges(self, row: dict[str, Any]) -> list[FieldRange]:
        table, values = self.state.table, row["partition"]
        fields = find_typed_fields(name_specs(table.metadata.specs)[row["spec_id"]], table.schema)
        known = [(field, kind, values[field.name]) for field, kind in fields if field.name in values]
        return [field_range(field, kind, value, value) for field, kind, value in known]

    def _choose(self, key: str, seen: Seen) -> None:
        number = self.number_of(key, "p", len(self._partitions))
        if seen.is_selected or number is None:
            self.state.selection, self.grid.selected = None, []
            return
        (row,) = to_rows(self._partitions.select(["partition", "spec_id"]).slice(number, 1))
        self.grid.selected = [key]
        ranges = tuple(self._ranges(row))
        self.state.selection = Selection(row["spec_id"], ranges, () if ranges else self._find_manifests(row["spec_id"]))

    def _find_manifests(self, spec_id: int) -> tuple[str, ...]:
        # A spec without fields has one partition, which no range says: what its manifests hold.
        manifests = self.state.table.manifest_files()
        of_spec = manifests.filter(pc.equal(manifests["partition_spec_id"], spec_id))
        return tuple(of_spec["manifest_path"].to_pylist())
