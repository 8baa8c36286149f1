"""The blob that is nearest to a snapshot is used; where an ancestor has none, the error says what to run."""

from __future__ import annotations

import pytest

from icestats.errors import StatisticsMissingError
from icestats.iceberg.metadata import Field
from icestats.read.puffin.puffin import PuffinBlob
from icestats.read.puffin.statistics_files import KLL, PARTITION_SKETCHES, THETA, CommittedBlob, find_nearest

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
    found = find_nearest(blobs, KLL, PRICE)
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
        find_nearest([committed(blob_type, 3, None, "no ancestor")], blob_type, PRICE)
