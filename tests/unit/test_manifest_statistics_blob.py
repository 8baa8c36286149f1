"""The blob of manifest statistics: Parquet by the spec's field ids, of any writer, and no wrong figure when damaged."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icestats
from icestats.answers import schemas
from icestats.errors import MetadataError, UnsupportedError
from icestats.read.puffin.puffin import read_blob
from icestats.read.rollups.manifest_statistics import ManifestStatistics, write_manifest_statistics
from icestats.snapshot.snapshot_reader import build_manifests
from tests.added_rows import more_rows

pytestmark = pytest.mark.usefixtures("no_cache")

OWN = 1_500_000_000
PLAIN = {"compression": "none", "use_dictionary": False, "store_schema": False}


def payload_of(table: icestats.Table) -> bytes:
    return write_manifest_statistics(table.manifest_files(), table._reader.manifest_rollups, table.schema.columns)


def rows_of(payload: bytes) -> pa.Table:
    return pq.ParquetFile(io.BytesIO(payload)).read()


def rewrite(table: pa.Table, row_group_size: int = 100, **options: Any) -> bytes:
    """The same rows, or others, as another writer would have written them."""
    out = io.BytesIO()
    with pq.ParquetWriter(out, table.schema, **(PLAIN | options)) as writer:
        writer.write_table(table, row_group_size)
        writer.add_key_value_metadata(table.schema.metadata or {})
    return out.getvalue()


def walk_fields(fields: Any, path: str = "") -> Iterator[tuple[str, int]]:
    for field in fields:
        yield path + field.name, int(field.metadata[b"PARQUET:field_id"])
        if pa.types.is_struct(field.type):
            yield from walk_fields(field.type, f"{path}{field.name}.")


def change_struct(table: pa.Table, change: Any) -> pa.Table:
    """The same table with another struct of the column `id`."""
    place = table.column_names.index("content_stats")
    stats = table["content_stats"].combine_chunks()
    kind = stats.type
    structs = [change(stats.field(i)) if kind.field(i).name == "id" else stats.field(i) for i in range(kind.num_fields)]
    fields = [kind.field(i).with_type(struct.type) for i, struct in enumerate(structs)]
    stats = pa.StructArray.from_arrays(structs, fields=fields)
    return table.set_column(place, table.schema.field(place).with_type(stats.type), stats)


def test_the_fields_are_the_proposals_and_format_version_4s_by_name_and_id(small_table, load):
    ids = dict(walk_fields(pq.ParquetFile(io.BytesIO(payload_of(load()))).schema_arrow))
    assert {name: i for name, i in ids.items() if i < 10_000} == {
        "manifest_path": 500,
        "manifest_length": 501,
        "content": 517,
        "total_record_count": 521,
        "total_file_size_in_bytes": 522,
        "content_stats": 146,
    }
    # price is a double, of field id 3.
    price = {name.removeprefix("content_stats.price."): i for name, i in ids.items() if ".price" in name}
    assert {name: i for name, i in price.items() if i < OWN} == {
        "content_stats.price": 10_600,
        "lower_bound": 10_601,
        "upper_bound": 10_602,
        "tight_bounds": 10_603,
        "value_count": 10_604,
        "null_value_count": 10_605,
        "nan_value_count": 10_606,
    }
    assert price["column_size"] == OWN + 10_601
    assert "content_stats.id.nan_value_count" not in ids
    assert len(set(ids.values())) == len(ids)
    assert all(i < 200_000_000 or OWN <= i < 2_147_483_447 for i in ids.values())


def test_any_parquet_reader_reads_the_blob(small_table, load):
    table = load()
    rows = rows_of(payload_of(table)).to_pylist()
    manifests = table.manifests().to_pylist()
    assert [row["manifest_path"] for row in rows] == [row["manifest_path"] for row in manifests]
    for row, manifest in zip(rows, manifests, strict=True):
        assert row["total_record_count"] == manifest["total_record_count"] == 100
        sizes, lacking = dict(manifest["column_sizes"]), dict(manifest["nan_value_counts_missing_files"])
        for column in table.schema.columns:
            assert row["content_stats"][column.name]["column_size"] == sizes[column.field_id]
        assert row["content_stats"]["price"]["nan_value_count_missing_file_count"] == lacking[3] > 1
        assert row["content_stats"]["price"]["nan_value_count"] is None
    assert [(row["content_stats"]["id"]["lower_bound"], row["content_stats"]["id"]["upper_bound"]) for row in rows] == [
        (100, 199),
        (0, 99),
    ]


def test_columns_are_decoded_by_themselves_as_all_together(small_table, load):
    """Each column alone, two in another order, none: the cells that all have."""
    table = load()
    found, columns = ManifestStatistics(payload_of(table), "blob"), table.schema.columns
    whole = found.build_cells(columns)
    for wanted in (*((column,) for column in columns), (columns[2], columns[0]), ()):
        rows = [n * len(columns) + columns.index(column) for n in range(len(found.manifests)) for column in wanted]
        assert found.build_cells(wanted).equals(whole.take(pa.array(rows, pa.int64())).combine_chunks())


def test_a_column_is_read_without_a_look_at_the_others(small_table, load):
    table = load()
    payload, columns = payload_of(table), table.schema.columns
    expected = ManifestStatistics(payload, "blob").build_cells(columns[2:3])
    damaged = bytearray(payload)
    metadata = pq.ParquetFile(io.BytesIO(payload)).metadata.row_group(0)
    for place in range(metadata.num_columns):
        chunk = metadata.column(place)
        if chunk.path_in_schema.startswith(("content_stats.id.", "content_stats.name.")):
            begin, size = chunk.data_page_offset, chunk.total_compressed_size
            damaged[begin : begin + size] = bytes(size)
    found = ManifestStatistics(bytes(damaged), "blob")
    assert found.build_cells(columns[2:3]).equals(expected)
    with pytest.raises(MetadataError, match="cut or damaged"):
        found.build_cells(columns)


def test_rows_are_chosen_before_their_cells_are_built(small_table, load):
    small_table.append(more_rows())
    table = load()
    found, columns = ManifestStatistics(payload_of(table), "blob"), table.schema.columns
    whole, width = found.build_cells(columns), len(columns)
    chosen = np.array([2, 0])
    expected = pa.concat_tables([whole.slice(2 * width, width), whole.slice(0, width)])
    assert found.build_cells(columns, chosen).equals(expected.combine_chunks())


def test_other_field_ids_are_refused(small_table, load):
    table = rows_of(payload_of(load()))
    field = table.schema.field("total_record_count").with_metadata({b"PARQUET:field_id": b"528"})
    other = table.cast(table.schema.set(table.column_names.index("total_record_count"), field))
    with pytest.raises(UnsupportedError, match="other fields or field ids"):
        ManifestStatistics(rewrite(other), "blob")


def test_a_blob_that_does_not_say_its_columns_is_refused(small_table, load):
    table = rows_of(payload_of(load()))
    with pytest.raises(UnsupportedError, match="other fields"):
        ManifestStatistics(rewrite(table.replace_schema_metadata(None)), "blob")
    with pytest.raises(MetadataError, match="cut or damaged"):
        ManifestStatistics(rewrite(table.replace_schema_metadata({"icestats.columns": "7"})), "blob")


@pytest.mark.parametrize("part", [0.0, 0.2, 0.5, 0.9, 0.999])
def test_a_cut_blob_is_refused(small_table, load, part):
    table = load()
    payload = payload_of(table)
    with pytest.raises(MetadataError):
        ManifestStatistics(payload[: int(len(payload) * part)], "blob")


def test_a_stored_blob_with_any_other_byte_is_refused(small_table, load):
    """The Puffin file's checksum of the blob finds every changed byte."""
    table = load()
    assert table.compute(manifests=True).commit().committed
    found = load()._reader.blobs[0]
    data = load()._source.storage.read(found.statistics_path)
    payload, end = read_blob(data, found.blob, "blob"), found.blob.offset + found.blob.length
    assert payload == payload_of(load())
    for place in range(found.blob.offset, end):
        damaged = data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :]
        with pytest.raises(MetadataError):
            read_blob(damaged, found.blob, "blob")


