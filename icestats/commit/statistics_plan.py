"""What the commit of a statistics file would write and change: built from values, without touching storage."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING

from icestats.answers.text import counted, printable_lines
from icestats.commit.earlier_blobs import CARRIES_EARLIER
from icestats.commit.partition_statistics_commit import PartitionPlan
from icestats.commit.puffin_writer import CarriedBlob, NewBlob, PuffinBytes, hides, is_own, write_puffin
from icestats.commit.replayed_statistics import CHANGES, describe_changes, read_content
from icestats.commit.table_state import (
    BlobKey,
    Column,
    ExistingFile,
    blob_key,
    current_columns,
    list_further_paths,
    list_statistics,
    new_metadata_path,
    table_name,
    warn_of_refusal,
)
from icestats.errors import CallError
from icestats.iceberg.metadata import BlobMetadata, PartitionStatisticsFile, StatisticsFile, walk_ancestors
from icestats.read.puffin.puffin import PuffinBlob
from icestats.read.puffin.statistics_age import THETA
from icestats.read.puffin.statistics_files import HIVE_COLUMNS
from icestats.read.puffin.statistics_users import (
    TIME_TRAP,
    ZONELESS_TIMES,
    find_partition_values,
    find_presto_table_refusal,
    is_found_by_spark,
    is_zeroed_by_spark,
    list_ndv_fields,
)

if TYPE_CHECKING:
    from pyiceberg.table import Table


# The first version of Spark that estimates by the NDV where there are no bounds (SPARK-56485).
_SPARK_WITHOUT_TRAP = (4, 2)


@dataclass(frozen=True, slots=True)
class CommitRequest:
    """What was asked for: all that is needed to plan anew when the table has changed."""

    snapshot_id: int
    blobs: tuple[NewBlob, ...]
    listed_field_ids: frozenset[int] | None
    """Fields whose Theta sketch is listed in metadata.json; None for all."""
    keep_earlier: bool = True
    """Whether the file gets the blobs that ancestors' files have, of what it has not itself."""
    as_listed: bool = False
    """Whether what the snapshot's file lists stays so, whatever these fields are."""


@dataclass(frozen=True, slots=True)
class PlannedBlob:
    """A blob of the file that would be written."""

    blob: PuffinBlob
    columns: tuple[str, ...]
    """Names of its fields; `#7` for a field that the current schema no longer has."""
    listed: bool
    """Whether metadata.json lists it; otherwise it is in the file only."""
    kept: bool
    """Carried over, byte for byte, from the file that the snapshot had or from an ancestor's."""


