"""Manifests of random writer schemas, codecs and entries, against a slow reading of the same entries in Python."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icestats.read.manifests import group_store
from icestats.read.manifests.manifests import read_files, read_rollups
from tests.manifest_writer import METRICS
from tests.random_manifests import COLUMNS, METADATA, build_case
from tests.slow_rollups import expected, is_data, live, slow_partitions


def cells_of(table: Any, group: int) -> list[dict[str, Any]]:
    return table.slice(group * len(COLUMNS), len(COLUMNS)).to_pylist()


SEEDS = st.integers(0, 2**32 - 1)


@settings(max_examples=60)
@given(SEEDS)
def test_what_these_tests_write_is_avro(seed: int) -> None:
    """fastavro reads the files of these tests as the entries that they were written from."""
    case = build_case(seed)
    for path, rows in zip(case.files, case.entries, strict=True):
        if b"zstandard" in case.files[path][:20_000]:
            continue  # fastavro takes only another package for this codec
        read: list[Any] = list(fastavro.reader(io.BytesIO(case.files[path])))
        assert [r["status"] for r in read] == [r["status"] for r in rows]
        assert [r["data_file"]["file_path"] for r in read] == [r["data_file"]["file_path"] for r in rows]


@pytest.mark.parametrize("crowded", [False, True])
@settings(max_examples=100)
@given(SEEDS)
def test_roll_ups_equal_the_slow_way(crowded: bool, seed: int) -> None:
    """Every figure of every manifest, partition and column equals what a plain reading of the entries gives.

    Crowded: accumulators have room for two groups and hardly any bound, so that they are emptied and grow all the time.
    """
    case = build_case(seed)
    with pytest.MonkeyPatch.context() as patch:
        if crowded:
            patch.setattr(group_store, "LOCAL_SIZE", 1)
            patch.setattr(group_store, "LOCAL_GROUPS", 2)
            patch.setattr(group_store, "WHOLE_GROUPS", 1)
            patch.setattr(group_store, "ARENA_SIZE", 1)
        rollups = read_rollups(case.manifests, METADATA, case, threads=2)
    rows = rollups.manifests.to_pylist()
    for i in range(len(case.manifests)):
        mine = [row for j, _, row in live(case) if j == i]
        assert rows[i]["live_file_count"] == len(mine)
        assert rows[i]["record_count"] == sum(r["data_file"]["record_count"] for r in mine)
        assert rows[i]["file_size_in_bytes"] == sum(r["data_file"]["file_size_in_bytes"] for r in mine)
        data = [row["data_file"] for row in mine if is_data(row)]
        assert cells_of(rollups.manifest_cells, i) == [expected(data, column) for column in COLUMNS]
    data = [row["data_file"] for _, _, row in live(case) if is_data(row)]
    assert rollups.table_cells.to_pylist() == [expected(data, column) for column in COLUMNS]
    groups = slow_partitions(case)
    found = rollups.partitions.to_pylist()
    assert len(found) == len(groups)
    for i, (group, files) in enumerate(groups):
        values = list(found[i]["partition"].values())
        days = None if values[0] is None else values[0].toordinal() - 719_163
        assert (days, *values[1:], found[i]["spec_id"]) == group.pop("key")
        assert {name: found[i][name] for name in group} == group
        assert cells_of(rollups.partition_cells, i) == [expected(files, column) for column in COLUMNS]


@settings(max_examples=100)
@given(SEEDS, st.sampled_from([(), (5,), (1, 70_001, 2_000_000_000)]))
def test_files_equal_the_slow_way(seed: int, wanted: tuple[int, ...]) -> None:
    """Every live entry is one row, in order, with what it inherits and with the metrics that were asked for."""
    case = build_case(seed)
    table = read_files(case.manifests, METADATA, case, wanted, threads=2)
    table.validate(full=True)
    next_row_id = {m.path: m.first_row_id for m in case.manifests}
    rows = table.to_pylist()
    assert len(rows) == len(live(case))
    for row, (_, manifest, source) in zip(rows, live(case), strict=True):
        given_file = source["data_file"]
        content = given_file["content"] or 0
        assert row["content"] == ("data", "position_deletes", "equality_deletes")[content]
        assert row["partition"]["letter"] == given_file["partition"].get("letter")
        assert row["partition"]["bucket"] == given_file["partition"].get("bucket")
        for name in (
            *("file_path", "file_format", "record_count", "file_size_in_bytes", "key_metadata", "split_offsets"),
            *("equality_ids", "sort_order_id", "referenced_data_file", "content_offset", "content_size_in_bytes"),
        ):
            assert row[name] == given_file[name], name
        first = given_file["first_row_id"]
        following = next_row_id[manifest.path]
        if content or following is None:
            first = None
        elif first is None:
            first = following
            next_row_id[manifest.path] = following + given_file["record_count"]
        assert row["first_row_id"] == first
        assert row["snapshot_id"] == (
            manifest.added_snapshot_id if source["snapshot_id"] is None else source["snapshot_id"]
        )
        for name in ("sequence_number", "file_sequence_number"):
            inherits = source["status"] == 1 or manifest.sequence_number == 0
            inherited = manifest.sequence_number if inherits else None
            assert row[name] == (inherited if source[name] is None else source[name])
        for name in METRICS:
            items = given_file[name]
            if items is None:
                assert row[name] is None
            else:
                assert dict(row[name]) == {i: v for i, v in dict(items).items() if i in wanted}


@pytest.mark.parametrize("threads", [1, 4])
def test_threads_do_not_change_the_answer(threads: int) -> None:
    """The tables are the same whatever the number of threads."""
    case = build_case(7)
    assert read_files(case.manifests, METADATA, case, threads=threads).equals(
        read_files(case.manifests, METADATA, case, threads=2)
    )
