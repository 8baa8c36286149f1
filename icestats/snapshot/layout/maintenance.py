"""What is wrong with a layout, on which evidence, and the statements of Spark SQL that mend it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from icestats.answers.arrays import to_numpy
from icestats.answers.findings import Finding, order_findings
from icestats.answers.text import can_stand, counted, escape_json, quote_name, quote_text, render_bytes
from icestats.iceberg.metadata import PartitionField, PartitionSpec
from icestats.iceberg.summary import parse_count
from icestats.snapshot.layout.clustering import FieldLayout, LateData, Spread, predict_manifest_depth
from icestats.snapshot.layout.file_set import FileSet

NEXT = ";\n"
"""Between two statements."""
_REWRITE_ALL = "options => map('rewrite-all', 'true')"
_MANIFEST_SIZE = "commit.manifest.target-size-bytes"
_FILE_SIZE = "write.target-file-size-bytes"
_FORMAT = "write.format.default"
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*|<\w+>", re.ASCII)
"""What Spark's parser takes for a name without backticks, or a reader fills in."""
_NO_STATEMENT = "-- no statement: a name has what a shell of SQL ends a statement at, or fills in"
_OTHER_SNAPSHOT = " /* rewrites branch main, not the snapshot that was measured */"
_DEFAULTS = {_MANIFEST_SIZE: 8 << 20, _FILE_SIZE: 512 << 20}


@dataclass(frozen=True, slots=True)
class Maintenance:
    """What statements are about: a table in a catalog, and its properties."""

    catalog: str
    identifier: tuple[str, ...]
    """Namespace and name, part by part: a part may have dots of its own."""
    properties: Mapping[str, str]
    is_current: bool = True
    """Whether the snapshot is the table's current one, whose files procedures rewrite: not those of another branch."""

    @property
    def manifest_size_bytes(self) -> int:
        """The size that manifests of the table are to have."""
        return self._size(_MANIFEST_SIZE)

    @property
    def file_size_bytes(self) -> int:
        """The size that data files of the table are to have."""
        return self._size(_FILE_SIZE)

    def rewrite_manifests(self, sort_by: str | None = None, manifest_size_bytes: int | None = None) -> str:
        """Return what regroups files in manifests.

        Examples
        --------
        >>> Maintenance("prod", ("db", "events"), {}).rewrite_manifests("event_time_day")
        "CALL `prod`.system.rewrite_manifests(table => 'db.events', sort_by => array('event_time_day'))"
        """
        order = f", sort_by => array({_quote(sort_by)})" if sort_by else ""
        call = self._call("rewrite_manifests", order)
        if manifest_size_bytes is None or manifest_size_bytes == self.manifest_size_bytes:
            return call
        return f"{self.set_property(_MANIFEST_SIZE, str(manifest_size_bytes))}{NEXT}{call}"

    def set_property(self, name: str, value: str) -> str:
        """Return what sets a table property."""
        return self._alter(f"SET TBLPROPERTIES ({_quote(name)} = {_quote(value)})")

    def sort_files(self, columns: Sequence[str], *, along_curve: bool = True) -> str:
        """Return what sorts the files of each partition: by one column, or by several along a z-order curve or in turn.

        Examples
        --------
        >>> "sort_order => 'zorder(`a`, `b`)'" in Maintenance("prod", ("db", "events"), {}).sort_files(("a", "b"))
        True
        """
        names = [quote_name(column) for column in columns]
        is_curve = along_curve and len(names) > 1
        order = f"zorder({', '.join(names)})" if is_curve else ", ".join(f"{name} ASC NULLS LAST" for name in names)
        sorting = f", strategy => 'sort', sort_order => {_quote(order)}"
        return self._call("rewrite_data_files", f"{sorting}, {_REWRITE_ALL}")

    def change_partitions(self, dropped: Sequence[str], added: Sequence[str]) -> str:
        """Return what partitions a table anew: fields as Spark's DDL has them, and all files rewritten.

        Examples
        --------
        >>> print(Maintenance("prod", ("db", "events"), {}).change_partitions(["day(`at`)"], ["month(`at`)"]))
        ALTER TABLE `prod`.`db`.`events` DROP PARTITION FIELD day(`at`);
        ALTER TABLE `prod`.`db`.`events` ADD PARTITION FIELD month(`at`);
        CALL `prod`.system.rewrite_data_files(table => 'db.events', options => map('rewrite-all', 'true'))
        """
        words = [("DROP", term) for term in dropped] + [("ADD", term) for term in added]
        if not all(map(can_stand, (*self.identifier, *dropped, *added))):
            return _NO_STATEMENT
        changes = [self._alter(f"{word} PARTITION FIELD {term}") for word, term in words]
        return NEXT.join([*changes, self._call("rewrite_data_files", f", {_REWRITE_ALL}")])

    def compact_files(self) -> str:
        """Return what puts small files together."""
        return self._call("rewrite_data_files", "")

    def apply_deletes(self) -> str:
        """Return what rewrites the data files that deletes apply to, and takes out delete files that are left over."""
        options = "options => map('delete-file-threshold', '1', 'remove-dangling-deletes', 'true')"
        return self._call("rewrite_data_files", f", {options}")

    def _alter(self, change: str) -> str:
        name = quote_name(self.catalog, *self.identifier)
        return f"ALTER TABLE {name} {change}" if all(map(can_stand, self.identifier)) else _NO_STATEMENT

    def _call(self, procedure: str, more: str) -> str:
        # Spark parses the name that is in the text once more, and fills in variables then, however it was escaped.
        if any("${" in part for part in self.identifier):
            return _NO_STATEMENT
        names = (part if _PLAIN_NAME.fullmatch(part) else quote_name(part) for part in self.identifier)
        table = _quote(".".join(names))
        call = f"CALL {quote_name(self.catalog)}.system.{procedure}(table => {table}{more})"
        return call + ("" if self.is_current else _OTHER_SNAPSHOT)

    def _size(self, name: str) -> int:
        return parse_count(self.properties.get(name)) or _DEFAULTS[name]


