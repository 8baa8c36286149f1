"""Dates and times that Iceberg can hold, and Python cannot: they are read, asked for, and printed."""

from __future__ import annotations

import json
import struct
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFile, FileFormat
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update.snapshot import _FastAppendFiles
from pyiceberg.transforms import (
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    YearTransform,
)
from pyiceberg.typedef import Record
from pyiceberg.types import DateType, NestedField, TimestampType

import icestats
from icestats.cli.command_line import cli
from tests.written_deletes import delete_positions, list_data_files

SCHEMA = Schema(
    NestedField(1, "at", TimestampType(), required=False), NestedField(2, "day", DateType(), required=False)
)
ENDS = ("at > '9999-12-31T23:59:59.999999'", "at < '0001-01-01'", "at != '9999-12-31T23:59:59.999999'")


def create(catalog: SqlCatalog, transform: Transform[Any, Any], source_id: int) -> Table:
    spec = PartitionSpec(PartitionField(source_id, 1000, transform, "part"))
    return catalog.create_table("db.t", SCHEMA, partition_spec=spec)


def append_beyond(
    table: Table, part: int, folder: Path, monkeypatch: pytest.MonkeyPatch, at_us: int = 2**63 - 1, bounded: bool = True
) -> None:
    """Append a file as Java writes one; PyIceberg cannot name the folder of such a partition."""
    monkeypatch.setattr(PartitionSpec, "partition_to_path", lambda *_: "part=1")
    path = folder / "x.parquet"
    at, day = pa.array([at_us]).cast(pa.timestamp("us")), pa.array([-(2**31)], pa.int32()).cast(pa.date32())
    pq.write_table(pa.table({"at": at, "day": day}, SCHEMA.as_arrow()), path)
    bounds = {1: struct.pack("<q", at_us), 2: struct.pack("<i", -(2**31))} if bounded else {}
    file = DataFile.from_args(
        file_path=path.as_uri(), file_format=FileFormat.PARQUET, partition=Record(part), record_count=1,
        file_size_in_bytes=path.stat().st_size, value_counts={1: 1, 2: 1}, null_value_counts={1: 0, 2: 0},
        lower_bounds=bounds, upper_bounds=bounds,
    )  # fmt: skip
    file.spec_id = 0
    with table.transaction() as transaction, _FastAppendFiles(Operation.APPEND, transaction, table.io) as append:
        append.append_data_file(file)


@pytest.mark.parametrize("row_filter", ENDS)
def test_filters_at_the_ends_of_time_are_planned_by_the_hour(catalog, catalog_properties, row_filter):
    table = create(catalog, HourTransform(), 1)
    table.append(
        pa.table({"at": pa.array([datetime(2026, 1, 1)], pa.timestamp("us")), "day": [None]}, table.schema().as_arrow())
    )
    found = icestats.load("db.t", catalog=catalog_properties)
    kept = found.plan(row_filter).steps[-1].kept
    assert kept == (1 if "!=" in row_filter else 0)
    assert found.estimate(row_filter, actual=True).actual == kept


@pytest.mark.parametrize(
    ("transform", "source_id", "part"),
    [
        (HourTransform(), 1, 70_389_528),
        (HourTransform(), 1, -(2**31)),
        (DayTransform(), 1, 2**31 - 1),
        (IdentityTransform(), 1, 2**63 - 1),
        (IdentityTransform(), 2, -(2**31)),
    ],
    ids=str,
)
def test_partitions_beyond_the_years_of_python_are_printed(
    catalog, catalog_properties, tmp_path, monkeypatch, transform, source_id, part
):
    table = create(catalog, transform, source_id)
    append_beyond(table, part, tmp_path, monkeypatch)
    found = icestats.load("db.t", catalog=catalog_properties)
    assert "db.t" in repr(found)
    assert "icestats-answer" in found._repr_html_()
    location = table.refresh().metadata_location.removeprefix("file://")
    for verb in ("show", "partitions", "files", "columns"):
        for form in ("table", "json"):
            result = CliRunner().invoke(cli, [verb, location, "--format", form])
            assert (result.exit_code, result.exception) == (0, None), (verb, form, result.exception)
    shown = json.loads(CliRunner().invoke(cli, ["partitions", location, "--format", "json"]).stdout)
    assert shown[0]["partition"] == {"part": part}
    (file,) = list_data_files(table)
    delete_positions(table, [(file, 0)])
    found = icestats.load("db.t", catalog=catalog_properties)
    assert [len(paths) for paths in found.plan("day is not null").files()["delete_files"].to_pylist()] == [1]


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("is_late", [True, False])
def test_rows_whose_hour_is_wrapped_are_counted_and_estimated(
    catalog, catalog_properties, tmp_path, monkeypatch, is_late, bounded
):
    """The number of their hour is no int: writers wrap it, so that late rows are in a partition of an early hour."""
    at_us, part = (2**63 - 1, 2_562_047_788 - 2**32) if is_late else (-(2**63) + 1, 2**32 - 2_562_047_789)
    append_beyond(create(catalog, HourTransform(), 1), part, tmp_path, monkeypatch, at_us, bounded)
    table = icestats.load("db.t", catalog=catalog_properties)
    for sign, is_met in ((">=", is_late), ("<", not is_late), ("!=", True), ("=", False)):
        found = table.estimate(f"at {sign} '2026-01-01'", actual=True)
        assert found.actual == is_met, sign
        for one in found:
            assert one.rows_lower is not None
            assert one.rows_upper is not None
            assert one.rows_lower <= is_met <= one.rows_upper, one


def test_times_that_no_day_has_are_printed():
    """As a partition value of a damaged manifest may be."""
    at = pa.array([2**63 - 1]).cast(pa.time64("us"))
    assert f"at={2**63 - 1}" in repr(icestats.show(pa.table({"partition": pa.StructArray.from_arrays([at], ["at"])})))


@pytest.mark.parametrize("transform", [YearTransform(), MonthTransform(), DayTransform(), HourTransform()])
def test_rows_that_early_writers_put_too_late_are_planned_and_counted(catalog, catalog_properties, transform):
    """Times before 1970 were cut toward it, so that the last year, month, day and hour before it are 0."""
    made = create(catalog, transform, 1)
    last = pa.array([datetime(1969, 12, 31, 23, 30)], pa.timestamp("us"))
    made.append(pa.table({"at": last, "day": [None]}, made.schema().as_arrow()))
    (file,) = list_data_files(made)
    file[3] = Record(0)
    made.overwrite(made.schema().as_arrow().empty_table())
    with made.transaction() as transaction, _FastAppendFiles(Operation.APPEND, transaction, made.io) as append:
        append.append_data_file(file)
    table = icestats.load("db.t", catalog=catalog_properties)
    for row_filter in (
        "at = '1969-12-31T23:30:00'",
        "at < '1970-01-01'",
        "at in ('1969-12-31T23:30:00', '1960-01-01')",
    ):
        assert table.plan(row_filter, rows=True).steps[-1].kept == 1, row_filter
        assert table.estimate(row_filter, actual=True).actual == 1, row_filter
    assert table.plan("at >= '1970-01-01'").kept_file_paths() == []


def test_days_of_dates_are_exact(catalog, catalog_properties):
    create(catalog, DayTransform(), 2)
    found = icestats.load("db.t", catalog=catalog_properties).plan("day <= '1969-12-30'")
    assert found.partition_filters[0] == "part <= '1969-12-30'"