@dataclass(frozen=True, slots=True)
class CommitPlan:
    """What a commit would write and change in metadata.json, or has; `print(plan.describe())` shows it."""

    puffin: PuffinBytes
    blobs: tuple[PlannedBlob, ...]
    replaced: tuple[PuffinBlob, ...]
    """Blobs of the file that the snapshot has, which new ones of the same type and fields replace."""
    before: StatisticsFile | None
    """The snapshot's entry in metadata.json's `statistics` as it is."""
    after: StatisticsFile
    """The entry as it would be."""
    effects: tuple[str, ...]
    """What engines will do differently."""
    warnings: tuple[str, ...]
    current_schema_id: int
    trap: str
    """What versions of Spark estimate 0 rows for, see `is_spark_trapped`; nothing where no listed column is so."""
    is_new: bool
    """Whether the file would differ from the one that the snapshot has."""
    request: CommitRequest = field(repr=False)
    table: Table = field(repr=False, compare=False)
    attempts: int = 0
    """How often the commit was tried; 0 as long as it is a plan."""
    partitions: PartitionPlan | None = None
    """The partition statistics file that the same commit registers."""

    @property
    def table_name(self) -> str:
        """The table's name as a person writes it."""
        return table_name(self.table)

    @property
    def snapshot_id(self) -> int:
        """The snapshot that the blobs are of."""
        return self.after.snapshot_id

    @property
    def statistics_path(self) -> str:
        """Where the file goes."""
        return self.after.statistics_path

    @property
    def files(self) -> list[tuple[StatisticsFile | PartitionStatisticsFile, bytes]]:
        """The files that the commit writes, each with its entry."""
        puffin = (self.after, self.puffin.data)
        return [puffin] if self.partitions is None else [puffin, (self.partitions.file, self.partitions.data)]

    @property
    def kept(self) -> tuple[PlannedBlob, ...]:
        """The blobs that are carried over."""
        return tuple(blob for blob in self.blobs if blob.kept)

    def describe(self) -> str:
        """Return the plan as plain text, a line a file, blob, entry and warning; once committed, without the blobs."""
        size, blobs = f"{len(self.puffin.data):,} bytes", counted(len(self.blobs), "blob")
        if self.attempts:
            replaced = f", replaced {len(self.replaced)}" if self.replaced else ""
            done = (
                f"committed {self.statistics_path}: {size}, {blobs} "
                f"({sum(b.listed for b in self.blobs)} listed in metadata.json, {len(self.kept)} kept{replaced}) "
                f"for snapshot {self.snapshot_id}"
            )
            traps = [f"effect: {self.trap}"] if self.trap else []
            return printable_lines([done, *traps, *(f"warning: {warning}" for warning in self.warnings)])
        lines = [
            f"table {self.table_name}, snapshot {self.snapshot_id}",
            f"would write {self.statistics_path}: {size}, {blobs} "
            f"({len(self.blobs) - len(self.kept)} new, {len(self.kept)} kept; {len(self.replaced)} replaced), "
            f"footer {self.puffin.footer_size_bytes:,} bytes",
        ]
        for planned in self.blobs:
            where = "hidden from engines" if planned.blob.is_hidden else "footer only"
            if planned.listed:
                where = f"listed, {_ndv_text(planned.blob)}"
            origin = "kept" if planned.kept else "new "
            columns = ", ".join(planned.columns) or "the table"
            age = "" if planned.blob.snapshot_id == self.snapshot_id else f", of snapshot {planned.blob.snapshot_id}"
            lines.append(f"  {origin} {planned.blob.type} of {columns}: {planned.blob.length:,} bytes, {where}{age}")
        lines += [f"  replaced {b.type} of fields {list(b.field_ids)}: {b.length:,} bytes" for b in self.replaced]
        lines.append("would write a new metadata.json; changed in it: the statistics of this snapshot")
        lines += [f"  before: {entry_text(self.before)}", f"  after:  {entry_text(self.after)}"]
        if self.before is not None:
            size = f"{self.before.file_size_in_bytes:,} bytes"
            lines.append(f"  {self.before.statistics_path} would stay on storage as an orphan, {size}")
        lines += [f"effect: {effect}" for effect in self.effects]
        lines += [f"warning: {warning}" for warning in self.warnings]
        return printable_lines(lines)


