"""What a table says of itself by its metadata.json and the manifest list: figures, text for a terminal, HTML."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.markup import Markup, build_answer, element
from icestats.answers.text import counted, printable_lines, render_bytes, render_count, render_time
from icestats.iceberg.metadata import Schema, Snapshot, TableMetadata
from icestats.iceberg.partition_columns import display_partition_value, partition_field_type
from icestats.iceberg.summary import find_stated_size
from icestats.iceberg.types import decode_value, to_integer
from icestats.read.puffin.statistics_age import StatisticsAge, count_ages
from icestats.read.puffin.statistics_users import find_listed_blobs, find_listed_traps

MOST_RANGES_DRAWN = 90
_WIDTH, _ROW_HEIGHT = 640, 7


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The range of a manifest's partition field: positions on an axis, and the values as a person reads them."""

    manifest_path: str
    is_data: bool
    row_count: int | None
    lower: float
    upper: float
    lower_text: str
    upper_text: str


@dataclass(frozen=True, slots=True)
class Overview:
    """The figures of one snapshot. None is unknown, never 0."""

    name: str
    location: str
    format_version: int
    snapshot: Snapshot | None
    snapshot_count: int
    data_manifest_count: int
    delete_manifest_count: int
    data_file_count: int | None
    delete_file_count: int | None
    record_count: int | None
    """Records in live data files: exact, row-level deletes not deducted."""
    delete_record_count: int | None
    """Records in live delete files."""
    file_size_in_bytes: int | None
    """Of data and delete files, as the snapshot's summary states it; None where summaries leave out sizes."""
    statistics_file_count: int
    """Statistics files of the table, those of other branches too. Of what they hold, metadata.json says the listed NDVs
    alone; `sketches` shows all, and how old each is."""
    statistics_column_count: int
    """Columns with an NDV that is listed for this snapshot or an ancestor, each of the nearest that has one."""
    statistics_stale_column_count: int
    """Those of them whose NDV is not of this snapshot."""
    statistics_commits_behind: int | None
    """Commits since the oldest of these NDVs was made; None where none is listed, or where that is unknown, as it is
    of a snapshot that has expired."""
    statistics_files_behind: int | None
    """Data files that these commits have added, compaction left out; None where no NDV is listed, or unknown."""
    statistics_rows_behind: int | None
    """Records in these files; None likewise."""
    statistics_appends_only: bool
    """Whether these commits have only added files, or rewritten manifests: a refresh may read the new files alone."""
    key_field: str | None
    """The partition field that `key_ranges` are of."""
    key_ranges: tuple[KeyRange, ...]
    findings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the figures as JSON has them: the snapshot by its id, a 64-bit id as text."""
        document = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("snapshot", "key_ranges")}
        document["findings"] = list(self.findings)
        document["snapshot_id"] = None if self.snapshot is None else str(self.snapshot.snapshot_id)
        document["timestamp_ms"] = None if self.snapshot is None else self.snapshot.timestamp_ms
        return document


def build_overview(
    name: str, metadata: TableMetadata, snapshot: Snapshot | None, schema: Schema, manifest_files: pa.Table
) -> Overview:
    """Build the overview of a snapshot.

    Parameters
    ----------
    name : str
        What the table is called.
    metadata : TableMetadata
        The table.
    snapshot : Snapshot or None
        The snapshot; None gives zeros.
    schema : Schema
        The schema that the snapshot is read with.
    manifest_files : pyarrow.Table
        `schemas.MANIFEST_FILES` of that snapshot.
    """
    is_data = pc.equal(manifest_files["content"], "data")
    data, deletes = manifest_files.filter(is_data), manifest_files.filter(pc.invert(is_data))
    known = count_ages(metadata, snapshot)
    ages = _statistics_ages(metadata, known, schema)
    lost = sum(age is None for age in ages.values())
    dated = [age for age in ages.values() if age is not None]
    age = None if lost else max(dated, key=lambda one: one.commits, default=None)
    key_field, ranges = _key_ranges(manifest_files, metadata, schema)
    overview = Overview(
        name=name,
        location=metadata.location,
        format_version=metadata.format_version,
        snapshot=snapshot,
        snapshot_count=len(metadata.snapshots),
        data_manifest_count=data.num_rows,
        delete_manifest_count=deletes.num_rows,
        data_file_count=_total(data, "files"),
        delete_file_count=_total(deletes, "files"),
        record_count=_total(data, "rows"),
        delete_record_count=_total(deletes, "rows"),
        file_size_in_bytes=0 if snapshot is None else find_stated_size(metadata, snapshot),
        statistics_file_count=len(metadata.statistics),
        statistics_column_count=len(ages),
        statistics_stale_column_count=lost + sum(one.commits > 0 for one in dated),
        statistics_commits_behind=None if age is None else age.commits,
        statistics_files_behind=None if age is None else age.files,
        statistics_rows_behind=None if age is None else age.rows,
        statistics_appends_only=age is not None and age.appends_only,
        key_field=key_field,
        key_ranges=ranges,
        findings=(),
    )
    traps = (f"{found.title} ({found.evidence})." for found in find_listed_traps(metadata, snapshot, schema))
    by_spark = bool(find_listed_blobs(metadata, snapshot, schema))
    return replace(overview, findings=(*_findings(overview, lost, by_spark=by_spark), *traps))


def _total(manifests: pa.Table, what: str) -> int | None:
    counts = [manifests[f"{status}_{what}_count"] for status in ("added", "existing")]
    if any(column.null_count for column in counts):
        return None
    return sum(pc.sum(column).as_py() or 0 for column in counts)


def _statistics_ages(
    metadata: TableMetadata, known: Mapping[int, StatisticsAge], schema: Schema
) -> dict[tuple[int, ...], StatisticsAge | None]:
    """Return the age of the nearest listed NDV of each column: a file may list NDVs of earlier snapshots.

    None is that of an NDV which a file of an ancestor lists, and whose own snapshot is none, or has expired.
    """
    ages: dict[tuple[int, ...], StatisticsAge | None] = {}
    for blob in (blob for file in metadata.statistics if file.snapshot_id in known for blob in file.blobs):
        is_column = len(blob.field_ids) == 1 and schema.get(blob.field_ids[0]) is not None
        if not is_column or "ndv" not in blob.properties:
            continue
        age, before = known.get(blob.snapshot_id), ages.get(blob.field_ids)
        if before is None or (age is not None and age.commits <= before.commits):
            ages[blob.field_ids] = age
    return ages


def _findings(overview: Overview, lost: int, *, by_spark: bool) -> Iterator[str]:
    age = overview.statistics_commits_behind
    if overview.snapshot is None:
        yield "The table has no snapshot yet: nothing has been written to it."
    elif lost:
        of = f"{lost:,} of {counted(overview.statistics_column_count, 'column')}"
        yield (
            f"The statistics of {of} are of snapshots that have expired, or are no ancestors: how old they are is "
            "unknown. Engines may use them all the same; compute() makes them anew."
        )
    elif age is None and overview.statistics_file_count:
        files = counted(overview.statistics_file_count, "statistics file")
        known = f"sketches() shows what is in {files}, and how old it is"
        yield f"No NDV of a column is listed for this snapshot, or one before it, so most engines know none: {known}."
    elif age is None:
        yield "No statistics have been committed: engines know no NDV, and there is no histogram to draw."
    elif age:
        yield _age_finding(overview, age, by_spark=by_spark)
    if overview.delete_record_count:
        # Compaction leaves delete files behind that apply to nothing any more; the manifest list does not tell them.
        deletes = counted(overview.delete_record_count, "delete record")
        yield f"{deletes} may apply: figures of data files do not deduct rows that are deleted."


def _age_finding(overview: Overview, commits: int, *, by_spark: bool) -> str:
    files, rows = overview.statistics_files_behind, overview.statistics_rows_behind
    count, stale = overview.statistics_column_count, overview.statistics_stale_column_count
    whose = "" if stale == count else f" of {stale:,} of {counted(count, 'column')}"
    since = "of which not all say what they have added"
    if files is not None and rows is not None:
        since = f"{counted(files, 'data file')} with {counted(rows, 'row')} added since"
    use = "Trino still uses those of the nearest file, Spark only those of the exact snapshot"
    if by_spark:
        use = "Trino and Spark still use what this snapshot's file lists"
    refresh = "; refresh_statistics() may read the new files alone" if overview.statistics_appends_only else ""
    return f"The statistics{whose} are {counted(commits, 'commit')} old, {since}: {use}{refresh}."


def _key_ranges(
    manifests: pa.Table, metadata: TableMetadata, schema: Schema
) -> tuple[str | None, tuple[KeyRange, ...]]:
    spec = metadata.specs[metadata.default_spec_id]
    position = next((i for i, field in enumerate(spec.fields) if field.transform != "void"), None)
    if position is None:
        return None, ()
    field = spec.fields[position]
    type_text = partition_field_type(field, schema)
    if type_text is None:
        return None, ()
    names = ["manifest_path", "content", "partition_spec_id", "added_rows_count", "existing_rows_count", "partitions"]
    rows = [r for r in manifests.select(names).to_pylist() if r["partition_spec_id"] == spec.spec_id]
    ranges = (_key_range(row, position, field.transform, type_text) for row in rows)
    return field.name, tuple(found for found in ranges if found is not None)


def _key_range(row: Mapping[str, Any], position: int, transform: str, type_text: str) -> KeyRange | None:
    if len(row["partitions"] or ()) <= position:
        return None
    summary = row["partitions"][position]
    lower, upper = _decoded(type_text, summary["lower_bound"]), _decoded(type_text, summary["upper_bound"])
    if lower is None or upper is None or isinstance(lower, str | bytes | uuid.UUID):
        return None
    counts = (row["added_rows_count"], row["existing_rows_count"])
    return KeyRange(
        manifest_path=row["manifest_path"],
        is_data=row["content"] == "data",
        row_count=None if None in counts else sum(counts),
        lower=_position(lower),
        upper=_position(upper),
        lower_text=display_partition_value(transform, type_text, lower),
        upper_text=display_partition_value(transform, type_text, upper),
    )


def _position(value: Any) -> float:
    if isinstance(value, dt.date | dt.time):
        return float(to_integer(value))
    return float(value)


def _decoded(type_text: str, data: bytes | None) -> Any:
    if data is None:
        return None
    try:
        return decode_value(type_text, data)
    except ValueError:
        return None


def build_figures(overview: Overview) -> list[tuple[str, str]]:
    """Return the strip of figures: label and text."""
    return [
        ("records in data files", render_count(overview.record_count)),
        ("data files", render_count(overview.data_file_count)),
        ("manifests", render_count(overview.data_manifest_count + overview.delete_manifest_count)),
        ("size of files", render_bytes(overview.file_size_in_bytes)),
        ("delete files", render_count(overview.delete_file_count)),
        ("delete records", render_count(overview.delete_record_count)),
        ("snapshots", render_count(overview.snapshot_count)),
        ("statistics", _statistics_text(overview)),
    ]


def _statistics_text(overview: Overview) -> str:
    age = overview.statistics_commits_behind
    count, stale = overview.statistics_column_count, overview.statistics_stale_column_count
    of = "" if stale == count else f"{stale:,} of them "
    columns = counted(count, "column")
    if age is None:
        unlisted = "no NDV listed" if overview.statistics_file_count else "none"
        return f"{columns}, {of}of other snapshots" if count else unlisted
    return columns if age == 0 else f"{columns}, {of}{age:,} behind"


def describe_snapshot(overview: Overview) -> str:
    """Return what the snapshot is, in a line."""
    snapshot = overview.snapshot
    if snapshot is None:
        return f"format v{overview.format_version} · no snapshot"
    when = render_time(snapshot.timestamp_ms)
    return f"format v{overview.format_version} · snapshot {snapshot.snapshot_id} · {snapshot.operation} · {when}"


def render_text(overview: Overview) -> str:
    """Return a table for the terminal: a line of what it is, its figures, its findings."""
    figures = build_figures(overview)
    width = max(len(label) for label, _ in figures)
    lines = [f"{overview.name}  ({describe_snapshot(overview)})"]
    lines += [f"  {label:<{width}}  {text}" for label, text in figures]
    lines += [f"  ! {finding}" for finding in overview.findings]
    return printable_lines(lines)


def render_html(overview: Overview) -> str:
    """Return a table for a notebook: figures, the key ranges of its manifests, findings."""
    figures = element(
        "dl", *(element("div", element("dt", label), element("dd", text)) for label, text in build_figures(overview))
    )
    findings = element("ul", *(element("li", finding) for finding in overview.findings))
    about = (describe_snapshot(overview), overview.location)
    return build_answer(overview.name, figures, *_render_ranges(overview), findings, about=about)


def _render_ranges(overview: Overview) -> Iterator[Markup]:
    ranges = overview.key_ranges
    if not ranges or overview.key_field is None:
        return
    step = -(-len(ranges) // MOST_RANGES_DRAWN)
    drawn = ranges[::step]
    low, high = min(r.lower for r in ranges), max(r.upper for r in ranges)
    bars = [_render_bar(i, r, low, high - low + 1) for i, r in enumerate(drawn)]
    height = len(drawn) * _ROW_HEIGHT
    axis = {"x1": "0", "x2": f"{_WIDTH}", "y1": f"{height + 2}", "y2": f"{height + 2}"}
    some = f", 1 in {step} of {len(ranges):,}" if step > 1 else ""
    title = f"Key range of each manifest: {overview.key_field}{some}"
    first, last = min(ranges, key=lambda r: r.lower).lower_text, max(ranges, key=lambda r: r.upper).upper_text
    yield element(
        "svg",
        element("text", f"{title} (blue: data, orange: deletes)", x="0", y="12"),
        element("g", *bars, element("line", class_="axis", **axis), transform="translate(0,20)"),
        element("text", first, x="0", y=f"{height + 36}"),
        element("text", last, x=f"{_WIDTH}", y=f"{height + 36}", text_anchor="end"),
        viewBox=f"0 0 {_WIDTH} {height + 40}",
        width="100%",
        role="img",
        aria_label=title,
        style=f"max-width:{_WIDTH}px",
    )


def _render_bar(row: int, key_range: KeyRange, low: float, span: float) -> Markup:
    # A key stands for the width of one, such as a day; no bar is thinner than 3 units.
    start = (key_range.lower - low) / span * (_WIDTH - 3)
    width = max(3.0, (key_range.upper - key_range.lower + 1) / span * (_WIDTH - 3))
    records = counted(key_range.row_count, "record")
    return element(
        "rect",
        element("title", f"{key_range.lower_text} to {key_range.upper_text}, {records}, {key_range.manifest_path}"),
        class_="data" if key_range.is_data else "deletes",
        x=f"{start:.1f}",
        y=f"{row * _ROW_HEIGHT}",
        width=f"{width:.1f}",
        height=f"{_ROW_HEIGHT - 2}",
    )
