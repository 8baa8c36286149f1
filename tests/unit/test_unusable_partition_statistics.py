"""Partition statistics that are wrong, cut, something else or not there are never an answer, and that is said."""

from __future__ import annotations

import io
import json
import logging
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import NestedField, StringType

import icestats
from icestats.errors import MetadataError, StatisticsMissingError, UnsupportedError
from icestats.iceberg.storage import local_path
from tests.added_rows import numbers
from tests.stored_partitions import make, stored_path
from tests.written_deletes import delete_equal, list_data_files

pytestmark = pytest.mark.usefixtures("no_cache")

BUG = "apache/iceberg#17915"


def rewrite(path: Path, change) -> None:
    """Write a file anew with another Arrow schema."""
    table = pq.read_table(path)
    pq.write_table(table.cast(change(table.schema)), path, store_schema=False)


def test_field_ids_off_by_one_are_recognised_and_computed_again(small_table, load, caplog):
    """Iceberg before 1.10 counted the columns from 0."""
    expected = load().partitions()
    make(load()).commit()

    def shift(schema: pa.Schema) -> pa.Schema:
        fields = [
            field.with_metadata({b"PARQUET:field_id": str(int(field.metadata[b"PARQUET:field_id"]) - 1).encode()})
            for field in schema
        ]
        return pa.schema(fields)

    rewrite(stored_path(load()), shift)
    with pytest.raises(UnsupportedError, match=r"has id 0, expected 1: Iceberg before 1\.10"):
        load().partition_statistics()
    with caplog.at_level(logging.WARNING, "icestats"):
        assert load().partitions().equals(expected)
    assert "Iceberg before 1.10" in caplog.text
    small_table.append(numbers([1]))
    assert "Iceberg before 1.10" in repr(make(load()))


@pytest.mark.parametrize("part", [0.0, 0.3, 0.9, 0.99])
def test_a_cut_parquet_file_is_recognised_and_computed_again(small_table, load, caplog, part):
    expected = load().partitions()
    make(load()).commit()
    path = stored_path(load())
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * part)])
    with pytest.raises(MetadataError, match="cut or damaged"):
        load().partition_statistics()
    with caplog.at_level(logging.WARNING, "icestats"):
        assert load().partitions().equals(expected)
    assert "committed partition statistics are not used" in caplog.text
    make(load()).commit()
    assert load().partition_statistics()["data_record_count"].equals(expected["data_record_count"])


def test_negative_counts_are_refused(small_table, load):
    make(load(), with_column_stats=False).commit()
    path = stored_path(load())
    table = pq.read_table(path)
    place = table.column_names.index("data_file_count")
    table = table.set_column(place, table.schema.field(place), pa.array([-1] * len(table), pa.int32()))
    pq.write_table(table, path, store_schema=False)
    with pytest.raises(MetadataError, match=f"negative.*{BUG}"):
        load().partition_statistics()


@pytest.mark.parametrize("name", ["data_file_count", "data_record_count"])
def test_counts_that_the_manifest_list_refutes_are_refused(small_table, load, name):
    """Iceberg loses files of partitions where it adds to a file of before a change of the spec."""
    make(load(), with_column_stats=False).commit()
    kind = pq.read_schema(stored_path(load())).field(name).type
    set_column(stored_path(load()), name, kind, 1)
    small_table.refresh().append(numbers([1]))
    table = load()
    with pytest.raises(MetadataError, match=f"{name}, its manifest list has .*{BUG}"):
        table.partition_statistics()
    readers = table.coverage(engines=["icestats"]).filter(pc.field("level") == "partition")
    assert set(readers["source"].to_pylist()) == {"manifests", None}
    assert BUG in str(table.overview().findings)


def test_two_rows_of_a_partition_are_one(small_table, load):
    """So Iceberg writes it after a change of the spec: for each row by itself the partition was too small."""
    make(load(), with_column_stats=False).commit()
    expected = load().partition_statistics()
    table = pq.read_table(stored_path(load()))
    first, counts = table.slice(0, 1), ("data_record_count", "data_file_count", "total_data_file_size_in_bytes")
    for name in counts:
        first = first.set_column(
            table.column_names.index(name), table.schema.field(name), pa.array([0], first[name].type)
        )
    pq.write_table(pa.concat_tables([first, table]), stored_path(load()), store_schema=False)
    assert load().partition_statistics().equals(expected)


