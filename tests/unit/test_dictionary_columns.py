"""Texts that repeat are read as dictionaries: their statistics are those of plain ones."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import icestats
from icestats.iceberg.metadata import Field
from icestats.scan.scan_job import read_live_rows
from icestats.scan.scan_plan import prepare_scan
from icestats.stats.column_accumulator import ColumnAccumulator
from icestats.stats.joint_statistics import PairAccumulator, encode_column
from icestats.stats.kll import KllSketch
from icestats.stats.table_statistics import ColumnStatistics
from tests.computed_statistics import compute_here
from tests.written_deletes import delete_positions, list_data_files

ROWS = 400_000
COLORS = ["red", "", "grün", "blau", "z" * 300, None]


def accumulate(type_text: str, array: pa.Array | pa.ChunkedArray) -> ColumnStatistics:
    accumulator = ColumnAccumulator(Field(1, "c", type_text, required=False, top_level=True))
    accumulator.update(array)
    # A KLL sketch makes its choices by chance.
    found = accumulator.result()
    assert found.kll is None or KllSketch.from_bytes("string", found.kll).n == len(array) - array.null_count
    return replace(found, kll=None)


@pytest.mark.parametrize(
    "values",
    [
        COLORS[:4],
        COLORS,
        [None],
        [None, ""],
        [f"{number:04}" for number in range(400)],
        [f"{number:04}" for number in range(3_000)],
    ],
)
@pytest.mark.parametrize("type_text", ["string", "binary"])
def test_a_dictionary_has_the_statistics_of_its_values(type_text: str, values: list[str | None]) -> None:
    kind = pa.string() if type_text == "string" else pa.binary()
    drawn = np.random.default_rng(2).integers(0, len(values), 20_000)
    plain = pa.array(values, pa.string()).cast(kind).take(pa.array(drawn))
    encoded = plain.dictionary_encode()
    other = pa.array(["?"], kind)
    # A dictionary may have more values than are used, and one for each of several chunks.
    unused = pa.DictionaryArray.from_arrays(encoded.indices, pa.concat_arrays([encoded.dictionary, other]))
    chunks = pa.chunked_array([plain[:7_000].dictionary_encode(), plain[7_000:].dictionary_encode()])
    expected = accumulate(type_text, plain)
    for array in (encoded, unused, chunks.unify_dictionaries().combine_chunks()):
        assert accumulate(type_text, array) == expected


def test_pairs_of_dictionaries_are_those_of_their_values() -> None:
    random = np.random.default_rng(3)
    texts = pa.array([*COLORS[:3], None]).take(pa.array(random.integers(0, 4, 5_000)))
    numbers = pa.array(random.integers(0, 9, 5_000))
    fields = (Field(1, "a", "string", False, True), Field(2, "b", "long", False, True))
    found = []
    chunks = pa.chunked_array([texts[:9].dictionary_encode(), texts[9:].dictionary_encode()])
    for array in (texts, texts.dictionary_encode(), chunks):
        pairs = PairAccumulator(*fields)
        pairs.update(encode_column(array, "string"), encode_column(numbers, "long"))
        found.append(pairs.result((3, 9)))
    assert found[0] == found[1] == found[2]


def build_rows(seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "price": random.random(ROWS),
            "color": pa.array([*COLORS[:4], None]).take(pa.array(random.integers(0, 5, ROWS))),
            "name": pa.array([f"name {number}" for number in random.integers(0, ROWS, ROWS).tolist()]),
        }
    )


def test_large_files_are_read_as_dictionaries_where_texts_repeat(
    catalog: SqlCatalog, catalog_properties: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """Also where a column has been renamed, so that the files have it by two names."""
    parts = build_rows(1), build_rows(2)
    table = catalog.create_table("db.t", parts[0].schema)
    table.append(parts[0])
    with table.update_schema() as update:
        update.rename_column("color", "shade")
    table.append(parts[1].rename_columns(["price", "shade", "name"]))
    loaded = icestats.load("db.t", catalog=catalog_properties)
    plan = prepare_scan(loaded._source, loaded._reader.require_snapshot(), loaded.schema, None)
    with caplog.at_level(logging.WARNING):
        kinds = {tuple(map(str, batch.schema.types)) for batch in read_live_rows(plan.reading, plan.tasks)}
    assert len(kinds) == 2
    assert {kind[1] for kind in kinds} == {"string", "dictionary<values=string, indices=int32, ordered=0>"}
    assert not caplog.records
    table.append(parts[1].rename_columns(["price", "shade", "name"]).slice(0, 20_000))
    statistics = compute_here(loaded.refresh(), together="auto").to_arrow().to_pylist()
    shade, name = (next(row for row in statistics if row["name"] == one) for one in ("shade", "name"))
    colors = [parts[0]["color"], parts[1]["color"], parts[1]["color"].slice(0, 20_000)]
    assert shade["null_value_count"] == sum(one.null_count for one in colors)
    assert shade["ndv"] in (3, 4)
    assert shade["value_count"] == name["value_count"] == 2 * ROWS + 20_000


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_texts_that_arrow_makes_no_dictionary_of_are_read_as_they_are(
    catalog: SqlCatalog, tmp_path: Path, encoding: str
) -> None:
    """Pages of version 2 have them where a dictionary would not be smaller: in one file, and not in another."""
    parts = [build_rows(1), build_rows(2).slice(0, 10_000)]
    table = catalog.create_table("db.t", parts[0].schema)
    table.append(parts[0])
    path = tmp_path / "other.parquet"
    pq.write_table(parts[1], path, use_dictionary=False, column_encoding={"color": encoding}, row_group_size=4_000)
    table.add_files([str(path)])
    delete_positions(table, [(file, 5) for file in list_data_files(table)])
    loaded = icestats.load(table.metadata_location)
    plan = prepare_scan(loaded._source, loaded._reader.require_snapshot(), loaded.schema, None)
    left = [pa.concat_tables([part.slice(0, 5), part.slice(6)]) for part in parts]
    tasks = sorted(plan.tasks, key=lambda task: -task.file.record_count)
    batches = list(read_live_rows(plan.reading, tasks))
    rows = pa.concat_tables(pa.Table.from_batches([batch]).cast(parts[0].schema) for batch in batches)
    assert rows.equals(pa.concat_tables(left))
    assert {pa.types.is_dictionary(batch["color"].type) for batch in batches} == {True, False}