def build_commit_plan(
    table: Table,
    request: CommitRequest,
    before: StatisticsFile | None,
    existing: Sequence[ExistingFile],
    earlier: Sequence[ExistingFile] = (),
    unread: Sequence[str] = (),
    carries: str = "",
    base: Sequence[ExistingFile] | None = None,
) -> CommitPlan:
    """Build the plan of a commit.

    Parameters
    ----------
    table : pyiceberg.table.Table
        The table to commit to; only its metadata is read here.
    request : CommitRequest
        What was asked for.
    before : StatisticsFile or None
        The snapshot's entry in metadata.json.
    existing : sequence of ExistingFile
        Files of the snapshot whose blobs are carried over, the most important one first.
    earlier : sequence of ExistingFile
        What is carried forward from ancestors' files, as `read_earlier` gives it.
    unread : sequence of str
        Why files of ancestors could not be read.
    carries : str
        Which files of ancestors need not be looked at again, as `read_earlier` says it.
    base : sequence of ExistingFile, optional
        The files that the snapshot has, where others are carried over.

    Raises
    ------
    CallError
        A Theta blob that would be listed has no `ndv` that is an integer in text.
    """
    columns = current_columns(table)
    new_keys = {blob_key(blob) for blob in request.blobs}
    carried, replaced = _sort_existing(existing, new_keys)
    carried += [blob for file in earlier for blob in file.blobs]
    properties = {key: value for file in reversed(existing) for key, value in file.properties.items()}
    properties.pop(CARRIES_EARLIER, None)
    if carries:
        properties[CARRIES_EARLIER] = carries
    there = existing if base is None else base
    present = read_content(there)
    written: list[NewBlob | CarriedBlob] = [*request.blobs, *carried]
    written.sort(key=hides)
    stored = {(key, held.stored) for key, (blobs, _) in present.items() for held in blobs}
    joined = {blob_key(one.blob) for one in carried if (blob_key(one.blob), one.stored) not in stored}
    keys = [blob_key(one.blob if isinstance(one, CarriedBlob) else one) for one in written]
    still = {blob_key(entry) for file in existing for entry in file.entry.blobs}
    path = new_metadata_path(table, f"{request.snapshot_id}-", ".stats")
    properties[CHANGES] = describe_changes(
        (path, None if before is None else before.statistics_path),
        keys,
        (new_keys, joined),
        {k: v for k, v in present.items() if k not in still},
        request.snapshot_id,
    )
    puffin = write_puffin(written, properties=properties)
    warnings = _Warnings(columns, [*warn_of_age(table, request.snapshot_id), *warn_of_refusal(table)])
    warnings.check_file(puffin)
    for further in list_further_paths(table, request.snapshot_id):
        warnings.add(f"{further} is of this snapshot too: the new file takes its place as well")
    for reason in unread:
        warnings.add(f"an ancestor's statistics are not carried forward: {reason}")
    known = {one.field_ids for one in ([] if before is None else before.blobs) if one.type == THETA}
    asked = request.listed_field_ids
    if request.as_listed and asked is not None:
        asked = asked.difference(*(fields for kind, fields in present if kind == THETA)).union(*known)
    listed = [entry for blob in request.blobs if (entry := _list_new(blob, asked, known, warnings))]
    kept = _kept_entries([*existing, *earlier], new_keys, warnings)
    warnings.check_kept(kept, request.snapshot_id)
    after = StatisticsFile(
        request.snapshot_id,
        path,
        len(puffin.data),
        puffin.footer_size_bytes,
        (*listed, *kept),
    )
    for line in _find_hidden_ndv(table, before, after):
        warnings.add(line)
    trap = explain_trap(after.blobs, table)
    return CommitPlan(
        puffin=puffin,
        blobs=_planned(puffin, new_keys, after, columns),
        replaced=replaced,
        before=before,
        after=after,
        effects=_explain_effects(before, after, columns, trap, table.metadata.format_version),
        warnings=tuple(warnings.lines),
        current_schema_id=table.metadata.current_schema_id,
        trap=trap,
        is_new=not _is_same(puffin, after, before, there),
        request=request,
        table=table,
    )


def _is_same(
    puffin: PuffinBytes, after: StatisticsFile, before: StatisticsFile | None, existing: Sequence[ExistingFile]
) -> bool:
    """Whether the snapshot's file has the same blobs already, and its entry lists the same."""
    if len(existing) != 1 or existing[0].entry != before:
        return False
    present = {blob_key(old.blob): (replace(old.blob, offset=0), old.stored) for old in existing[0].blobs}
    planned = {
        blob_key(blob): (replace(blob, offset=0), puffin.data[blob.offset : blob.offset + blob.length])
        for blob in puffin.blobs
    }
    listed = {blob_key(entry): entry for entry in after.blobs}
    return present == planned and listed == {blob_key(entry): entry for entry in existing[0].entry.blobs}