def test_a_bound_of_another_type_than_its_column_has_is_refused(small_table, load):
    table = load()

    def narrow(struct: pa.StructArray) -> pa.StructArray:
        fields = [f.with_type(pa.int32()) if f.name == "upper_bound" else f for f in struct.type]
        return struct.cast(pa.struct(fields))

    found = ManifestStatistics(rewrite(change_struct(rows_of(payload_of(table)), narrow)), "blob")
    with pytest.raises(MetadataError, match="of type int32, expected int64"):
        found.build_cells(table.schema.columns)


def test_bytes_in_place_of_a_bound_that_its_type_can_hold_are_refused(small_table, load):
    table = load()

    def add_bytes(struct: pa.StructArray) -> pa.StructArray:
        field = pa.field("lower_bound_bytes", pa.binary(), metadata={"PARQUET:field_id": str(OWN + 10_202)})
        more = pa.array([b"\x00"] * len(struct), pa.binary())
        return pa.StructArray.from_arrays([*struct.flatten(), more], fields=[*struct.type, field])

    found = ManifestStatistics(rewrite(change_struct(rows_of(payload_of(table)), add_bytes)), "blob")
    with pytest.raises(MetadataError, match="column 'id' has a bound that is no value of type long"):
        found.build_cells(table.schema.columns)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("value_count", None, "neither there nor missing"),
        ("value_count", -1, "value_count is negative"),
        ("missing_file_count", 1000, "the number of files that lack it"),
        ("missing_file_count", -1, "the number of files that lack it"),
    ],
)
def test_impossible_figures_are_refused(small_table, load, name, value, words):
    """A sum that is not there is unknown only where files lack it, and no more files lack it than there are."""
    table = load()

    def spoil(struct: pa.StructArray) -> pa.StructArray:
        field = pa.field(
            name, pa.int64(), metadata={"PARQUET:field_id": str({"value_count": 10_204}.get(name, OWN + 10_204))}
        )
        arrays = {f.name: (f, a) for f, a in zip(struct.type, struct.flatten(), strict=True)}
        arrays[name] = field, pa.array([value] * len(struct), pa.int64())
        return pa.StructArray.from_arrays([a for _, a in arrays.values()], fields=[f for f, _ in arrays.values()])

    found = ManifestStatistics(rewrite(change_struct(rows_of(payload_of(table)), spoil)), "blob")
    with pytest.raises(MetadataError, match=words):
        found.build_cells(table.schema.columns)