@pytest.mark.parametrize("name", ["data_record_count", "equality_delete_record_count"])
def test_counts_of_no_partition_take_no_answer_with_them(small_table, load, name):
    """Above 2**53 a count would be no double of its own, as which estimates calculate."""
    expected = str(load().estimate("id < 100")["combined"].rows)
    make(load(), with_column_stats=False).commit()
    path = stored_path(load())
    table = pq.read_table(path)
    place = table.column_names.index(name)
    table = table.set_column(place, table.schema.field(place), pa.array([2**53 + 1] * len(table), pa.int64()))
    pq.write_table(table, path, store_schema=False)
    with pytest.raises(MetadataError, match=rf"{name} is above 2\*\*53"):
        load().partition_statistics()
    assert str(load().estimate("id < 100")["combined"].rows) == expected


@pytest.mark.parametrize("spec_id", [99, -1])
def test_partitions_of_a_spec_that_the_table_does_not_have_add_nothing(small_table, load, spec_id):
    expected = load().partitions()
    make(load()).commit()
    set_column(stored_path(load()), "spec_id", pa.int32(), spec_id)
    assert load().partitions().equals(expected)


@pytest.mark.parametrize("moment", [2**62, -(2**63)])
def test_times_beyond_all_years_are_refused(small_table, load, moment):
    make(load(), with_column_stats=False).commit()
    set_column(stored_path(load()), "last_updated_at", pa.int64(), moment)
    with pytest.raises(MetadataError, match="last_updated_at is no time of the years 1 to 9999"):
        load().partition_statistics()


def test_values_of_one_partition_field_are_not_taken_for_those_of_another(small_table, load):
    """Arrow casts an int to a date."""
    make(load(), with_column_stats=False).commit()
    day, bucket = (field.field_id for field in small_table.spec().fields)

    def swap(schema: pa.Schema) -> pa.Schema:
        place = schema.get_field_index("partition")
        fields = list(schema.field(place).type)
        ids = {str(day): str(bucket), str(bucket): str(day)}
        there = [ids[field.metadata[b"PARQUET:field_id"].decode()] for field in fields]
        swapped = [
            field.with_metadata({b"PARQUET:field_id": one.encode()}) for field, one in zip(fields, there, strict=True)
        ]
        return schema.set(place, schema.field(place).with_type(pa.struct(swapped)))

    rewrite(stored_path(load()), swap)
    with pytest.raises(MetadataError, match=r"partition field \w+ is stored as int32, expected date32"):
        load().partition_statistics()


def test_text_that_is_none_takes_no_answer_with_it(catalog, catalog_properties, caplog):
    """Arrow takes the bytes as they are, until somebody looks at the partition."""
    schema = IcebergSchema(NestedField(1, "name", StringType(), required=False))
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "name"))
    catalog.create_table("db.named", schema, partition_spec=spec).append(pa.table({"name": ["aaaa", "bbbb"]}))
    make(icestats.load("db.named", catalog=catalog_properties)).commit()
    table = icestats.load("db.named", catalog=catalog_properties)
    path = stored_path(table)
    rows = pq.read_table(path)
    names = pa.array([b"a\xff", b"bbbb"], pa.binary()).view(pa.string())
    place = rows.schema.get_field_index("partition")
    partition = pa.StructArray.from_arrays([names], fields=list(rows.schema.field(place).type))
    pq.write_table(rows.set_column(place, rows.schema.field(place), partition), path, store_schema=False)
    with pytest.raises(MetadataError, match=r"cut or damaged: .* Invalid UTF8 sequence"):
        table.partition_statistics()
    assert [row["partition"]["name"] for row in table.partitions().to_pylist()] == ["aaaa", "bbbb"]
    assert "committed partition statistics are not used" in caplog.text


def set_column(path: Path, name: str, kind: pa.DataType, value: int) -> None:
    table = pq.read_table(path)
    place = table.column_names.index(name)
    changed = table.set_column(place, table.schema.field(place), pa.array([value] * len(table), kind))
    pq.write_table(changed, path, store_schema=False)


