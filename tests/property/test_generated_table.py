"""The benchmark's generated table: every cell of every roll-up equals what fastavro and plain Python make of it."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

import icestats
from icestats.answers.schemas import STATISTICS
from icestats.iceberg.types import decode_value

Files = Sequence[dict[str, Any]]


@pytest.fixture(scope="module", params=[1, 2, 3])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> icestats.Table:
    """A table of eight small days: a late column, rewritten manifests, deletes, files without metrics."""
    sys.path.insert(0, str(Path(__file__).parents[2]))
    try:
        from benchmarks.generated_table import Shape, generate
    finally:
        sys.path.pop(0)
    location = generate(tmp_path_factory.mktemp("generated"), Shape(8, 160, 6, 21, seed=request.param))
    return icestats.load(str(location / "metadata" / "v1.metadata.json"))


@pytest.fixture(scope="module")
def files(table: icestats.Table) -> list[dict[str, Any]]:
    """Its live files as fastavro reads them, each with its manifest; maps as dicts."""
    found = []
    for path in table.manifest_files()["manifest_path"].to_pylist():
        with Path(path).open("rb") as file:
            for entry in fastavro.reader(file):
                assert isinstance(entry, dict)
                if entry["status"] != 2:
                    data_file = entry["data_file"] | {"manifest_path": path}
                    for statistic in STATISTICS:
                        pairs = data_file[f"{statistic}s"] or ()
                        data_file[f"{statistic}s"] = {pair["key"]: pair["value"] for pair in pairs}
                    found.append(data_file)
    return found


def group(files: Files, *names: str) -> dict[Any, list[dict[str, Any]]]:
    groups = defaultdict(list)
    for file in files:
        key = tuple(file["partition"][name] if name in file["partition"] else file[name] for name in names)
        groups[key].append(file)
    return groups


def expected(files: Files, statistic: str, field: Any) -> tuple[Any, int]:
    """The value of a column's statistic over data files, None for unknown, and how many files lack it."""
    values = [file[f"{statistic}s"].get(field.field_id) for file in files]
    if not statistic.endswith("bound"):
        missing = values.count(None)
        return (None if missing else sum(value for value in values if value is not None)), missing
    needless = 0
    for file, value in zip(files, values, strict=True):
        counts = [file[name].get(field.field_id) for name in ("value_counts", "null_value_counts", "nan_value_counts")]
        needless += value is None and counts[0] is not None and counts[0] == (counts[1] or 0) + (counts[2] or 0)
    missing = values.count(None) - needless
    known = [value for value in values if value is not None]
    best = min if statistic == "lower_bound" else max
    return (best(known, key=lambda raw: decode_value(field.type, raw)) if known and not missing else None), missing


def check_maps(row: dict[str, Any], files: Files, table: icestats.Table) -> None:
    data = [file for file in files if file["content"] == 0]
    for statistic in STATISTICS:
        found, missing = dict(row[f"{statistic}s"]), dict(row[f"{statistic}s_missing_files"])
        for field in table.schema.columns:
            if statistic == "nan_value_count" and field.type not in ("float", "double"):
                assert field.field_id not in found
                continue
            value = found[field.field_id]
            want, lacking = expected(data, statistic, field)
            assert missing[field.field_id] == lacking, (statistic, field.name)
            if statistic.endswith("bound") and value is not None and want is not None:
                # A decimal's bytes may be padded.
                value, want = (decode_value(field.type, raw) for raw in (value, want))
            assert value == want, (statistic, field.name)


def test_manifests_equal_a_plain_reading(table: icestats.Table, files: list[dict[str, Any]]) -> None:
    """Counts, sizes and every map of every manifest."""
    groups = group(files, "manifest_path")
    rows = table.manifests().to_pylist()
    assert len(rows) == len(groups) > 40
    for row in rows:
        own = groups[(row["manifest_path"],)]
        assert row["live_file_count"] == len(own)
        assert row["total_record_count"] == sum(file["record_count"] for file in own)
        assert row["total_file_size_in_bytes"] == sum(file["file_size_in_bytes"] for file in own)
        if row["content"] == "data":
            check_maps(row, own, table)


def test_partitions_equal_a_plain_reading(table: icestats.Table, files: list[dict[str, Any]]) -> None:
    """Counts, sizes and every map of every partition."""
    groups = group(files, "event_time_day", "device_id_bucket")
    partitions = table.partitions()
    assert partitions.num_rows == len(groups)
    for row in partitions.to_pylist():
        own = groups[tuple(row["partition"].values())]
        by_content = {content: [file for file in own if file["content"] == content] for content in (0, 1, 2)}
        assert row["data_file_count"] == len(by_content[0])
        assert row["data_record_count"] == sum(file["record_count"] for file in by_content[0])
        assert row["total_data_file_size_in_bytes"] == sum(file["file_size_in_bytes"] for file in by_content[0])
        assert row["position_delete_file_count"] == len(by_content[1])
        assert row["equality_delete_record_count"] == sum(file["record_count"] for file in by_content[2])
        check_maps(row, own, table)


def test_columns_equal_a_plain_reading(table: icestats.Table, files: list[dict[str, Any]]) -> None:
    """Every figure of every column over the table; files without metrics make it unknown."""
    data = [file for file in files if file["content"] == 0]
    columns = table.columns()
    assert columns.num_rows == len(table.schema.columns)
    assert any(not file["value_counts"] for file in data)
    for row, field in zip(columns.to_pylist(), table.schema.columns, strict=True):
        for statistic in ("value_count", "null_value_count", "column_size"):
            want, lacking = expected(data, statistic, field)
            assert row[statistic] == want
            assert dict(row["missing_files"]).get(statistic, 0) == lacking


def test_the_table_is_what_it_says(table: icestats.Table, files: list[dict[str, Any]]) -> None:
    """The oracle is no empty one: some figures are known, some are not."""
    maps = table.manifests()["lower_bounds"]
    flat = pa.chunked_array([chunk.items for chunk in maps.chunks])
    assert 0 < flat.null_count < len(flat)
    assert {file["content"] for file in files} == {0, 1, 2}