@pytest.mark.parametrize(
    "options",
    [{}, {"row_group_size": 1}, {"data_page_version": "2.0"}, {"use_dictionary": True, "compression": "zstd"}],
)
def test_another_writers_parquet_gives_the_same_figures(small_table, load, options):
    small_table.append(more_rows())
    table = load()
    expected = ManifestStatistics(payload_of(table), "blob")
    found = ManifestStatistics(rewrite(rows_of(payload_of(table)), **options), "blob")
    columns = table.schema.columns
    assert found.manifests.equals(expected.manifests)
    assert found.build_cells(columns).equals(expected.build_cells(columns))
    assert found.manifest_lengths == expected.manifest_lengths


def test_a_blob_of_many_more_manifests_than_there_are_is_refused(small_table, load):
    payload = payload_of(load())
    assert len(ManifestStatistics(payload, "blob", most_rows=2).manifests) == 2
    with pytest.raises(UnsupportedError, match="of 2 manifests, more than 1"):
        ManifestStatistics(payload, "blob", most_rows=1)


def test_more_rows_than_bytes_are_refused(small_table, load):
    """Nulls of no bytes: a few thousand bytes say that they are of millions of manifests."""
    described = rows_of(payload_of(load())).schema.metadata
    schema = pa.schema([pa.field("nothing", pa.int64())], described)
    payload = rewrite(pa.table([pa.nulls(10_000_000, pa.int64())], schema), 10_000_000)
    assert len(payload) < 100_000
    with pytest.raises(MetadataError, match="10,000,000 rows"):
        ManifestStatistics(payload, "blob")