def test_a_count_with_a_fraction_is_refused(small_table, load):
    with small_table.transaction() as change:
        change.set_properties({"write.format.default": "avro"})
    make(load()).commit()
    path = stored_path(load())
    reader = fastavro.reader(io.BytesIO(path.read_bytes()))
    schema, rows = reader.writer_schema, [row | {"data_record_count": 10.5} for row in reader]
    next(field for field in schema["fields"] if field["name"] == "data_record_count")["type"] = "double"
    metadata = {key: value for key, value in reader.metadata.items() if not key.startswith("avro.")}
    with path.open("wb") as out:
        fastavro.writer(out, schema, rows, metadata=metadata)
    with pytest.raises(MetadataError, match=r"not partition statistics: .*10\.5"):
        load().partition_statistics()


def test_a_file_that_is_none_is_refused(small_table, load):
    make(load()).commit()
    pq.write_table(pa.table({"a": [1]}), stored_path(load()))
    with pytest.raises(MetadataError, match="not partition statistics: no field partition"):
        load().partition_statistics()


def test_json_that_is_nested_without_end_takes_no_answer_with_it(small_table, load, caplog):
    """Python gives up on it with an error of its own."""
    expected = load().partitions()
    make(load()).commit()
    path = stored_path(load())
    table = pq.read_table(path).replace_schema_metadata(None)
    with pq.ParquetWriter(path, table.schema, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({b"icestats.columns": b"[" * 100_000})
    with pytest.raises(MetadataError, match="not partition statistics: maximum recursion depth"):
        load().partition_statistics()
    with caplog.at_level(logging.WARNING, "icestats"):
        assert load().partitions().equals(expected)
    assert str(path) in caplog.text


def test_of_two_files_of_a_snapshot_the_first_is_read(small_table, load):
    """It is the one that commits replace, and that `partitions` reads."""
    make(load()).commit()
    path = local_path(small_table.refresh().metadata_location)
    document = json.loads(path.read_text())
    [entry] = document["partition-statistics"]
    document["partition-statistics"].append({**entry, "statistics-path": "file:///gone.parquet"})
    path.write_text(json.dumps(document))
    assert load().partition_statistics().num_rows
    small_table.append(numbers([1]))
    assert "gone.parquet" not in repr(make(load()))


def test_no_file_is_a_clear_error(small_table, load):
    with pytest.raises(StatisticsMissingError, match="--partitions --commit"):
        load().partition_statistics()


DELETES = ["position_delete_record_count", "equality_delete_record_count", "equality_delete_file_count"]


@pytest.mark.parametrize("name", DELETES)
@pytest.mark.parametrize("is_there", [True, False], ids=["null", "left out"])
def test_deletes_that_a_file_does_not_count_are_not_none(small_table, load, name, is_there):
    """Before format version 3 a writer may leave these counts out: 0 would be shown, and committed for a later one."""
    delete_equal(small_table, pa.table({"id": pa.array([3], pa.int64())}), list_data_files(small_table)[0])
    make(load(), with_column_stats=False).commit()
    path = stored_path(load())
    table = pq.read_table(path)
    if is_there:
        field = table.schema.field(name)
        table = table.set_column(table.column_names.index(name), field, pa.nulls(len(table), field.type))
    pq.write_table(table if is_there else table.drop_columns([name]), path, store_schema=False)
    with pytest.raises(UnsupportedError, match=f"{name} is not known for each partition; compute"):
        load().partition_statistics()
    small_table.refresh().append(numbers([1]))
    assert f"{name} is not known" in repr(make(load(), with_column_stats=False))


@pytest.mark.parametrize("field_id", [None, b"1"])
def test_a_file_that_does_not_tell_its_partitions_apart_is_refused(small_table, load, field_id):
    """Without the field's id the values were null: the partitions of a day were shown and committed as one."""
    expected = load().partitions()
    make(load(), with_column_stats=False).commit()
    path = stored_path(load())

    def change(schema: pa.Schema) -> pa.Schema:
        day, bucket = schema.field("partition").type
        bucket = bucket.with_metadata(field_id and {b"PARQUET:field_id": field_id})
        return schema.set(0, schema.field(0).with_type(pa.struct([day, bucket])))

    rewrite(path, change)
    with pytest.raises(MetadataError, match=r"partition lacks the field id_bucket \(id 1001\)"):
        load().partition_statistics()
    made = make(load(), with_column_stats=False)
    assert "lacks the field id_bucket" in repr(made)
    made.commit()
    assert len(load().partition_statistics()) == len(expected)
