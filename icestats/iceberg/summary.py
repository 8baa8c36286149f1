"""What the summaries of snapshots, and the properties of blobs, state: counts as text.

Source: Iceberg spec, "Optional Snapshot Summary Fields".
"""

from __future__ import annotations

from collections.abc import Mapping

from icestats.iceberg.metadata import Snapshot, TableMetadata


def parse_count(text: str | None) -> int | None:
    """Return the count that a property states, None where it states none of 63 bits.

    Examples
    --------
    >>> parse_count("12"), parse_count("-1"), parse_count("9" * 19)
    (12, None, None)
    """
    return int(text) if text is not None and text.isascii() and text.isdecimal() and len(text) < 19 else None


_SIZED = {
    "added-files-size": ("added-data-files", "added-delete-files"),
    "removed-files-size": ("deleted-data-files", "removed-delete-files"),
}
"""Of a summary: a size, and the files that it is of."""


def find_stated_size(metadata: TableMetadata, snapshot: Snapshot) -> int | None:
    """Return the bytes of a snapshot's files as its summary states them, None where sizes have been left out.

    Iceberg's procedures `migrate`, `snapshot` and `add_files` append whole manifests: no summary has the sizes of their
    files, and the totals of later ones go on from there.
    """
    stated = parse_count(snapshot.summary.get("total-files-size"))
    if stated == 0 and parse_count(snapshot.summary.get("total-data-files")):
        return None
    return None if any(find_left_out_sizes(one.summary) for one in metadata.ancestors(snapshot)) else stated


def find_left_out_sizes(summary: Mapping[str, str]) -> list[str]:
    """Return the sizes that a summary does not have though it has files that they are of."""
    return [
        size
        for size, names in _SIZED.items()
        if size not in summary and any(parse_count(summary.get(name)) for name in names)
    ]
