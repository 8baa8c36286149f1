"""Committed manifest statistics answer as the manifests do, are told from others, and never give a wrong figure."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from fastavro.write import Writer
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.types import IntegerType, LongType

import icestats
from icestats import schemas
from icestats.commit.avro_container import write_container
from icestats.commit.manifest_statistics_blob import write_manifest_statistics
from icestats.errors import CallError, MetadataError, UnsupportedError
from icestats.read.avro_tokens import LONGEST, decode_numbers, encode_tokens
from icestats.read.committed_rollups import CommittedRollups
from icestats.read.manifest_pool import ManifestToRead
from icestats.read.manifest_statistics import ManifestStatistics
from icestats.read.manifest_statistics_layout import COLUMNS_KEY, MANIFEST_STATISTICS, blob_schema
from icestats.read.manifests import RollUps, manifests_to_read, read_rollups
from icestats.read.puffin import read_blob, read_puffin_footer
from icestats.rollup_tables import build_manifests
from icestats.storage import local_path


def more_rows() -> pa.Table:
    at = pa.array([1_756_684_800_000_000], pa.timestamp("us", tz="UTC"))
    return pa.table({"id": pa.array([900], pa.int64()), "at": at, "price": [2.5], "name": ["zz"]})


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ICESTATS_CACHE", "off")


@pytest.fixture
def load(catalog_properties):
    return lambda name="db.small": icestats.load(name, catalog=catalog_properties)


def commit(table: icestats.Table) -> None:
    assert table.compute(manifests=True).commit().committed


def payload_of(table: icestats.Table) -> bytes:
    return write_manifest_statistics(table.manifest_files(), table._reader.manifest_rollups, table.schema.columns)


def answers(table: icestats.Table) -> list[pa.Table]:
    return [table.manifests(), table.columns()]


def spoil_manifests(table: icestats.Table, *, but: set[str] = frozenset()) -> set[str]:
    paths = set(table.manifest_files()["manifest_path"].to_pylist())
    for location in paths - but:
        path = local_path(location)
        assert path is not None
        path.write_bytes(bytes(path.stat().st_size))
    return paths


def test_the_blob_has_the_proposals_fields_by_name_and_id():
    fields = {field["field-id"]: field["name"] for field in blob_schema()["fields"]}
    assert {i: fields[i] for i in range(521, 528)} == {
        521: "total_record_count",
        522: "total_file_size_in_bytes",
        523: "total_column_sizes",
        524: "total_null_value_counts",
        525: "total_nan_value_counts",
        526: "lower_bounds",
        527: "upper_bounds",
    }
    assert all(i < 528 or i >= 1_500_000_000 for i in fields)


def test_any_avro_reader_reads_the_blob(small_table, load):
    table = load()
    rows = list(fastavro.reader(io.BytesIO(payload_of(table))))
    manifests = table.manifests().to_pylist()
    assert [row["manifest_path"] for row in rows] == [row["manifest_path"] for row in manifests]
    for row, manifest in zip(rows, manifests, strict=True):
        assert row["total_record_count"] == manifest["total_record_count"] == 100
        for name, of in (("total_column_sizes", "column_sizes"), ("upper_bounds", "upper_bounds")):
            found = {pair["key"]: pair["value"] for pair in row[name]}
            assert found == {key: value for key, value in manifest[of] if value is not None}
        lacking = {pair["key"]: pair["value"] for pair in row["nan_value_counts_missing_files"]}
        assert lacking == {key: count for key, count in manifest["nan_value_counts_missing_files"] if count}


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
    found = CommittedRollups(storage, other, columns).read(reader.blobs, columns, read)
    assert (found is not None) == in_use
    assert found is None or found.manifest_cells.equals(load().read()._reader.manifest_rollups.manifest_cells)
    assert asked == (files["manifest_path"].to_pylist()[:1] if in_use else [])


def test_columns_are_decoded_by_themselves_as_all_together(small_table, load):
    """Each column alone, two in another order, none: the cells that all have."""
    table = load()
    found, columns = ManifestStatistics(payload_of(table), "blob"), table.schema.columns
    whole = found.build_cells(columns)
    for wanted in (*((column,) for column in columns), (columns[2], columns[0]), ()):
        rows = [n * len(columns) + columns.index(column) for n in range(len(found.manifests)) for column in wanted]
        assert found.build_cells(wanted).equals(whole.take(pa.array(rows, pa.int64())).combine_chunks())


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
    assert "rollups" not in table._reader.__dict__
    assert caplog.text == ""
    with caplog.at_level(logging.WARNING, "icestats"):
        found = table.estimate("count is null and id < 30", sources=sources)
    assert caplog.text.count("was of type int") == 1
    assert "rollups" in table._reader.__dict__
    assert found[0].rows == expected.estimate("count is null and id < 30", sources=sources)[0].rows


def test_a_plan_by_committed_statistics_is_that_by_the_manifests(small_table, load):
    commit(load())
    table = load()
    plan = table.plan("price >= 2 and name = 'n7'", manifest_statistics=True)
    assert "rollups" not in table._reader.__dict__
    expected = load().read().plan("price >= 2 and name = 'n7'")
    assert [(s.step, s.kept, s.total) for s in plan.steps] == [(s.step, s.kept, s.total) for s in expected.steps]
    # What has been read once is used by later plans, of other columns too.
    assert "manifests by column bounds" in [step.step for step in table.plan("id = 5").steps]
    assert "manifests by column bounds" not in [step.step for step in load().plan("id = 5").steps]


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


def test_other_field_ids_are_refused():
    schema = blob_schema()
    schema["fields"][3]["field-id"] = 528
    with pytest.raises(UnsupportedError, match="other fields or field ids"):
        ManifestStatistics(write_container(schema, []), "blob")


def test_a_blob_that_does_not_say_its_columns_is_refused(small_table, load):
    with pytest.raises(MetadataError, match="do not say which columns"):
        ManifestStatistics(write_container(blob_schema(), []), "blob")


@pytest.mark.parametrize("part", [0.2, 0.5, 0.9, 0.999])
def test_a_cut_blob_is_refused(small_table, load, part):
    table = load()
    payload = payload_of(table)
    with pytest.raises(MetadataError):
        ManifestStatistics(payload[: int(len(payload) * part)], "blob")


def test_a_damaged_blob_is_refused_or_still_a_blob(small_table, load):
    """Whatever byte is changed, reading raises the package's own error or gives a roll-up of as many manifests."""
    table = load()
    payload = payload_of(table)
    begin = payload.index(b"file:///")
    for place in range(begin - 10, len(payload)):
        damaged = payload[:place] + bytes([payload[place] ^ 0x55]) + payload[place + 1 :]
        try:
            found = ManifestStatistics(damaged, "blob")
            cells = found.build_cells(table.schema.columns)
        except (MetadataError, UnsupportedError):
            continue
        assert len(cells) == len(found.manifests) * len(table.schema.columns)


