"""What stands behind a cell of the matrix of statistics, beside it: blobs, files, engines, and what computes it."""

from __future__ import annotations

from icestats_widgets.page.blocks import Block, button, code_block, form_block
from icestats_widgets.page.given_names import define_given
from icestats_widgets.page.grid import Grid, Row
from icestats_widgets.page.part import Part
from icestats_widgets.parts.statistics import ALL_FILES, StatisticsPart
from icestats_widgets.parts.statistics_details import (
    COMMITTED,
    ENGINES,
    build_blob_row,
    build_engine_row,
    build_file_row,
)
from icestats_widgets.parts.statistics_matrix import KINDS, OF_TABLE
from icestats_widgets.state import ExplorerState

_MOST_COMMANDS = 4


class DetailsPart(Part):
    """The source of the statistics that are picked, who reads them, and the command that makes them."""

    name = "details"
    title = "Details"
    tab = "statistics"
    is_beside = True
    follows = ("picked", "coverage", "sketches", "table", "engine")

    def __init__(self, state: ExplorerState, statistics: StatisticsPart) -> None:
        self._statistics = statistics
        super().__init__(state)

    def build(self) -> None:
        """Make the grids."""
        self.blob_grid = self.add_grid(
            Grid("blobs", "Blobs of statistics files", COMMITTED, most_rows=4, placeholder="")
        )
        self.engine_grid = self.add_grid(
            Grid("engines", "What engines have of it", ENGINES, most_rows=4, placeholder="")
        )

    def blocks(self) -> list[Block]:
        """Return what is committed of it, what engines have, and what computes it."""
        matrix, picked = self._statistics.find_matrix(), self.state.picked
        if matrix is None or picked is None:
            return []
        key, kind = picked
        field = self._statistics.find_field(key)
        if field is None and key not in (*OF_TABLE, ALL_FILES):
            return []
        rows = [] if key == ALL_FILES else matrix.find_rows(field, kind, self.state.engine)
        self.engine_grid.show([build_engine_row(number, row) for number, row in enumerate(rows)])
        blobs = [*self._find_blobs("" if field is None else field.name, kind or key), *self._find_partition_files(key)]
        self.blob_grid.show(blobs, "" if blobs else "Nothing of it is committed.")
        commands = list(dict.fromkeys(row["command"] for row in rows if row["command"]))
        actions = []
        if kind and KINDS[kind].computed and matrix.find(kind, field, self.state.engine).word != "out of reach":
            actions.append(button("statistics.add", "Compute it"))
        return [
            form_block(*actions, button("statistics.close", "Close")),
            self.blob_grid.block(),
            *([self.engine_grid.block()] if rows else []),
            *(code_block(define_given(one)) for one in commands[:_MOST_COMMANDS]),
        ]

    def caption(self) -> str:
        """Return of what it is."""
        if self.state.picked is None:
            return ""
        key, kind = self.state.picked
        field = self._statistics.find_field(key)
        what = "all files" if key == ALL_FILES else KINDS[kind].title if kind else "all statistics"
        return f"{what} of {'the table' if field is None else field.name}"

    def _find_blobs(self, column: str, kind: str) -> list[Row]:
        if self.state.sketches is None:
            return []
        wanted = KINDS[kind].blob if kind in KINDS else ""
        return [
            build_blob_row(number, row)
            for number, row in enumerate(self.state.sketches.to_pylist())
            if (kind == ALL_FILES or column in row["columns"] or (not column and wanted))
            and (not wanted or row["type"] == wanted)
        ]

    def _find_partition_files(self, key: str) -> list[Row]:
        files = self.state.table.metadata.partition_statistics if key in ("partitions", ALL_FILES) else ()
        return [build_file_row(number, file) for number, file in enumerate(files)]
