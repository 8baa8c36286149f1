"""How well a table's metadata is clustered, what is wrong with it, and what maintenance would bring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from icestats.answers.findings import Finding
from icestats.answers.schemas import LAYOUT
from icestats.errors import CallError
from icestats.iceberg.metadata import Schema
from icestats.plan.filters.row_filter import RowFilter
from icestats.plan.layout.file_set import FileSet
from icestats.plan.layout.layout_figures import FieldLayout, LateData, Spread
from icestats.plan.layout.layout_text import render_layout_html, render_layout_text
from icestats.plan.layout.maintenance import Maintenance
from icestats.plan.layout.regrouping import regroup, sort_files
from icestats.plan.layout.what_if import WhatIf, compare

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression


@dataclass(frozen=True)
class Layout:
    """How well the metadata of one snapshot is clustered."""

    table: str
    snapshot_id: int | None
    fields: tuple[FieldLayout, ...]
    """The partition fields, then the columns that were asked for."""
    spread: Spread
    late: LateData | None
    """None where no partition field is of time."""
    findings: tuple[Finding, ...]
    """The gravest first."""
    _files: FileSet = field(repr=False, compare=False)
    _schema: Schema = field(repr=False, compare=False)
    _maintenance: Maintenance = field(repr=False, compare=False)
    _read: Callable[[Sequence[str | BooleanExpression], Sequence[int]], tuple[list[RowFilter], FileSet]] = field(
        repr=False, compare=False
    )

    def to_arrow(self) -> pa.Table:
        """Return the overlap of each field.

        Returns
        -------
        pyarrow.Table
            `LAYOUT`: one row a partition field or column.
        """
        rows = []
        for found in self.fields:
            row: dict[str, Any] = {"name": found.name, "kind": found.kind, "type": found.type}
            row["transform"] = found.transform
            for what, depth in (("manifest", found.manifests), ("file", found.files)):
                row[f"{what}_count"] = depth.range_count
                row[f"{what}_without_bounds_count"] = depth.unknown_count
                row[f"{what}_depth_mean"] = depth.mean
                row[f"{what}_depth_max"] = depth.max
                row[f"{what}_share_opened"] = depth.share_opened
                row[f"{what}_depth_histogram"] = [
                    {"least": least, "most": most, "share": share} for least, most, share in depth.histogram
                ]
            row["partition_file_depth_mean"] = found.files_of_partition.mean
            row["partition_file_depth_max"] = found.files_of_partition.max
            rows.append(row)
        return pa.Table.from_pylist(rows, LAYOUT)

    def what_if(
        self,
        workload: Sequence[str | BooleanExpression],
        *,
        regroup: str | None = None,
        sort_by: str | None = None,
        manifest_size_bytes: int | None = None,
    ) -> WhatIf:
        """Return what a workload would read after maintenance, from metadata alone.

        Parameters
        ----------
        workload : sequence of str or pyiceberg.expressions.BooleanExpression
            Filters.
        regroup : str, optional
            "partition" to regroup files in manifests by partition, or the name of the partition field to cluster by: as
            `rewrite_manifests` does, with or without `sort_by`.
        sort_by : str, optional
            A column to sort the files of each partition by instead, as `rewrite_data_files` does.
        manifest_size_bytes : int, optional
            The size that manifests are to have; by default the table's `commit.manifest.target-size-bytes`.

        Returns
        -------
        WhatIf
            For each filter and step the counts now and then, and the statement that would do it.

        Raises
        ------
        CallError
            Neither or both of `regroup` and `sort_by` were given, or they name what does not exist.
        FilterError
            A filter of the workload is wrong.
        """
        if (regroup is None) == (sort_by is None):
            raise CallError('give one of regroup="partition" and sort_by="a column"')
        if isinstance(workload, str):
            workload = [workload]
        if sort_by is not None:
            return self._sorted(workload, sort_by, manifest_size_bytes)
        return self._regrouped(workload, None if regroup == "partition" else regroup, manifest_size_bytes)

    def _regrouped(
        self, workload: Sequence[str | BooleanExpression], by: str | None, manifest_size_bytes: int | None
    ) -> WhatIf:
        filters, files = self._read(workload, ())
        size = manifest_size_bytes or self._maintenance.manifest_size_bytes
        return WhatIf(
            change=f"manifests were regrouped by {by or 'partition'}, {size:,} bytes each",
            statement=self._maintenance.rewrite_manifests(by, manifest_size_bytes),
            assumes="files stay as they are; Spark samples where manifests begin",
            comparisons=compare(filters, files, regroup(files, size, by)),
        )

    def _sorted(
        self, workload: Sequence[str | BooleanExpression], column: str, manifest_size_bytes: int | None
    ) -> WhatIf:
        found = self._schema.find(column)
        filters, files = self._read(workload, (found.field_id,))
        size = manifest_size_bytes or self._maintenance.manifest_size_bytes
        return WhatIf(
            change=f"the files of each partition were sorted by {column}",
            statement=self._maintenance.sort_files((column,)),
            assumes="an estimate: as many files of even size, rows spread evenly between their file's bounds",
            comparisons=compare(filters, files, sort_files(files, found.field_id, size)),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the layout as one JSON object."""
        return {
            "snapshot_id": None if self.snapshot_id is None else str(self.snapshot_id),
            "fields": self.to_arrow().to_pylist(),
            "spread": asdict(self.spread),
            "late_data": None if self.late is None else asdict(self.late),
            "findings": [finding.to_json() for finding in self.findings],
        }

    def __repr__(self) -> str:
        return render_layout_text(self.table, self.fields, self.spread, self.late, self.findings)

    def _repr_html_(self) -> str:
        return render_layout_html(self.table, self.fields, self.spread, self.late, self.findings)