def _explain_effects(
    before: StatisticsFile | None,
    after: StatisticsFile,
    columns: Mapping[int, Column],
    trap: str,
    format_version: int,
) -> tuple[str, ...]:
    """Return what engines do differently once an entry is in metadata.json: the facts of `engine_statistics.toml`."""
    listed = _columns_with_ndv(after.blobs, columns)
    lost = [] if before is None else [one for one in _columns_with_ndv(before.blobs, columns) if one not in listed]
    refusal = find_presto_table_refusal(format_version, ((one.name, one.type) for one in columns.values()))
    effects = []
    if lost:
        effects.append(
            f"Spark and Trino plan this snapshot without the NDV of {_names(lost)}, which metadata.json lists no "
            "longer, Impala with another snapshot's, if one has any"
        )
    if not listed:
        as_before = "" if lost else "Spark and Impala plan as before, "
        effects.append(
            f"no NDV is listed in metadata.json: {as_before}Trino finds no NDV in this file and looks no further; "
            f"{refusal or 'Presto reads the file itself'}"
        )
        return tuple(effects)
    names, of_spark = _names(listed), [column for column in listed if is_found_by_spark(column.name)]
    if of_spark:
        effects.append(
            f"Spark with spark.sql.cbo.enabled=true plans with the NDV of {_names(of_spark)}, for exactly this "
            "snapshot: the next commit of data leaves it without; a session that has the table in its cache, after "
            "REFRESH TABLE"
        )
    effects += [
        f"Trino plans with the NDV of {names}, for this snapshot and those that descend from it",
        refusal or f"Presto plans with the NDV of {names} where no other file is nearer in time",
        f"Impala with --enable_reading_puffin_stats, the default after 4.5, plans with the NDV of {names}, until a "
        "newer one is listed",
        f"drop one of {names} only after remove_statistics: Spark's joins fail on a listed column that is gone",
    ]
    return (*effects, trap) if trap else tuple(effects)


def warn_of_age(table: Table, snapshot_id: int) -> tuple[str, ...]:
    """Return what Spark does with statistics of a snapshot that is not the current one; nothing for the current one."""
    if table.metadata.current_snapshot_id in (None, snapshot_id):
        return ()
    return (f"snapshot {snapshot_id} is not the current one: Spark plans the current one without these statistics",)


def _find_hidden_ndv(table: Table, before: StatisticsFile | None, after: StatisticsFile) -> Iterator[str]:
    """Say which NDVs a file that does not list them hides from engines that look at the nearest file only.

    Trino and StarRocks take all NDVs from the first file that they find, from the snapshot back over its ancestors.
    """
    if before is not None and list_ndv_fields(before.blobs):
        return
    listed = {file.snapshot_id: ids for file in list_statistics(table) if (ids := list_ndv_fields(file.blobs))}
    snapshots = {snapshot.snapshot_id: snapshot for snapshot in table.metadata.snapshots}
    ancestors = islice(walk_ancestors(snapshots, snapshots.get(after.snapshot_id)), 1, None)
    older = next((one.snapshot_id for one in ancestors if one.snapshot_id in listed), None)
    own, columns = list_ndv_fields(after.blobs), current_columns(table)
    hidden = () if older is None else [columns[i].name for i in listed[older] if i not in own and i in columns]
    if hidden:
        yield (
            f"Trino reads the nearest statistics file only: this one, which lists no NDV of {', '.join(hidden)}, hides "
            f"those of snapshot {older}; refresh the sketches too where Trino needs them"
        )


def _names(columns: Iterable[Column]) -> str:
    return ", ".join(column.name for column in columns)


def is_spark_trapped(version: str) -> bool:
    """Whether a version of Spark estimates 0 rows for an equality on a number that has an NDV and no bounds.

    Examples
    --------
    >>> is_spark_trapped("4.1.4"), is_spark_trapped("4.2.0")
    (True, False)
    """
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2]) < _SPARK_WITHOUT_TRAP


def _columns_with_ndv(listed: Iterable[BlobMetadata], columns: Mapping[int, Column]) -> list[Column]:
    return [columns[field_id] for field_id in list_ndv_fields(listed) if field_id in columns]