def _quote(text: str) -> str:
    r"""Return text as Spark's SQL has it, without what a shell ends a statement at, or fills in.

    Examples
    --------
    >>> print(_quote("it's ${env:HOME};"))
    'it\'s \u0024{env:HOME}\u003b'
    """
    return "".join(c if c.isprintable() and c not in ";$" else escape_json(c) for c in quote_text(text))


_LEAST_GAIN = 2.0
"""A rewrite is proposed where it is predicted to open so many times fewer manifests."""
_DEEP = 8.0
"""Files of one partition that a key lies in, from which on it is worth a warning."""
_MIXED_SHARE = 0.5


def build_findings(
    files: FileSet,
    fields: Sequence[FieldLayout],
    spread: Spread,
    late: LateData | None,
    delete_file_count: int,
    maintenance: Maintenance,
    spec: PartitionSpec,
) -> tuple[Finding, ...]:
    """Build the findings of a layout, the gravest first.

    Parameters
    ----------
    files : FileSet
        The live data files.
    fields : sequence of FieldLayout
        How the ranges of partition fields and columns overlap.
    spread : Spread
        How files, manifests and partitions go together.
    late : LateData or None
        What came late.
    delete_file_count : int
        Live delete files.
    maintenance : Maintenance
        Makes the statements.
    spec : PartitionSpec
        The table's current one: Spark rewrites its manifests alone, and writes files anew by it.
    """
    found = [
        *_find_mixed_manifests(files, fields, maintenance, spec),
        *_find_unsorted_columns(files, fields, spread, maintenance, spec),
        *_find_missing_bounds(fields, maintenance),
        *_find_small_files(spread, maintenance),
        *_find_late(files, fields, late, maintenance, spec),
        *_find_deletes(delete_file_count, spread, maintenance),
    ]
    return order_findings(found)


def _cost_of_manifests(files: FileSet) -> str:
    size = int(to_numpy(files.manifests["manifest_length"]).sum())
    return f"rewrites {counted(files.manifests.num_rows, 'manifest')} ({render_bytes(size)}), no data file"