def test_a_bound_of_another_length_than_its_type_has_is_refused(small_table, load):
    table = load()
    reader = fastavro.reader(io.BytesIO(payload_of(table)))
    records = list(reader)
    records[0]["upper_bounds"][0]["value"] += b"\x00"
    stream = io.BytesIO()
    metadata = {COLUMNS_KEY: reader.metadata[COLUMNS_KEY]}
    fastavro.writer(stream, reader.writer_schema, records, metadata=metadata)
    found = ManifestStatistics(stream.getvalue(), "blob")
    with pytest.raises(MetadataError, match="upper_bounds has a value of another length"):
        found.build_cells(table.schema.columns)


@pytest.mark.parametrize("beyond", [0, 1 << 20])
def test_large_field_ids_are_found_and_columns_that_are_not_named_refused(small_table, load, beyond):
    """Small ids are looked up in a table, others searched: both give the same cells and find what is foreign."""
    table = load()
    columns = tuple(replace(column, field_id=column.field_id + beyond) for column in table.schema.columns)
    rollups, files = table._reader.manifest_rollups, table.manifest_files()
    payload = write_manifest_statistics(files, rollups, columns)
    cells = ManifestStatistics(payload, "blob").build_cells(columns)
    expected = ManifestStatistics(payload_of(table), "blob").build_cells(table.schema.columns)
    assert cells.drop_columns("field_id").equals(expected.drop_columns("field_id"))
    assert set(cells["field_id"].to_pylist()) == {column.field_id for column in columns}
    reader = fastavro.reader(io.BytesIO(payload))
    stream = io.BytesIO()
    # The first column under the next free id.
    others = [[columns[-1].field_id + 1, columns[0].type], *([c.field_id, c.type] for c in columns[1:])]
    fastavro.writer(stream, reader.writer_schema, list(reader), metadata={COLUMNS_KEY: json.dumps(others)})
    with pytest.raises(MetadataError, match="has a column that it does not say it has"):
        ManifestStatistics(stream.getvalue(), "blob").build_cells(columns[1:])


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
    assert "rollups" not in table._reader.__dict__


def test_a_second_commit_replaces_the_blob(small_table, load):
    commit(load())
    report = load().compute(manifests=True).commit()
    assert [blob["type"] for blob in report.to_json()["replaced"]] == [MANIFEST_STATISTICS]
    entry = load().metadata.statistics
    assert len(entry) == 1
    storage = load()._source.storage
    blob = read_puffin_footer(storage, entry[0].statistics_path).blobs[0]
    assert read_blob(storage, blob, entry[0].statistics_path)[:4] == b"Obj\x01"


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


