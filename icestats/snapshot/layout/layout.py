"""How well a table's metadata is clustered, what is wrong with it, and what maintenance would bring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from icestats.answers.findings import Finding
from icestats.answers.markup import build_answer, build_table, element
from icestats.answers.schemas import LAYOUT
from icestats.answers.text import counted, printable_lines
from icestats.errors import CallError, check_filters, check_whole
from icestats.iceberg.metadata import PartitionSpec, Schema
from icestats.snapshot.layout.clustering import Depth, FieldLayout, LateData, Spread
from icestats.snapshot.layout.file_set import FileSet
from icestats.snapshot.layout.maintenance import NEXT, Maintenance
from icestats.snapshot.layout.partition_change import change_partitions, project_to
from icestats.snapshot.layout.partition_terms import order_fields, parse_partition_fields, write_new_term, write_term
from icestats.snapshot.layout.what_if import AS_IF, WhatIf, compare, regroup_files, sort_files

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression

    from icestats.iceberg.filters.row_filter import RowFilter


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
    _spec: PartitionSpec = field(repr=False, compare=False)
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
        partition_by: str | None = None,
        manifest_size_bytes: int | None = None,
    ) -> WhatIf:
        """Return what a workload would read after maintenance, from metadata alone.

        Parameters
        ----------
        workload : sequence of str or pyiceberg.expressions.BooleanExpression
            Filters; a text is one.
        regroup : str, optional
            "partition" to regroup files in manifests by partition, or the name of the partition field to cluster by: as
            `rewrite_manifests` does, with or without `sort_by`.
        sort_by : str, optional
            A column to sort the files of each partition by instead, as `rewrite_data_files` does.
        partition_by : str, optional
            Another partition spec to write all rows with instead: fields as Spark's DDL has them, with commas between,
            such as "day(event_time), bucket(16, device_id)". A field is a column, or `year`, `month`, `day`, `hour`,
            `bucket` or `truncate` of one; names may be in backticks.
        manifest_size_bytes : int, optional
            The size that manifests are to have; by default the table's `commit.manifest.target-size-bytes`.

        Returns
        -------
        WhatIf
            For each filter and step the counts now and then, and the statement that would do it.

        Raises
        ------
        CallError
            Not one of `regroup`, `sort_by` and `partition_by` was given, or it names what does not exist, or would make
            more than 500,000 partitions.
        FilterError
            A filter of the workload is wrong.

        Notes
        -----
        `partition_by` is an estimate. Rows are taken to lie evenly between their file's bounds, each column by itself,
        and evenly over buckets, unless all values of a file are one. The new files are of today's mean size, at least
        one a partition, with the bounds of their whole partition. Between two bounds of text nothing is known of the
        values: what lies there counts as one partition.

        Examples
        --------
        >>> import icestats
        >>> layout = icestats.load("demo.flights").layout()
        >>> found = layout.what_if(["carrier = 'UA'"], partition_by="month(time_hour), bucket(4, carrier)")
        >>> found.statement.splitlines()[-2]
        'ALTER TABLE `icestats`.`demo`.`flights` ADD PARTITION FIELD bucket(4, `carrier`);'
        """
        if [regroup, sort_by, partition_by].count(None) != 2:
            raise CallError('give one of regroup="partition", sort_by="a column" and partition_by="day(a_column)"')
        workload = [workload] if isinstance(workload, str) else workload
        check_filters("workload", workload)
        for name, value in {"regroup": regroup, "sort_by": sort_by, "partition_by": partition_by}.items():
            if not isinstance(value, str | None):
                raise CallError(f"{name} is {value!r:.80}: expected text")
        if manifest_size_bytes is not None:
            manifest_size_bytes = check_whole("manifest_size_bytes", manifest_size_bytes, 1)
        size = manifest_size_bytes or self._maintenance.manifest_size_bytes
        if partition_by is not None:
            return self._change_partitions(workload, partition_by, size)
        if sort_by is None:
            by = None if regroup == "partition" else regroup
            filters, files = self._read(workload, ())
            return WhatIf(
                change=f"manifests were regrouped by {by or 'partition'}, {size:,} bytes each",
                statement=self._maintenance.rewrite_manifests(by, manifest_size_bytes),
                assumes=f"files stay as they are; Spark samples where manifests begin; {AS_IF}",
                comparisons=compare(filters, files, regroup_files(files, size, by, self._spec)),
            )
        column = self._schema.find(sort_by)
        if column.repeated or not column.is_primitive:
            inside = " in a list or map" if column.repeated else ""
            raise CallError(
                f"sort_by is {sort_by!r}, of type {column.type}{inside}: expected a column with a single value a row"
            )
        filters, files = self._read(workload, (column.field_id,))
        return WhatIf(
            change=f"the files of each partition were sorted by {sort_by}",
            statement=self._maintenance.sort_files((sort_by,)),
            assumes="an estimate: as many files of even size, rows spread evenly between their file's bounds; "
            f"{AS_IF}{self._explain_file_sizes(files)}",
            comparisons=compare(filters, files, sort_files(files, column.field_id, size)),
        )

    def _change_partitions(
        self, workload: Sequence[str | BooleanExpression], partition_by: str, manifest_size_bytes: int
    ) -> WhatIf:
        asked = parse_partition_fields(partition_by, self._schema)
        fields, dropped, added = order_fields(asked, self._spec.fields)
        filters, files = self._read(workload, [field.source_id for field in fields])
        found = change_partitions(files, fields, self._schema, {i for one in filters for i in one.field_ids})
        taken = {one.name for one in self._spec.fields if one not in dropped}
        old = [write_term(one, self._schema) for one in dropped]
        new = [write_new_term(one, self._schema, taken) for one in added]
        assumes = (
            "an estimate: rows spread evenly between their file's bounds and over buckets, each column by itself",
            "files of today's mean size, not sorted" + self._explain_file_sizes(files),
            "manifests regrouped",
            AS_IF,
            *found.caveats,
        )
        return WhatIf(
            change=f"the table were partitioned by {partition_by.strip()}: some "
            f"{counted(found.partition_count, 'partition')}, {counted(len(found.files), 'file')}",
            statement=self._maintenance.change_partitions(old, new),
            assumes=", ".join(assumes),
            comparisons=compare(project_to(filters, fields), files, regroup_files(found.files, manifest_size_bytes)),
        )

    def _explain_file_sizes(self, files: FileSet) -> str:
        # Spark writes as few files as the target size lets it: of small ones none is left to be ruled out.
        size = self._maintenance.file_size_bytes
        is_small = int(files.sizes.sum()) < 0.75 * size * len(files)
        return f"; the statement makes larger ones, of up to {size:,} bytes, which rule out less" if is_small else ""

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
        names = _names(self.fields)
        width = max(map(len, names), default=0)
        lines = [f"layout of {self.table}", *(f"  {line}" for line in self._spread_lines())]
        if self.spread.file_count:
            lines += [f"  {name:<{width}}  {_line(field)}" for name, field in zip(names, self.fields, strict=True)]
        for finding in self.findings:
            lines.append(f"  ! {finding.severity}: {finding.title}")
            lines.append(f"      {finding.evidence}")
            lines += [f"      {finding.fix.replace(NEXT, '; ')}"] if finding.fix else []
        return printable_lines(lines)

    def _repr_html_(self) -> str:
        told = []
        for found in self.findings:
            fix = [element("pre", found.fix)] if found.fix else []
            told.append(element("li", element("b", found.severity), f": {found.title} ({found.evidence})", *fix))
        table = build_table(_HEAD, [_row(one) for one in self.fields if self.spread.file_count])
        return build_answer(f"Layout of {self.table}", table, element("ul", *told), about=self._spread_lines())

    def _spread_lines(self) -> list[str]:
        spread, late = self.spread, self.late
        if not spread.file_count:
            return ["no data files: nothing to measure"]
        lines = [
            f"{counted(spread.file_count, 'data file')}, {counted(spread.manifest_count, 'manifest')}, "
            f"{counted(spread.partition_count, 'partition')}",
            f"a partition is spread over {spread.manifests_per_partition_mean:.1f} manifests "
            f"({spread.manifests_per_partition_max:,} at most), a manifest holds "
            f"{spread.partitions_per_manifest_mean:.1f} partitions ({spread.partitions_per_manifest_max:,} at most)",
        ]
        if late is not None:
            lines.append(f"{counted(late.file_count, 'file')} ({late.share:.1%}) came late by {late.field}")
        return lines


_HEAD = (
    "field",
    "transform",
    "manifests a key lies in",
    "most",
    "share opened",
    "files a key lies in",
    "most",
    "of its partition",
)


def _row(field: FieldLayout) -> Sequence[str]:
    manifests, files = field.manifests, field.files
    return (
        field.name,
        field.transform if field.kind == "partition field" else "a column",
        f"{manifests.mean:.1f} of {manifests.range_count:,}",
        f"{manifests.max:,}",
        f"{manifests.share_opened:.1%}",
        f"{files.mean:.1f} of {files.range_count:,}",
        f"{files.max:,}",
        f"{field.files_of_partition.mean:.1f}",
    )


def _names(fields: Sequence[FieldLayout]) -> list[str]:
    """Return their names; that of a column which a partition field is named after says which of both it is."""
    others = {field.name for field in fields if field.kind == "partition field"}
    return [
        f"{field.name} (column)" if field.kind == "column" and field.name in others else field.name for field in fields
    ]


def _line(field: FieldLayout) -> str:
    within = f", {field.files_of_partition.mean:.1f} of its own partition" if field.kind == "column" else ""
    return f"a key lies in {_depth(field.manifests, 'manifests')}, in {_depth(field.files, 'files')}{within}"


def _depth(depth: Depth, what: str) -> str:
    return f"{depth.mean:.1f} of {depth.range_count:,} {what} ({depth.share_opened:.1%}, at most {depth.max:,})"
