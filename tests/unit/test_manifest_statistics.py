"""Committed manifest statistics answer as the manifests do, and where they cannot, the manifests answer."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.types import IntegerType, LongType

import icestats
from icestats.errors import CallError, MetadataError
from icestats.iceberg.storage import local_path
from icestats.read.manifests.manifest_pool import ManifestToRead
from icestats.read.manifests.manifests import RollUps, manifests_to_read, read_rollups
from icestats.read.puffin.puffin import read_blob, read_puffin_footer
from icestats.read.puffin.statistics_files import MANIFEST_STATISTICS
from icestats.read.rollups.committed_rollups import CommittedRollups
from tests.added_rows import more_rows

pytestmark = pytest.mark.usefixtures("no_cache")


def commit(table: icestats.Table) -> None:
    assert table.compute(manifests=True).commit().committed


def answers(table: icestats.Table) -> list[pa.Table]:
    return [table.manifests(), table.columns()]


def spoil_manifests(table: icestats.Table, *, but: set[str] = frozenset()) -> set[str]:
    paths = set(table.manifest_files()["manifest_path"].to_pylist())
    for location in paths - but:
        path = local_path(location)
        assert path is not None
        path.write_bytes(bytes(path.stat().st_size))
    return paths


def test_what_was_committed_answers_in_place_of_the_manifests(small_table, load):
    expected = answers(load())
    commit(load())
    table = load()
    spoil_manifests(table)
    found = answers(table)
    assert [a.equals(b) for a, b in zip(found, expected, strict=True)] == [True, True]
    with pytest.raises(MetadataError):
        load().partitions()


def test_the_blob_is_in_the_footer_only_and_pyiceberg_still_loads_the_table(small_table, load, catalog: SqlCatalog):
    commit(load())
    entry = catalog.load_table("db.small").metadata.statistics[0]
    assert entry.blob_metadata == []
    footer = read_puffin_footer(load()._source.storage, entry.statistics_path)
    assert [(blob.type, blob.field_ids) for blob in footer.blobs] == [(MANIFEST_STATISTICS, ())]
    assert load().sketches()["used_by"].to_pylist() == [["icestats"]]
    assert len(catalog.load_table("db.small").scan().to_arrow()) == 200


def test_after_a_commit_only_its_manifest_is_read(small_table, load):
    before = load()
    commit(before)
    small_table.append(more_rows())
    expected = answers(load())
    after = load()
    new = set(after.manifest_files()["manifest_path"].to_pylist()) - set(
        before.manifest_files()["manifest_path"].to_pylist()
    )
    assert len(new) == 1
    spoil_manifests(after, but=new)
    assert [a.equals(b) for a, b in zip(answers(load()), expected, strict=True)] == [True, True]


def test_a_blob_of_manifests_that_no_longer_exist_is_not_used(small_table, load):
    commit(load())
    small_table.delete("id < 150")
    table = load()
    expected = table.read().manifests()
    assert load().manifests().equals(expected)


@pytest.mark.parametrize(("changed", "in_use"), [((0,), True), ((0, 1), False)])
def test_a_manifest_of_another_length_under_the_same_path_is_read(small_table, load, changed, in_use):
    """What is known of the other manifest stays in use; where none is as it was, nothing is."""
    commit(load())
    reader = load()._reader
    files, columns, storage = reader.manifest_files, reader.schema.columns, reader.source.storage
    asked: list[str] = []

    def read(manifests: Sequence[ManifestToRead]) -> RollUps:
        asked.extend(manifest.path for manifest in manifests)
        return read_rollups(manifests_to_read(files)[:1], reader.source.metadata, storage, by=("manifest",))

    lengths = [n // 2 if i in changed else n for i, n in enumerate(files["manifest_length"].to_pylist())]
    other = files.set_column(1, files.schema.field(1), pa.array(lengths))
    found = CommittedRollups(storage, other, columns, pytest.fail).read(reader.blobs, columns, read)
    assert (found is not None) == in_use
    assert found is None or found.manifest_cells.equals(load().read()._reader.manifest_rollups.manifest_cells)
    assert asked == (files["manifest_path"].to_pylist()[:1] if in_use else [])


def test_an_estimate_decodes_the_columns_of_its_filter_and_no_others(small_table, load, caplog):
    """A column that got another type since spoils the blob for itself alone; new manifests are read."""
    with small_table.update_schema() as update:
        update.add_column("count", IntegerType())
    commit(load())
    small_table.append(more_rows())
    with small_table.update_schema() as update:
        update.update_column("count", LongType())
    sources = ["manifests", "manifests-each", "table"]
    expected = load().read()
    table = load()
    for row_filter in ("id < 30", "price >= 2 and name = 'zz'", "id < 30", "at is null"):
        found = table.estimate(row_filter, sources=sources)
        wanted = expected.estimate(row_filter, sources=sources)
        assert [(one.rows, one.rows_lower, one.rows_upper, one.bytes) for one in found] == [
            (one.rows, one.rows_lower, one.rows_upper, one.bytes) for one in wanted
        ]
    assert table._reader.known_rollups() is None
    assert caplog.text == ""
    with caplog.at_level(logging.WARNING, "icestats"):
        found = table.estimate("count is null and id < 30", sources=sources)
    assert caplog.text.count("was of type int") == 1
    assert table._reader.known_rollups() is not None
    assert found[0].rows == expected.estimate("count is null and id < 30", sources=sources)[0].rows


def test_a_plan_by_committed_statistics_is_that_by_the_manifests(small_table, load):
    commit(load())
    table = load()
    plan = table.plan("price >= 2 and name = 'n7'", manifest_statistics=True)
    assert table._reader.known_rollups() is None
    expected = load().read().plan("price >= 2 and name = 'n7'", manifest_statistics=True)
    assert [(s.step, s.kept, s.total) for s in plan.steps] == [(s.step, s.kept, s.total) for s in expected.steps]


def test_a_column_that_was_added_or_promoted_since_makes_the_blob_unusable(small_table, load, caplog):
    with small_table.update_schema() as update:
        update.add_column("count", IntegerType())
    commit(load())
    with small_table.update_schema() as update:
        update.update_column("count", LongType())
    with caplog.at_level(logging.WARNING, "icestats"):
        found = load().columns()
    assert "was of type int" in caplog.text
    assert found.equals(load().read().columns())


def test_a_damaged_puffin_file_is_said_and_the_manifests_are_read(small_table, load, caplog):
    expected = answers(load())
    commit(load())
    path = local_path(load().metadata.statistics[0].statistics_path)
    data = bytearray(path.read_bytes())
    data[20] ^= 0xFF
    path.write_bytes(data)
    with caplog.at_level(logging.WARNING, "icestats"):
        assert load().manifests().equals(expected[0])
    assert "committed manifest statistics are not used" in caplog.text


def test_a_missing_statistics_file_is_said_and_the_manifests_are_read(small_table, load, caplog):
    expected = load().manifests()
    commit(load())
    local_path(load().metadata.statistics[0].statistics_path).unlink()
    with caplog.at_level(logging.WARNING, "icestats"):
        assert load().manifests().equals(expected)
    assert "no such file" in caplog.text


def test_older_statistics_files_are_not_opened_where_the_nearest_answers(small_table, load):
    commit(load())
    first = local_path(load().metadata.statistics[0].statistics_path)
    small_table.append(more_rows())
    commit(load())
    expected = load().read().manifests()
    first.unlink()
    table = load()
    assert table.manifests().equals(expected)
    assert table._reader.known_rollups() is None


def test_a_second_commit_replaces_the_blob(small_table, load):
    commit(load())
    small_table.update_schema().add_column("more", LongType()).commit()
    report = load().compute(manifests=True).commit()
    assert [blob["type"] for blob in report.to_json()["replaced"]] == [MANIFEST_STATISTICS]
    entry = load().metadata.statistics
    assert len(entry) == 1
    storage = load()._source.storage
    blob = read_puffin_footer(storage, entry[0].statistics_path).blobs[0]
    assert read_blob(storage, blob, entry[0].statistics_path)[:4] == b"PAR1"


def test_no_spark_is_started_for_manifests_and_partitions(small_table, load, catalog_properties):
    import subprocess
    import sys

    code = (
        "import sys, json, icestats\n"
        f"table = icestats.load('db.small', catalog=json.loads({json.dumps(json.dumps(catalog_properties))}))\n"
        "table.compute(manifests=True, partitions=True, with_column_stats=True).commit()\n"
        "assert 'pyspark' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert len(load().metadata.partition_statistics) == 1


def test_a_table_without_snapshot_is_a_clear_error(empty_table, load):
    with pytest.raises(icestats.StatisticsMissingError, match="no snapshot yet"):
        load("db.empty").compute(manifests=True)


def test_with_column_stats_without_partitions_is_a_wrong_call(small_table, load):
    with pytest.raises(CallError, match="ask for partitions"):
        load().compute(manifests=True, with_column_stats=True)


def test_a_local_file_is_what_the_report_says(small_table, load):
    report = load().compute(manifests=True).commit()
    file = report.to_json()["files"][0]
    assert Path(local_path(file["path"])).stat().st_size == file["bytes"]