def explain_trap(listed: Iterable[BlobMetadata], table: Table) -> str:
    """Return what versions of Spark estimate 0 rows for, of the blobs that metadata.json lists; nothing: for none."""
    of_partitions = find_partition_values(table.specs().values())
    columns = {i: column for i, column in current_columns(table).items() if i not in of_partitions}
    found_by_spark = [column for column in _columns_with_ndv(listed, columns) if is_found_by_spark(column.name)]
    equal = [column.name for column in found_by_spark if is_zeroed_by_spark(column.type)]
    several = [
        column.name for column in found_by_spark if column.name not in equal and is_zeroed_by_spark(column.type, 2)
    ]
    found = (("an equality on ", equal), ("IN or <=> on ", several))
    said = " and ".join(what + ", ".join(names) for what, names in found if names)
    before = ".".join(str(number) for number in _SPARK_WITHOUT_TRAP)
    return said and (
        f"Spark before {before} with spark.sql.cbo.enabled=true estimates 0 rows for {said} "
        "(an NDV without bounds, SPARK-52868): leave them out with list_ndv where that matters"
    )


class _Warnings:
    """What a person should read before the commit, each said once."""

    def __init__(self, columns: Mapping[int, Column], lines: list[str]) -> None:
        self.columns = columns
        self.lines = lines

    def add(self, line: str) -> None:
        if line not in self.lines:
            self.lines.append(line)

    def can_list(self, blob: NewBlob | BlobMetadata) -> bool:
        """Whether engines accept an entry: Spark fails on no field and an unknown one, and takes the first of several.

        Source: `SparkScan.estimateStatistics`, which groups all entries by `fields().get(0)`.
        """
        gone = [field_id for field_id in blob.field_ids if field_id not in self.columns]
        if gone:
            self.add(f"field {gone[0]} is not in the current schema: its blob is not listed (Spark would fail)")
        elif not blob.field_ids:
            self.add("a blob names no fields: it is not listed (Spark would fail on it)")
        elif is_own(blob):
            self.add(f"{blob.type} is not listed any more, as others have done: PyIceberg refuses the table over it")
        elif blob.type == THETA and len(blob.field_ids) > 1:
            first = self.columns[blob.field_ids[0]].name
            self.add(f"an NDV of {len(blob.field_ids)} fields is not listed (Spark would take it for that of {first})")
        else:
            return True
        return False

    def can_list_time(self, blob: NewBlob, *, is_asked: bool) -> bool:
        """Whether an NDV may be listed: one of timestamps without a zone only if it is asked for, or is listed now."""
        column = self.columns[blob.field_ids[0]]
        if column.type not in ZONELESS_TIMES:
            return True
        listed = "is listed" if is_asked else "is not listed; list_ndv lists it, for Trino"
        self.add(f"the NDV of {column.name} {listed}: {TIME_TRAP}")
        return is_asked

    def check_file(self, puffin: PuffinBytes) -> None:
        """Say which engines are blind to what: `write_puffin` says why."""
        seen = {blob.type for blob in puffin.blobs if not blob.is_hidden}
        if HIVE_COLUMNS in seen and len(seen) > 1:
            # IcebergTableUtil.readColStats
            self.add(
                "Hive's own statistics of columns are kept, and it reads them no longer: it wants no other blobs beside"
            )
        for blob in puffin.blobs:
            if blob.is_hidden and blob.type == THETA and len(blob.field_ids) == 1:
                names = [self.columns[i].name if i in self.columns else f"#{i}" for i in blob.field_ids]
                self.add(
                    f"the Theta sketch of {names[0]} is large, so it is hidden from engines: Presto plans without its "
                    "NDV, and Trino's INSERT drops it"
                )
            elif not blob.is_hidden and len(blob.field_ids) != 1:
                self.add(
                    f"{blob.label}, which others wrote, is kept as it is: Presto plans without any statistics of this "
                    "table, since it wants exactly one field in each blob"
                )

    def check_kept(self, kept: Sequence[BlobMetadata], snapshot_id: int) -> None:
        older: dict[int, list[str]] = {}
        for entry in (entry for entry in kept if entry.type == THETA):
            names = ", ".join(self.columns[field_id].name for field_id in entry.field_ids)
            ndv = entry.properties.get("ndv")
            if ndv is not None and not ndv.isdecimal():
                self.add(
                    f"the kept entry of {names} has ndv {ndv!r}, no integer: Trino drops all of the table's statistics"
                )
            if entry.snapshot_id != snapshot_id:
                older.setdefault(entry.snapshot_id, []).append(names)
        for made_for, columns in older.items():
            self.add(f"the kept NDV of {', '.join(columns)} was made for snapshot {made_for}, not for this one")