def test_many_more_fields_than_columns_are_refused(small_table, load):
    table = rows_of(payload_of(load()))
    for place in range(100):
        table = table.append_column(f"more {place}", table["content"])
    with pytest.raises(MetadataError, match="fields for 4 columns"):
        ManifestStatistics(rewrite(table), "blob")


def test_columns_whose_ids_content_stats_has_no_room_for_are_left_out(small_table, load):
    """The spec's range of ids ends at field id 999,949."""
    table = load()
    rollups, files = table._reader.manifest_rollups, table.manifest_files()
    expected = ManifestStatistics(payload_of(table), "blob").build_cells(table.schema.columns)
    last = 999_949
    columns = tuple(replace(c, field_id=last - 2 + i) for i, c in enumerate(table.schema.columns))
    found = ManifestStatistics(write_manifest_statistics(files, rollups, columns), "blob")
    cells = found.build_cells(columns[:3])
    rows = [n * 4 + i for n in range(2) for i in range(3)]
    assert cells.drop_columns("field_id").equals(
        expected.take(pa.array(rows)).drop_columns("field_id").combine_chunks()
    )
    assert set(cells["field_id"].to_pylist()) == {last - 2, last - 1, last}
    with pytest.raises(UnsupportedError, match="column 'name' was not there yet"):
        found.build_cells(columns)
    nothing = tuple(replace(column, field_id=column.field_id + last) for column in columns)
    found = ManifestStatistics(write_manifest_statistics(files, rollups, nothing), "blob")
    assert found.manifests.equals(ManifestStatistics(payload_of(table), "blob").manifests)


def test_a_column_that_the_blob_names_but_does_not_have_is_refused(small_table, load):
    table = load()
    stored = rows_of(payload_of(table))
    other = replace(table.schema.columns[0], field_id=77)
    described = json.dumps([[77, other.type]])
    payload = rewrite(stored.replace_schema_metadata({"icestats.columns": described}))
    with pytest.raises(MetadataError, match="no field"):
        ManifestStatistics(payload, "blob").build_cells((other,))


def test_names_do_not_matter(small_table, load):
    """Dots, the same name twice, the names of statistics: columns are found by their ids."""
    table = load()
    rollups, files = table._reader.manifest_rollups, table.manifest_files()
    expected = ManifestStatistics(payload_of(table), "blob").build_cells(table.schema.columns)
    for names in (("a.b", "a", "a.lower_bound", "b"), ("a", "a", "a", "a"), ("", ".", "lower_bound", "\U0001f600\n")):
        columns = [replace(c, name=name) for c, name in zip(table.schema.columns, names, strict=True)]
        found = ManifestStatistics(write_manifest_statistics(files, rollups, columns), "blob")
        assert found.build_cells(columns).equals(expected)
        for place, column in enumerate(columns):
            rows = pa.array([place, place + len(columns)])
            assert found.build_cells([column]).equals(expected.take(rows).combine_chunks())


def test_the_maps_of_a_manifest_of_deletes_are_null_and_its_neighbours_keep_theirs(small_table, load):
    small_table.append(more_rows())
    table = load()
    files, rollups, schema = table.manifest_files(), table._reader.manifest_rollups, table.schema
    expected = build_manifests(files, rollups, schema)
    place = files.column_names.index("content")
    contents = pa.array(["data", "deletes", "data"])
    other = files.set_column(place, files.schema.field(place), contents)
    found = build_manifests(other, rollups, schema)
    maps = [field.name for field in schemas.COLUMN_MAPS]
    assert len(maps) == 12
    assert expected["lower_bounds"].null_count == 0
    for name in maps:
        assert found[name].to_pylist() == [expected[name][0].as_py(), None, expected[name][2].as_py()]
    stored = write_manifest_statistics(other, rollups, schema.columns)
    assert rows_of(stored)["content_stats"].is_null().to_pylist() == [False, True, False]
    assert rows_of(stored)["total_record_count"].to_pylist() == [1, None, 100]
    assert ManifestStatistics(stored, "blob").manifests.equals(rollups.manifests)
