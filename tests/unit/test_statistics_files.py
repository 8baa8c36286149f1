"""The blob that is nearest to a snapshot is used; where an ancestor has none, the error says what to run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import zstandard

from icestats.errors import PuffinFormatError, StatisticsMissingError
from icestats.iceberg.metadata import Field
from icestats.iceberg.storage import MAX_FILE_SIZE_BYTES, Storage
from icestats.read.puffin.committed_sketches import find_nearest
from icestats.read.puffin.puffin import PuffinBlob
from icestats.read.puffin.statistics_files import (
    COLUMN_STATISTICS,
    FREQUENT_ITEMS,
    JOINT_STATISTICS,
    KLL,
    PARTITION_SKETCHES,
    THETA,
    BlobRoom,
    CommittedBlob,
    CommittedBlobs,
)
from icestats.stats.table_statistics import read_column_statistics

PRICE = Field(3, "price", "double", False, True)


def committed(blob_type: str, field_id: int, commits_behind: int | None, path: str) -> CommittedBlob:
    blob = PuffinBlob(blob_type, (field_id,), 1, 1, 4, 5, None, {})
    return CommittedBlob(blob, path, listed=False, commits_behind=commits_behind)


def test_the_blob_of_the_column_and_type_with_the_fewest_commits_behind_is_found():
    blobs = [
        committed(KLL, 3, None, "no ancestor"),
        committed(KLL, 3, 5, "far"),
        committed(KLL, 3, 2, "near"),
        committed(KLL, 4, 0, "another column"),
        committed(THETA, 3, 0, "another type"),
    ]
    found = find_nearest(CommittedBlobs(blobs), KLL, PRICE)
    assert (found.statistics_path, found.commits_behind) == ("near", 2)


@pytest.mark.parametrize(
    ("blob_type", "message"),
    [
        (
            KLL,
            r"no KLL sketch of column 'price' .* run table\.compute\(columns=\['price'\]\)\.commit\(\), or `icestats",
        ),
        (THETA, r"no Theta sketch of column 'price' .* run table\.compute\(columns=\['price'\]\)\.commit\(\), or"),
        (PARTITION_SKETCHES, r"no sketch by partition of column 'price' .*by=\"partition\"\)\.commit\(\)$"),
    ],
)
def test_a_blob_that_only_another_branch_has_is_missing(blob_type: str, message: str):
    with pytest.raises(StatisticsMissingError, match=message):
        find_nearest(CommittedBlobs([committed(blob_type, 3, None, "no ancestor")]), blob_type, PRICE)


@pytest.mark.parametrize("blob_type", [FREQUENT_ITEMS, JOINT_STATISTICS, COLUMN_STATISTICS])
def test_what_a_blob_of_json_expands_to_is_limited_before_it_is_expanded(tmp_path: Path, blob_type: str):
    """Text takes three times its bytes while it is read: one of 9 MB, with 2 GiB in it, took 6 GB."""
    size = MAX_FILE_SIZE_BYTES + 1
    compressor = zstandard.ZstdCompressor().compressobj(size=size)
    noise = np.random.default_rng(1).bytes(2 << 20)
    stored = compressor.compress(noise) + compressor.compress(bytes(size - len(noise))) + compressor.flush()
    (tmp_path / "blob").write_bytes(b"PFA1" + stored)
    blob = PuffinBlob(blob_type, (3,), 1, 1, 4, len(stored), "zstd", {})
    found = CommittedBlob(blob, str(tmp_path / "blob"), listed=False, commits_behind=0)
    with pytest.raises(PuffinFormatError, match="says 268435457 bytes of content, expected 268435456 at most"):
        found.read(Storage(), "JSON", len)


def test_what_all_blobs_expand_to_is_limited(tmp_path: Path):
    """300 blobs of 2 kB, each of 64 MiB, took a minute of `columns()`, and thousands of them hours."""
    stored = zstandard.ZstdCompressor().compress(bytes(60 << 20))
    (tmp_path / "blob").write_bytes(b"PFA1" + stored * 20)
    room = BlobRoom()
    blobs = [
        CommittedBlob(
            PuffinBlob(FREQUENT_ITEMS, (i,), 1, 1, 4 + i * len(stored), len(stored), "zstd", {}),
            str(tmp_path / "blob"),
            listed=False,
            commits_behind=0,
            room=room,
        )
        for i in range(20)
    ]
    # What has been read is read again.
    assert {one.read(Storage(), "JSON", len) for one in blobs[:9] * 2} == {60 << 20}
    with pytest.raises(PuffinFormatError, match="is not read: other blobs expand to more than 536,870,912 bytes"):
        blobs[9].read(Storage(), "JSON", len)
    assert blobs[0].read(Storage(), "JSON", len) == 60 << 20


def test_column_statistics_of_members_without_end_are_refused():
    """Each takes many times its three bytes in memory."""
    with pytest.raises(ValueError, match="5,000,001 values of JSON, expected 4,194,304 at most"):
        read_column_statistics(b'{"columns":' + b"[" * 2_500_000 + b"," * 2_500_000)