def _sort_existing(
    existing: Sequence[ExistingFile], new_keys: set[BlobKey]
) -> tuple[list[CarriedBlob], tuple[PuffinBlob, ...]]:
    carried: list[CarriedBlob] = []
    replaced: list[PuffinBlob] = []
    taken = set(new_keys)
    for file in existing:
        replaced += [old.blob for old in file.blobs if blob_key(old.blob) in new_keys and old.blob not in replaced]
        carried += [old for old in file.blobs if blob_key(old.blob) not in taken]
        taken |= {blob_key(old.blob) for old in file.blobs}
    return carried, tuple(replaced)


def _kept_entries(existing: Sequence[ExistingFile], new_keys: set[BlobKey], warnings: _Warnings) -> list[BlobMetadata]:
    kept: list[BlobMetadata] = []
    taken = set(new_keys)
    for file in existing:
        own = file.entry.blobs
        kept += [e for e in own if blob_key(e) not in taken and warnings.can_list(e)]
        taken |= {blob_key(e) for e in own}
    return kept


def _list_new(
    blob: NewBlob, asked: frozenset[int] | None, known: Collection[tuple[int, ...]], warnings: _Warnings
) -> BlobMetadata | None:
    if blob.type != THETA or not (asked is None or asked.issuperset(blob.field_ids)):
        return None
    is_asked = asked is not None or blob.field_ids in known
    if not warnings.can_list(blob) or not warnings.can_list_time(blob, is_asked=is_asked):
        return None
    ndv = blob.properties.get("ndv", "")
    if not (ndv.isascii() and ndv.isdecimal()):
        raise CallError(f"the Theta blob of fields {list(blob.field_ids)} has ndv {ndv!r}: expected an integer in text")
    return BlobMetadata(blob.type, blob.snapshot_id, blob.sequence_number, blob.field_ids, dict(blob.properties))


def _planned(
    puffin: PuffinBytes, new_keys: set[BlobKey], after: StatisticsFile, columns: Mapping[int, Column]
) -> tuple[PlannedBlob, ...]:
    listed_keys = {blob_key(entry) for entry in after.blobs}
    return tuple(
        PlannedBlob(
            blob,
            tuple(columns[i].name if i in columns else f"#{i}" for i in blob.field_ids),
            listed=blob_key(blob) in listed_keys,
            kept=blob_key(blob) not in new_keys,
        )
        for blob in puffin.blobs
    )


def entry_text(entry: StatisticsFile | PartitionStatisticsFile | None) -> str:
    """Return an entry of metadata.json's `statistics` or `partition-statistics` as a line of text."""
    if entry is None:
        return "none"
    text = f"{entry.statistics_path}, {entry.file_size_in_bytes:,} bytes"
    if isinstance(entry, PartitionStatisticsFile):
        return text
    listed = ", ".join(f"{list(b.field_ids)} {_ndv_text(b)}" for b in entry.blobs) or "no blobs"
    return f"{text}, lists {listed}"


def _ndv_text(blob: PuffinBlob | BlobMetadata) -> str:
    return f"ndv {blob.properties.get('ndv')}" if blob.type == THETA else blob.type
