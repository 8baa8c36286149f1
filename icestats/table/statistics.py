"""Statistics that a scan has found, their commit, and the reports of what a commit or a removal changes."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from icestats.answers.schemas import COMPUTED
from icestats.answers.text import counted, one_line, printable_lines, render_bytes
from icestats.errors import CallError, SnapshotNotFoundError, StatisticsMissingError, check_flags, check_names
from icestats.iceberg.catalog import Source, load_iceberg_table, load_writable_table
from icestats.iceberg.metadata import StatisticsFile
from icestats.read.puffin.statistics_age import THETA
from icestats.read.puffin.statistics_files import CommittedBlob
from icestats.read.puffin.statistics_users import ZONELESS_TIMES
from icestats.stats.histogram import Histogram, Kind, build_histogram
from icestats.stats.kll import KllSketch, find_rank_error
from icestats.stats.partition_sketches import MOST_GATHERED_BYTES, choose_size, estimate_size, find_default_limit
from icestats.stats.table_statistics import ColumnStatistics, TableStatistics
from icestats.stats.theta import ThetaSketch
from icestats.table.metadata_statistics import MetadataStatistics, PartitionFile

if TYPE_CHECKING:
    from pyiceberg.table import Table as IcebergTable

    from icestats.commit.entries import Entry
    from icestats.commit.partition_statistics_commit import PartitionPlan
    from icestats.commit.puffin_writer import NewBlob
    from icestats.commit.statistics_plan import CommitPlan
    from icestats.commit.statistics_removal import RemovalPlan
    from icestats.read.puffin.puffin import PuffinBlob
    from icestats.scan.scan_job import Sizes
    from icestats.scan.scan_plan import ScanPlan
    from icestats.spark.statistics_refresh import Refresh

_Said = TypeVar("_Said")


@dataclass(frozen=True)
class CommitReport:
    """What a commit has changed, or would change."""

    committed: bool
    files: tuple[dict[str, Any], ...]
    """Each file with its path, its length in bytes and its blobs."""
    kept_blobs: tuple[dict[str, Any], ...]
    """Blobs of the earlier file that are carried over."""
    replaced: tuple[dict[str, Any], ...]
    """Blobs and partition statistics files that new ones replace."""
    text: str = field(repr=False)
    effects: tuple[str, ...] = ()
    """What engines do differently."""
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text

    def to_json(self) -> dict[str, Any]:
        """Return the report as the command line prints it."""
        return {
            "files": list(self.files),
            "committed": self.committed,
            "kept_blobs": list(self.kept_blobs),
            "replaced": list(self.replaced),
            "effects": list(self.effects),
            # Without a file the text says why.
            "warnings": list(self.warnings) if self.files else [self.text],
        }


@dataclass(frozen=True, slots=True)
class RemovalReport:
    """What `Table.remove_statistics` has done, or would do."""

    removed: bool
    """False for a dry run."""
    entries: tuple[dict[str, Any], ...]
    """One or more entries of metadata.json, each with its `snapshot_id`; the `path` of the file that the table no
    longer refers to, and that stays on storage; the `restored_path` of the entry that was put back, in a dry run of the
    file that would be copied. None for none."""
    text: str = field(repr=False)
    taken_files: tuple[dict[str, Any], ...] = ()
    """Each file that the table no longer refers to: its path, its length in bytes, its blobs with `type` and `columns`;
    of one that cannot be read none are known, and `is_read` is False."""
    restored_files: tuple[dict[str, Any], ...] = ()
    """Each file that it refers to again, in the same form."""
    effects: tuple[str, ...] = ()
    """What engines do differently."""
    notes: tuple[str, ...] = ()
    """What is not put back, and why."""
    plan: RemovalPlan | None = field(default=None, repr=False, compare=False)
    """What `carry_out_removal` takes."""

    def __str__(self) -> str:
        return self.text

    def to_json(self) -> dict[str, Any]:
        """Return the report as the command line prints it."""
        said = {"effects": list(self.effects), "notes": list(self.notes)}
        return {"removed": self.removed, **self.entries[0], "entries": list(self.entries), **said}


class Statistics:
    """Statistics of one snapshot: of its columns, manifests, partitions. Nothing is written until `commit()`."""

    def __init__(self, source: Source, found: TableStatistics, of_metadata: MetadataStatistics | None = None) -> None:
        self._source = source
        self.found = found
        """The statistics by column, as bytes and numbers."""
        self.of_metadata = of_metadata or MetadataStatistics()
        """Those of manifests and partitions."""
        self.unlisted: tuple[str, ...] | None = None
        """After a refresh: columns whose NDV `commit` does not list, as metadata.json did not, unless it is told."""

    def to_arrow(self) -> pa.Table:
        """Return the statistics.

        Returns
        -------
        pyarrow.Table
            `schemas.COMPUTED`: one row a column.
        """
        rows = []
        for name, column in self.found.columns.items():
            theta = ThetaSketch.from_bytes(column.theta)
            rows.append(
                {
                    **asdict(column),
                    "name": name,
                    "ndv": column.count_distinct(theta),
                    "ndv_relative_error": theta.relative_error,
                    "theta_size_bytes": len(column.theta),
                    "kll_size_bytes": None if column.kll is None else len(column.kll),
                }
            )
        return pa.Table.from_pylist(rows, COMPUTED)

    def histogram(
        self, column: str, *, bins: int = 40, kind: Kind = "equi-width", lower: Any = None, upper: Any = None
    ) -> Histogram:
        """Return a column's histogram from the sketch that the scan has made.

        Parameters
        ----------
        column : str
            A column that was scanned.
        bins : int
            How many bins.
        kind : {"equi-width", "equi-height"}
            Bins of the same width, or of the same count.
        lower, upper : object, optional
            The part of the range to draw, as in `Table.histogram`.

        Raises
        ------
        ColumnNotFoundError
            The scan did not read that column.
        StatisticsMissingError
            The column's type has no KLL sketch.
        """
        found = self.found.find(column)
        if found.kll is None or found.item_type is None:
            raise StatisticsMissingError(f"column {column!r} of type {found.type} has no KLL sketch")
        sketch = KllSketch.from_bytes(found.item_type, found.kll)
        made = build_histogram(
            sketch, column=column, type_text=found.type, bins=bins, kind=kind, lower=lower, upper=upper
        )
        nulls, nans = found.null_value_count, found.nan_value_count
        return replace(made, snapshot_id=self.found.snapshot_id, null_count=nulls, nan_count=nans)

    def commit(
        self,
        *,
        dry_run: bool = False,
        list_ndv: Collection[str] | None = None,
        keep_earlier: bool = True,
        on_step: Callable[[str], None] | None = None,
    ) -> CommitReport:
        """Write the statistics and register them for the snapshot in one commit: a Puffin, a partition statistics file.

        Parameters
        ----------
        dry_run : bool
            Only say what would be written and changed, or why nothing can be committed.
        list_ndv : collection of str, optional
            The columns whose NDV metadata.json lists, so that engines use it; by default all but timestamps without a
            zone, which Spark 4.1 fails on, where the snapshot lists none; after a refresh what the nearest file lists.
        keep_earlier : bool
            Whether the Puffin file also gets the nearest blob of each other kind and column that ancestors of the
            snapshot have, unchanged, so that engines which look into one file only find them.
        on_step : callable, optional
            Called with the name of each step.

        Returns
        -------
        CommitReport
            `print` it to see each file, blob and entry, what engines will do differently, and warnings. The first line
            of a dry run says what the statistics file costs, and how accurate the histograms are that it brings. A
            file that the snapshot has already is not written again; where that is all, `committed` is False.

        Raises
        ------
        ColumnNotFoundError, CallError
            `list_ndv` names what is no column, or one without a Theta sketch here.
        CommitError
            The table is read-only, its snapshot has expired meanwhile, the catalog refused, or the storage failed; what
            was written has been removed, or is named.
        """
        check_names("list_ndv", list_ndv, or_none=True)
        check_flags(dry_run=dry_run, keep_earlier=keep_earlier)
        try:
            table = (load_iceberg_table if dry_run else load_writable_table)(self._source)
            plan, partitions = self._plan(table, list_ndv, keep_earlier=keep_earlier)
        except Exception as error:
            if not dry_run or (isinstance(error, CallError) and not isinstance(error, SnapshotNotFoundError)):
                raise
            return CommitReport(False, (), (), (), f"cannot be committed: {one_line(error)}")
        is_made = plan is not None or partitions is not None
        plan, partitions, _ = _leave_old(plan, partitions)
        left, note = "", ""
        if not dry_run and (plan is not None or partitions is not None):
            plan, partitions, left = _commit(table, plan, partitions, on_step)
            note = refresh_running_spark(self._source)
        if plan is None and partitions is None:
            has = f": snapshot {self.found.snapshot_id} has exactly these statistics already" if is_made else ""
            return CommitReport(False, (), (), (), f"nothing to commit{has}{left}")
        if plan is not None and partitions is not None:
            partitions = replace(partitions, warnings=())
        reports = []
        file = self.of_metadata.partition_file
        if file is not None and partitions is not None:
            reports.append(_build_partition_report(file, partitions, committed=not dry_run))
        if plan is not None:
            found = (f"{finding.title} ({finding.evidence})" for finding in self.found.findings)
            reports.append(_build_report(plan, *found))
        report = _join_reports(reports)
        # The first line of a preview says what the file costs and what it brings.
        preview = self._describe_cost(len(plan.puffin.data)) if dry_run and plan is not None else ""
        return replace(report, text=f"{preview}{report.text}{note}")

    def _plan(
        self, table: IcebergTable, list_ndv: Collection[str] | None, *, keep_earlier: bool
    ) -> tuple[CommitPlan | None, PartitionPlan | None]:
        from icestats.commit.partition_statistics_commit import prepare_partition_commit
        from icestats.commit.table_statistics_blobs import build_blobs

        file, plan, partitions = self.of_metadata.partition_file, None, None
        blobs = (*build_blobs(self.found), *self.of_metadata.blobs)
        if not blobs and file is None and (skipped := [f"{name}: {why}" for name, why in self.found.skipped.items()]):
            raise CallError(f"nothing to commit, as no statistics can be made of {'; '.join(skipped[:3])}")
        if blobs or list_ndv or (file is None and not self.of_metadata.lines):
            plan = self._prepare_blobs(table, blobs, list_ndv, keep_earlier=keep_earlier)
        if file is not None:
            partitions = prepare_partition_commit(table, file.snapshot_id, file.data, file.file_format)
        return plan, partitions

    def _describe_cost(self, file_size_bytes: int) -> str:
        """Say what a statistics file costs and what it brings, in a line; nothing where no column was scanned."""
        found, by_partition = self.found, self.found.by_partition
        if not found.table_size_bytes or not found.columns:
            return ""
        share = f"{file_size_bytes / found.table_size_bytes:.2%} of the table ({render_bytes(found.table_size_bytes)})"
        errors = [
            KllSketch.from_bytes(column.item_type, column.kll).rank_error
            for column in found.columns.values()
            if column.kll is not None and column.item_type is not None
        ]
        brings = f"histograms of the table with ranks within {max(errors):.2%}" if errors else "no histogram, NDV only"
        if by_partition is not None:
            kept = [sum(bool(one.theta) for one in partitions.values()) for partitions in by_partition.columns.values()]
            count = max(map(len, by_partition.columns.values()), default=0)
            within = "NDV only" if any(kept) else "nothing"
            if by_partition.k is not None:
                within = f"within {find_rank_error(by_partition.k):.2%}"
            brings += (
                f", of partitions {within} "
                f"({max(kept, default=0):,} of {counted(count, 'partition')}, "
                f"{sum(map(bool, kept)):,} of {counted(len(kept), 'column')})"
            )
        return f"costs {file_size_bytes:,} bytes, {share}; brings {brings}\n"

    def _prepare_blobs(
        self, table: IcebergTable, blobs: Sequence[NewBlob], list_ndv: Collection[str] | None, *, keep_earlier: bool
    ) -> CommitPlan:
        from icestats.commit.statistics_commit import prepare_commit

        # Names are those of the schema that was read with, which the table's current one need not have.
        own = self.found.columns
        unlisted = self.unlisted if list_ndv is None else None
        if unlisted is not None:
            list_ndv = [name for name in own if name not in unlisted]
        return prepare_commit(
            table,
            blobs,
            snapshot_id=self.found.snapshot_id,
            list_ndv=None if list_ndv is None else [own[name].field_id if name in own else name for name in list_ndv],
            as_listed=unlisted is not None,
            keep_earlier=keep_earlier,
        )

    def __repr__(self) -> str:
        found = self.found
        rows = "no rows" if found.row_count is None else counted(found.row_count, "row")
        title = f"statistics of {self._source.name}, snapshot {found.snapshot_id}"
        lines = [f"{title}: {counted(len(found.columns), 'column')}, {rows}, {found.duration_ms:,} ms"]
        if not found.columns and self.of_metadata.lines:
            lines = [f"{title}, from its metadata"]
        if found.by_partition is not None:
            count = max((len(partitions) for partitions in found.by_partition.columns.values()), default=0)
            k = "" if found.by_partition.k is None else f", k {found.by_partition.k}"
            lines.append(f"  by partition: {count:,}, lg_k {found.by_partition.lg_k}{k}")
            lines += [f"  {found.by_partition.left_out}"] if found.by_partition.left_out else []
        if found.scan_reason is not None:
            lines.append(f"  read by {found.scanned_by}'s own scan, the slower way: {found.scan_reason}")
        lines += [f"  skipped {name}: {reason}" for name, reason in found.skipped.items()]
        lines += [f"  ! {finding}" for finding in found.findings]
        lines += [f"  {line}" for line in self.of_metadata.lines]
        return printable_lines(lines)


class RefreshedStatistics(Statistics):
    """Theta, KLL and column statistics of one snapshot, as `Statistics`; and how they were made."""

    def __init__(
        self, source: Source, found: TableStatistics, refresh: Refresh, unlisted: Collection[str] = ()
    ) -> None:
        super().__init__(source, found)
        self.unlisted = tuple(unlisted)
        self.added_to = refresh.added_to
        """Columns whose committed statistics were added to, by name: the snapshot that these are of."""
        self.scanned = refresh.scanned
        """Columns that were read in all live files, by name: why."""
        self.added_file_count = refresh.added_file_count
        """Data files added since, which were read for `added_to`."""
        self.added_row_count = refresh.added_row_count
        """Rows of these files."""
        self.added_partitions = refresh.added_partitions
        """Columns whose committed sketches by partition were added to, by name: the snapshot that these are of, how
        many partitions have got rows since, and how many there are."""
        self.left = refresh.left
        """Columns whose committed sketches by partition are left as they are, by name: why."""
        self.added_together = refresh.added_together
        """Pairs of columns whose committed statistics together were added to apart from those of the columns, by names:
        the snapshot that they were of."""
        self.left_together = refresh.left_together
        """Pairs of columns whose committed statistics together are left as they are, by names: why."""

    def to_json(self) -> dict[str, Any]:
        """Return what was read, as the command line prints it."""
        return {
            "snapshot_id": str(self.found.snapshot_id),
            "added_to": {name: str(snapshot_id) for name, snapshot_id in self.added_to.items()},
            "scanned": self.scanned,
            "added_file_count": self.added_file_count,
            "added_row_count": self.added_row_count,
            "added_partitions": {
                name: {**added._asdict(), "snapshot_id": str(added.snapshot_id)}
                for name, added in self.added_partitions.items()
            },
            "left": self.left,
            "added_together": {names: str(snapshot_id) for names, snapshot_id in self.added_together.items()},
            "left_together": self.left_together,
        }

    def __repr__(self) -> str:
        lines = super().__repr__().split("\n")
        for snapshot_id, names in _list_names(self.added_to):
            lines.append(f"  added to the statistics of snapshot {snapshot_id}: {names}")
        for (snapshot_id, touched, count), names in _list_names(self.added_partitions):
            added_to = f"{touched:,} of {counted(count, 'partition')} of snapshot {snapshot_id}"
            lines.append(f"  added to the sketches of {added_to}: {names}")
        for names, snapshot_id in self.added_together.items():
            lines.append(f"  added to the statistics of snapshot {snapshot_id}: {names} together")
        if self.added_to or self.added_partitions:
            lines.append(
                f"  {counted(self.added_file_count, 'file')} with {counted(self.added_row_count, 'row')} "
                "were added since, and read"
            )
        lines += [f"  scanned in full, as {reason}: {names}" for reason, names in _list_names(self.scanned)]
        lines += [f"  sketches by partition of {name} are left as they are: {why}" for name, why in self.left.items()]
        lines += [f"  {names} together are left as they are: {why}" for names, why in self.left_together.items()]
        return printable_lines(lines)


def _list_names(said: Mapping[str, _Said]) -> list[tuple[_Said, str]]:
    """Return what is said of columns, once each, with the names of those that it is said of."""
    names: defaultdict[_Said, list[str]] = defaultdict(list)
    for name, one in said.items():
        names[one].append(name)
    return [(one, ", ".join(listed)) for one, listed in names.items()]


def check_made(what: str, is_made: bool, **sizes: int | None) -> None:
    """Raise CallError where a size is asked for and the sketches that would have it are not made."""
    if not is_made and (given := [name for name, value in sizes.items() if value is not None]):
        raise CallError(f"{given[0]} is a size of sketches that are made with {what} only: ask for that too")


def choose_sizes(
    plan: ScanPlan, k: int, lg_k: int, partition_sizes: tuple[int | None, int | None], limit_bytes: int
) -> Sizes:
    """Choose the sizes of sketches by partition, and say what they will take; those of the table are as given.

    Raises
    ------
    CallError
        There are no such sizes, or even the smallest sketches are more than the driver can gather.
    """
    from icestats.scan.scan_job import Sizes

    most_k, most_lg_k = (min(own, asked or own) for own, asked in zip((k, lg_k), partition_sizes, strict=True))
    Sizes(k, lg_k, most_k, most_lg_k).check()
    row_counts = list(plan.partition_row_counts.values())
    if any(partition_sizes):
        size = estimate_size(plan.fields, row_counts, k=most_k, lg_k=most_lg_k)
    else:
        own = estimate_size(plan.fields, [sum(row_counts)], k=k, lg_k=lg_k).size_bytes
        size = choose_size(plan.fields, row_counts, limit_bytes - own, k=k, lg_k=lg_k)
    most = max(limit_bytes, MOST_GATHERED_BYTES)
    if size.size_bytes > most:
        raise CallError(f"{size}, more than the {render_bytes(most)} that are gathered here: name fewer columns")
    sys.stderr.write(f"{size}; what does not fit in {render_bytes(limit_bytes)} with the table's own is left out\n")
    return Sizes(k, lg_k, size.k, size.lg_k)


def fit_partitions(
    found: TableStatistics, max_size_bytes: int | None, find_size_bytes: Callable[[], int], beside_bytes: int = 0
) -> TableStatistics:
    """Leave out what does not fit: in the limit that is asked for, or was of committed sketches, or the default one.

    Parameters
    ----------
    found : TableStatistics
        What a scan or a refresh has found.
    max_size_bytes : int or None
        What is asked for.
    find_size_bytes : callable
        Gives the bytes of the table's data files, which the default is a share of.
    beside_bytes : int
        What sketches by partition of further columns take, which the snapshot has already.
    """
    from icestats.commit.table_statistics_blobs import fit_partition_sketches

    parts = found.by_partition
    if parts is None:
        return found
    if max_size_bytes is not None:
        parts = replace(parts, max_size_bytes=dict.fromkeys(parts.columns, max_size_bytes))
    limits = list(parts.max_size_bytes.values())
    if len(limits) < len(parts.columns):
        limits.append(find_default_limit(find_size_bytes()))
    return fit_partition_sketches(replace(found, by_partition=parts), max(limits, default=0), beside_bytes)


def find_unlisted(found: TableStatistics, blobs: Sequence[CommittedBlob]) -> list[str]:
    """Return the columns whose NDV metadata.json did not list, of the nearest file that has one; or would not at first.

    Parameters
    ----------
    found : TableStatistics
        The columns.
    blobs : sequence of CommittedBlob
        What was committed, that of the nearest file first.
    """
    sketches = [one for one in blobs if one.blob.type == THETA]
    listed = {(one.statistics_path, one.blob.field_ids) for one in sketches if one.listed}
    nearest: dict[tuple[int, ...], str] = {}
    for one in sketches:
        nearest.setdefault(one.blob.field_ids, one.statistics_path)

    def is_listed(column: ColumnStatistics) -> bool:
        path = nearest.get((column.field_id,))
        return column.type not in ZONELESS_TIMES if path is None else (path, (column.field_id,)) in listed

    return [name for name, column in found.columns.items() if not is_listed(column)]


def _commit(
    table: IcebergTable,
    plan: CommitPlan | None,
    partitions: PartitionPlan | None,
    on_step: Callable[[str], None] | None,
) -> tuple[CommitPlan | None, PartitionPlan | None, str]:
    from icestats.commit.partition_statistics_commit import commit_partition_statistics
    from icestats.commit.statistics_commit import commit_statistics

    if plan is not None:
        plan = commit_statistics(replace(plan, partitions=partitions), on_step=on_step)
        partitions = plan.partitions
    if partitions is not None and (plan is None or not plan.is_new):
        partitions = commit_partition_statistics(table, partitions, on_step=on_step)
    return _leave_old(plan, partitions)


def _leave_old(
    plan: CommitPlan | None, partitions: PartitionPlan | None
) -> tuple[CommitPlan | None, PartitionPlan | None, str]:
    """Return what the snapshot does not have already, and what else is to be said of the rest."""
    old = [made for made in (plan, partitions) if made is not None and not made.is_new]
    left = "".join(f"\nwarning: {warning}" for made in old for warning in made.warnings)
    new = partitions if partitions is not None and partitions.is_new else None
    return plan if plan is not None and plan.is_new else None, new, left


def refresh_running_spark(source: Source) -> str:
    """Let Spark sessions of this process read a table anew; return what was done as the last line of a report."""
    if "pyspark" not in sys.modules:
        return ""
    from icestats.spark.session_catalog import refresh_running_sessions

    said = refresh_running_sessions(source)
    return f"\nnote: {said}" if said else ""


def _build_report(plan: CommitPlan, *warnings: str) -> CommitReport:
    """Build the report of a Puffin file: of a plan, or of what has been committed."""
    blobs = [{**_blob_document(b.blob), "columns": list(b.columns), "listed": b.listed} for b in plan.blobs]
    told = [*_explain_running_spark(plan), *(f"warning: {warning}" for warning in warnings)]
    return CommitReport(
        committed=plan.attempts > 0,
        files=({"path": plan.statistics_path, "bytes": len(plan.puffin.data), "blobs": blobs},),
        kept_blobs=tuple(document for document, b in zip(blobs, plan.blobs, strict=True) if b.kept),
        replaced=tuple(_blob_document(blob) for blob in plan.replaced),
        text=printable_lines([*plan.describe().split("\n"), *told]),
        effects=plan.effects,
        warnings=(*plan.warnings, *warnings),
    )


def _explain_running_spark(plan: CommitPlan) -> list[str]:
    """Say whether the Spark that runs in this process estimates 0 rows, where some does."""
    if not plan.trap or "pyspark" not in sys.modules:
        return []
    from icestats.commit.statistics_plan import is_spark_trapped
    from icestats.spark.session import find_running_version

    version = find_running_version()
    if version is None:
        return []
    does = "does so" if is_spark_trapped(version) else "does not"
    return [f"note: the Spark that runs here, {version}, {does}"]


def _build_partition_report(file: PartitionFile, commit: PartitionPlan, *, committed: bool) -> CommitReport:
    """Build the report of a partition statistics file: of what would be committed, or has been."""
    path, before = commit.file.statistics_path, commit.replaced
    columns = f"statistics of {counted(len(file.columns), 'column')}" if file.columns else "no statistics of columns"
    what = f"{counted(file.row_count, 'partition')}, {columns}, {len(file.data):,} bytes of {file.file_format}"
    lines = [f"{'committed' if committed else 'would write'} {path}: {what}"]
    if not committed:
        lines.append("metadata.json, partition-statistics of this snapshot")
        lines += [f"  before: {before or 'none'}", f"  after:  {path}, {len(file.data):,} bytes"]
    if before is not None:
        lines.append(f"  {before} {'stays' if committed else 'would stay'} on storage as an orphan")
    lines += [f"warning: {warning}" for warning in commit.warnings]
    document = {
        "path": path,
        "bytes": len(file.data),
        "blobs": [],
        "type": "partition-statistics",
        "snapshot_id": str(file.snapshot_id),
        "partition_count": file.row_count,
        "columns": list(file.columns),
    }
    replaced = () if before is None else ({"type": "partition-statistics", "path": before},)
    return CommitReport(committed, (document,), (), replaced, printable_lines(lines), warnings=commit.warnings)


def build_removal_report(plan: RemovalPlan, *, removed: bool) -> RemovalReport:
    """Build the report of a removal: of a plan, or of what has been done."""
    entries = tuple(
        {
            "snapshot_id": str(entry.snapshot_id),
            "path": None if removal.before is None else removal.before.statistics_path,
            "restored_path": None if removal.after is None else removal.after.statistics_path,
        }
        for removal in plan.removals
        if (entry := removal.before or removal.after) is not None
    )
    befores, afters = ([getattr(one, name) for one in plan.removals] for name in ("before", "after"))
    taken, restored = (
        tuple(_file_document(plan, entry) for entry in some if entry is not None) for some in (befores, afters)
    )
    return RemovalReport(removed, entries, plan.describe(done=removed), taken, restored, plan.effects, plan.notes, plan)


def carry_out_removal(source: Source, plan: RemovalPlan) -> RemovalReport:
    """Do exactly what a removal was planned to, or raise CommitError where others have changed the entries since."""
    from icestats.commit.statistics_removal import commit_removal

    report = build_removal_report(commit_removal(plan), removed=True)
    return replace(report, text=f"{report.text}{refresh_running_spark(source)}")


def _file_document(plan: RemovalPlan, entry: Entry) -> dict[str, Any]:
    document = {"path": entry.statistics_path, "bytes": entry.file_size_in_bytes, "blobs": [], "is_read": True}
    if not isinstance(entry, StatisticsFile):
        return {**document, "type": "partition-statistics"}
    blobs = plan.find_blobs(entry)
    named = [{"type": type_, "columns": list(columns)} for type_, columns in blobs or ()]
    return {**document, "blobs": named, "is_read": blobs is not None}


def _join_reports(reports: Sequence[CommitReport]) -> CommitReport:
    """Join the reports of all files of a commit."""
    return CommitReport(
        committed=all(report.committed for report in reports),
        files=tuple(file for report in reports for file in report.files),
        kept_blobs=tuple(blob for report in reports for blob in report.kept_blobs),
        replaced=tuple(blob for report in reports for blob in report.replaced),
        text="\n".join(report.text for report in reports),
        effects=tuple(effect for report in reports for effect in report.effects),
        warnings=tuple(warning for report in reports for warning in report.warnings),
    )


def _blob_document(blob: PuffinBlob) -> dict[str, Any]:
    return {
        "type": blob.type,
        "field_ids": list(blob.field_ids),
        "snapshot_id": str(blob.snapshot_id),
        "length": blob.length,
        "properties": dict(blob.properties),
    }