def _is_rewritten(files: FileSet, field: PartitionField, spec: PartitionSpec) -> bool:
    """Whether all manifests with values of a partition field are of the current spec."""
    return (
        field in spec.fields
        and not files.partition_metrics[field.field_id].lower.known[files.spec_ids != spec.spec_id].any()
    )


def _find_mixed_manifests(
    files: FileSet, fields: Sequence[FieldLayout], maintenance: Maintenance, spec: PartitionSpec
) -> Iterator[Finding]:
    total = int(to_numpy(files.manifests["manifest_length"]).sum())
    sorted_already = [f for f in fields if f.kind == "partition field" and f.manifests.share_opened < _MIXED_SHARE]
    for field, layout in zip(files.partition_fields, fields, strict=False):
        now = layout.manifests
        if now.range_count < 2 or not _is_rewritten(files, field, spec):
            continue
        # Of the table's target size, or else as many manifests as there are.
        for size in (maintenance.manifest_size_bytes, -(-total // now.range_count)):
            mean, count = predict_manifest_depth(files, field.field_id, size)
            if mean * size * _LEAST_GAIN > now.mean * total / now.range_count or mean * _LEAST_GAIN > now.mean:
                continue
            others = [other.name for other in sorted_already if other is not layout]
            but = f"; lookups by {', '.join(others)} would open more than now" if others else ""
            yield Finding(
                "note" if others else "warning",
                f"Manifests overlap in {field.name}: a lookup opens more of them than it needs",
                f"one key lies in {now.mean:.1f} of {now.range_count:,} manifests on average; clustered by it, in "
                f"manifests of {size:,} bytes, it would be {mean:.1f} of {count:,}{but}",
                maintenance.rewrite_manifests(field.name, size),
                _cost_of_manifests(files),
                is_lasting=size != maintenance.manifest_size_bytes,
                subject="manifests",
                fields=(field.name,),
            )
            break


def _can_be_on_curve(field: FieldLayout) -> bool:
    # Iceberg's SparkZOrderUDF takes no decimals, and finds columns by names that Spark reads as its own.
    return not field.type.startswith("decimal") and not set("`.") & set(field.name)


def _find_unsorted_columns(
    files: FileSet, fields: Sequence[FieldLayout], spread: Spread, maintenance: Maintenance, spec: PartitionSpec
) -> Iterator[Finding]:
    columns = [field for field in fields if field.kind == "column"]
    asked = [
        field
        for field_id, field in zip(files.column_metrics, columns, strict=True)
        if field.files_of_partition.mean and not _is_constant(field_id, field.type, spec)
    ]
    deep = [field for field in asked if field.files_of_partition.mean >= _LEAST_GAIN]
    depth = max((field.mixed_files_of_partition.mean for field in deep), default=0.0)
    is_curve = all(map(_can_be_on_curve, asked))
    if depth >= _LEAST_GAIN and _can_be_mended(files, asked, is_curve=is_curve):
        names = [field.name for field in deep]
        is_partitioned = any(field.kind == "partition field" for field in fields)
        whose = "Files of one partition" if is_partitioned else "Files"
        yield Finding(
            "warning" if depth > _DEEP else "note",
            f"{whose} overlap in {', '.join(names)}: bounds rule out few of them",
            "; ".join(
                f"one key of {f.name} lies in {f.files_of_partition.mean:.1f} files of its partition on average, "
                f"{f.files_of_partition.max:,} at most"
                for f in deep
            ),
            maintenance.sort_files([field.name for field in asked], along_curve=is_curve),
            f"rewrites all {counted(spread.file_count, 'data file')} ({render_bytes(spread.size_bytes)})",
            subject="files",
            fields=tuple(names),
        )


def _can_be_mended(files: FileSet, columns: Sequence[FieldLayout], *, is_curve: bool) -> bool:
    """Whether sorting by some columns together leaves a key in half as many files of its partition, or fewer.

    Along a curve of m columns, a key of one lies in about n^(1 - 1/m) of n files. In turn, the first column is sorted.
    """
    depths = [field.mixed_files_of_partition.mean for field in columns]
    if not is_curve:
        whole = [field.files_of_partition.mean for field in columns]
        return min(mixed or mean for mixed, mean in zip(depths, whole, strict=True)) >= _LEAST_GAIN
    mixed = [depth for depth in depths if depth]
    _, places, counts = np.unique(files.partitions, return_inverse=True, return_counts=True)
    file_count = np.average(counts[places], weights=files.record_counts)
    return bool(np.mean(mixed) >= _LEAST_GAIN * file_count ** (1 - 1 / len(mixed)))


def _is_constant(field_id: int, type_text: str, spec: PartitionSpec) -> bool:
    """Whether all rows of a partition have one value of a column: no order of them tells its files apart."""
    exact = ("identity", "day") if type_text == "date" else ("identity",)
    return any(field.source_id == field_id and field.transform in exact for field in spec.fields)


def _find_missing_bounds(fields: Sequence[FieldLayout], maintenance: Maintenance) -> Iterator[Finding]:
    # Iceberg's writers of Avro measure no column, whatever is asked for.
    is_avro = maintenance.properties.get(_FORMAT, "").lower() == "avro"
    for field in fields:
        files = field.files
        if field.kind == "column" and files.unknown_count > 0.01 * files.range_count:
            yield Finding(
                "warning",
                f"Files without bounds of {field.name} are read whatever is looked for",
                f"{files.unknown_count:,} of {files.range_count:,} files have no bounds of it",
                maintenance.set_property(_FORMAT, "parquet")
                if is_avro
                else maintenance.set_property(f"write.metadata.metrics.column.{field.name}", "truncate(16)"),
                "rewrites nothing: files written from then on have bounds, those that are there stay without",
                is_lasting=True,
                subject="files",
                fields=(field.name,),
            )


def _find_small_files(spread: Spread, maintenance: Maintenance) -> Iterator[Finding]:
    if spread.crowded_partition_count:
        yield Finding(
            "warning",
            "Small files: each of them costs a manifest entry and an opened file",
            f"{spread.small_file_count:,} of {spread.file_count:,} files are below 75% of "
            f"{spread.target_file_size_bytes:,} bytes (median {spread.median_file_size_bytes:,}); "
            f"{spread.crowded_partition_count:,} of {spread.partition_count:,} partitions have five or more",
            maintenance.compact_files(),
            f"rewrites up to {spread.small_file_count:,} small files ({render_bytes(spread.small_file_bytes)})",
            subject="sizes",
        )


def _is_widened(files: FileSet, fields: Sequence[FieldLayout], name: str) -> bool:
    """Whether manifests of a partition field overlap more than those that are clustered by it could."""
    place = [field.name for field in files.partition_fields].index(name)
    now, total = fields[place].manifests, int(to_numpy(files.manifests["manifest_length"]).sum())
    size = max(-(-total // max(now.range_count, 1)), 1)
    # A key of clustered manifests may lie in one more: where one manifest ends and the next begins.
    return now.mean >= predict_manifest_depth(files, files.partition_fields[place].field_id, size)[0] + 1.0


def _find_late(
    files: FileSet,
    fields: Sequence[FieldLayout],
    late: LateData | None,
    maintenance: Maintenance,
    spec: PartitionSpec,
) -> Iterator[Finding]:
    if late is not None and late.file_count and _is_widened(files, fields, late.field):
        is_current = any(field.name == late.field for field in spec.fields)
        yield Finding(
            "note",
            f"Late data: files of an older {late.field} came after newer ones, and widen the manifests they are in",
            f"{late.file_count:,} files ({late.share:.1%}), {late.record_count:,} records, {late.mean_units:.1f} late "
            f"on average and {late.max_units:,} at most, in units of {late.field}",
            maintenance.rewrite_manifests(late.field if is_current else None),
            _cost_of_manifests(files),
            subject="manifests",
        )


def _find_deletes(count: int, spread: Spread, maintenance: Maintenance) -> Iterator[Finding]:
    if count:
        yield Finding(
            "note",
            "Delete files are read together with the data files that they apply to",
            f"{counted(count, 'delete file')} beside {counted(spread.file_count, 'data file')}",
            maintenance.apply_deletes(),
            "rewrites the data files that deletes apply to; how many is not known",
            subject="files",
        )
