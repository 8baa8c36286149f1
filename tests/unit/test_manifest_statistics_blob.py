"""The blob of manifest statistics: as the proposal has it, of any writer, and never a wrong figure when damaged."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import fastavro
import pyarrow as pa
import pytest
from fastavro.write import Writer

import icestats
from icestats.answers import schemas
from icestats.commit.avro_container import write_container
from icestats.commit.manifest_statistics_blob import write_manifest_statistics
from icestats.errors import MetadataError, UnsupportedError
from icestats.read.rollups.manifest_statistics import ManifestStatistics
from icestats.read.rollups.manifest_statistics_layout import COLUMNS_KEY, blob_schema
from icestats.snapshot.snapshot_reader import build_manifests
from tests.added_rows import more_rows

pytestmark = pytest.mark.usefixtures("no_cache")


def payload_of(table: icestats.Table) -> bytes:
    return write_manifest_statistics(table.manifest_files(), table._reader.manifest_rollups, table.schema.columns)


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


def test_columns_are_decoded_by_themselves_as_all_together(small_table, load):
    """Each column alone, two in another order, none: the cells that all have."""
    table = load()
    found, columns = ManifestStatistics(payload_of(table), "blob"), table.schema.columns
    whole = found.build_cells(columns)
    for wanted in (*((column,) for column in columns), (columns[2], columns[0]), ()):
        rows = [n * len(columns) + columns.index(column) for n in range(len(found.manifests)) for column in wanted]
        assert found.build_cells(wanted).equals(whole.take(pa.array(rows, pa.int64())).combine_chunks())


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
