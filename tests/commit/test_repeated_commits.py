"""Statistics that the snapshot has already are not written again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField

import icestats
from icestats.iceberg.storage import local_path
from tests.computed_statistics import compute_here

SCHEMA = Schema(NestedField(1, "day", LongType()), NestedField(2, "v", LongType()))
OF_METADATA = [{"partitions": True}, {"manifests": True}, {"partitions": True, "manifests": True}]


@pytest.fixture
def load(catalog: SqlCatalog) -> Callable[[], icestats.Table]:
    """Open a table of two days, which is loaded anew each time."""
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "day"))
    made = catalog.create_table("db.days", SCHEMA, partition_spec=spec)
    made.append(pa.table({"day": pa.array([1, 1, 2], pa.int64()), "v": pa.array([5, 6, 7], pa.int64())}))
    return lambda: icestats.load("db.days", catalog={**catalog.properties, "name": catalog.name})


def list_metadata(table: icestats.Table) -> list[Path]:
    return sorted(Path(local_path(table._source.metadata_location)).parent.iterdir())


@pytest.mark.parametrize("file_format", ["parquet", "avro"])
@pytest.mark.parametrize("options", OF_METADATA, ids=str)
def test_the_same_statistics_of_metadata_are_not_committed_again(
    load: Callable[[], icestats.Table], catalog: SqlCatalog, options: dict[str, bool], file_format: str
) -> None:
    catalog.load_table("db.days").transaction().set_properties(
        {"write.format.default": file_format}
    ).commit_transaction()
    assert load().compute(**options).commit().committed
    files = list_metadata(load())
    for dry_run in (True, False):
        report = load().compute(**options).commit(dry_run=dry_run)
        assert (report.committed, report.files) == (False, ())
        assert str(report).endswith("has exactly these statistics already")
    assert list_metadata(load()) == files
    assert load().orphans().num_rows == 0


@pytest.mark.parametrize("is_listed", [True, False])
def test_what_is_carried_is_not_committed_again_where_a_column_was_dropped(
    load: Callable[[], icestats.Table], catalog: SqlCatalog, is_listed: bool
) -> None:
    """The file that it comes from is looked at each time, as the column may come back."""
    compute_here(load()).commit(list_ndv=None if is_listed else [])
    table = catalog.load_table("db.days")
    with table.update_schema() as update:
        update.delete_column("v")
    table.append(pa.table({"day": pa.array([3], pa.int64())}))
    assert load().compute(manifests=True).commit().committed
    files = list_metadata(load())
    assert not load().compute(manifests=True).commit().committed
    assert list_metadata(load()) == files


def test_of_two_files_only_what_is_new_is_committed(load: Callable[[], icestats.Table]) -> None:
    load().compute(partitions=True).commit()
    report = load().compute(partitions=True, manifests=True).commit()
    assert report.committed
    assert [Path(file["path"]).suffix for file in report.files] == [".stats"]
    report = load().compute(partitions=True, manifests=True, with_column_stats=True).commit()
    assert [file["type"] for file in report.files] == ["partition-statistics"]


def test_a_file_that_is_gone_is_written_again(load: Callable[[], icestats.Table]) -> None:
    load().compute(partitions=True).commit()
    Path(local_path(load().metadata.partition_statistics[0].statistics_path)).unlink()
    assert load().compute(partitions=True).commit().committed
    assert load().partition_statistics().num_rows == 2


@pytest.mark.parametrize("options", [{"partitions": True}, {"manifests": True}], ids=str)
def test_a_preview_says_that_the_snapshot_has_expired(
    load: Callable[[], icestats.Table], catalog: SqlCatalog, options: dict[str, bool]
) -> None:
    statistics, table = load().compute(**options), catalog.load_table("db.days")
    expired = table.current_snapshot().snapshot_id
    table.append(pa.table({"day": pa.array([3], pa.int64()), "v": pa.array([8], pa.int64())}))
    table.refresh().maintenance.expire_snapshots().by_id(expired).commit()
    report = statistics.commit(dry_run=True)
    assert str(report) == f"cannot be committed: db.days has no snapshot {expired}: it may have expired"
    assert report.files == ()


@pytest.mark.parametrize("options", OF_METADATA, ids=str)
def test_a_preview_says_that_a_metadata_file_takes_no_commit(
    load: Callable[[], icestats.Table], options: dict[str, bool]
) -> None:
    opened = icestats.load(load()._source.metadata_location)
    report = opened.compute(**options).commit(dry_run=True)
    (warning,) = report.warnings
    assert str(report).count(warning) == 1
    assert warning.startswith("cannot be committed: ")
    assert "read-only" in warning


@pytest.mark.parametrize("of_other", OF_METADATA, ids=str)
@pytest.mark.parametrize("own", OF_METADATA, ids=str)
def test_what_others_commit_meanwhile_is_not_written_again(
    load: Callable[[], icestats.Table], own: dict[str, bool], of_other: dict[str, bool]
) -> None:
    def interfere(name: str) -> None:
        if name == "writing" and not load().metadata.statistics and not load().metadata.partition_statistics:
            load().compute(**of_other).commit()

    report = load().compute(**own).commit(on_step=interfere)
    new = own.keys() - of_other.keys()
    assert report.committed == bool(new)
    assert len(report.files) == len(new)
    assert bool(load().metadata.statistics) == ("manifests" in own.keys() | of_other.keys())
    assert bool(load().metadata.partition_statistics) == ("partitions" in own.keys() | of_other.keys())
    assert load().orphans().num_rows == 0
    metadata_files = [path for path in list_metadata(load()) if path.name.endswith(".metadata.json")]
    assert len(metadata_files) == 3 + bool(new)