def test_numbers_of_every_width_survive():
    numbers = np.array([0, -1, 63, 64, -65, 2**31, -(2**63), 2**63 - 1, 8191, 8192, 2**55 - 1, 2**55, 2**62], np.int64)
    nothing = np.zeros_like(numbers)
    data, ends = encode_tokens(numbers, nothing, nothing, np.zeros(0, np.uint8))
    stream = io.BytesIO(data.tobytes())
    schema = fastavro.parse_schema("long")
    assert [fastavro.schemaless_reader(stream, schema, None) for _ in numbers] == numbers.tolist()
    padded = np.concatenate([data, np.zeros(LONGEST, np.uint8)])
    found, behind = decode_numbers(padded, np.array([0, *ends[:-1]]))
    assert found.tolist() == numbers.tolist()
    assert behind.tolist() == ends.tolist()


@pytest.mark.parametrize(
    ("octets", "error"), [(b"\xff" * 10 + b"\x00", EOFError), (b"\xff" * 9 + b"\x7f", OverflowError)]
)
def test_a_number_that_is_too_long_is_refused(octets, error):
    with pytest.raises(error):
        decode_numbers(np.frombuffer(octets + bytes(LONGEST), np.uint8), np.array([0]))


def rewrite_container(payload: bytes, records_a_block: int, codec: str) -> bytes:
    """The same records in other blocks, as another writer would have made them."""
    reader = fastavro.reader(io.BytesIO(payload))
    stream = io.BytesIO()
    metadata = {COLUMNS_KEY: reader.metadata[COLUMNS_KEY]}
    writer = Writer(stream, reader.writer_schema, codec=codec, sync_interval=1 << 30, metadata=metadata)
    for number, record in enumerate(reader, 1):
        writer.write(record)
        if number % records_a_block == 0:
            writer.dump()
    writer.flush()
    return stream.getvalue()


@pytest.mark.parametrize(("records_a_block", "codec"), [(1, "deflate"), (2, "null"), (3, "null"), (100, "deflate")])
def test_records_may_be_in_blocks_of_any_number_and_codec(small_table, load, records_a_block, codec):
    for number in range(5):
        small_table.append(more_rows().set_column(3, "name", pa.array([f"name {number}" * (1 + 9 * number)])))
    table = load()
    expected = ManifestStatistics(payload_of(table), "blob")
    other = rewrite_container(payload_of(table), records_a_block, codec)
    found = ManifestStatistics(other, "blob")
    assert len(found.manifests) == len(table.manifest_files()) == 7
    assert found.manifests.equals(expected.manifests)
    columns = table.schema.columns
    assert found.build_cells(columns).equals(expected.build_cells(columns))
    assert found.manifest_lengths == expected.manifest_lengths


def test_more_manifests_than_are_encoded_at_once_are_as_each_by_itself(small_table, load):
    small_table.append(more_rows())
    table = load()
    files, rollups, columns = table.manifest_files(), table._reader.manifest_rollups, table.schema.columns
    once = ManifestStatistics(write_manifest_statistics(files, rollups, columns), "blob")
    times = 100
    many = replace(
        rollups,
        manifests=pa.concat_tables([rollups.manifests] * times),
        manifest_cells=pa.concat_tables([rollups.manifest_cells] * times),
    )
    payload = write_manifest_statistics(pa.concat_tables([files] * times), many, columns)
    found = ManifestStatistics(payload, "blob")
    assert found.manifests.equals(pa.concat_tables([once.manifests] * times))
    assert found.build_cells(columns).equals(pa.concat_tables([once.build_cells(columns)] * times))
    assert found.manifest_lengths == once.manifest_lengths * times


def test_the_maps_of_a_manifest_of_deletes_are_null_and_its_neighbours_keep_theirs(small_table, load):
    small_table.append(more_rows())
    table = load()
    files, rollups, schema = table.manifest_files(), table._reader.manifest_rollups, table.schema
    expected = build_manifests(files, rollups, schema)
    place = files.column_names.index("content")
    contents = pa.array(["data", "deletes", "data"])
    found = build_manifests(files.set_column(place, files.schema.field(place), contents), rollups, schema)
    maps = [field.name for field in schemas.COLUMN_MAPS]
    assert len(maps) == 12
    assert expected["lower_bounds"].null_count == 0
    for name in maps:
        assert found[name].to_pylist() == [expected[name][0].as_py(), None, expected[name][2].as_py()]


def test_a_local_file_is_what_the_report_says(small_table, load):
    report = load().compute(manifests=True).commit()
    file = report.to_json()["files"][0]
    assert Path(local_path(file["path"])).stat().st_size == file["bytes"]
