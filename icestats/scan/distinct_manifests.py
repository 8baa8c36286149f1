"""PyIceberg's snapshot, with each manifest of its list once."""

from __future__ import annotations

from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestFile
from pyiceberg.table.snapshots import Snapshot


class DistinctSnapshot(Snapshot):
    """A snapshot that gives a manifest once, however often its list names it.

    So does Iceberg's Java library (`ManifestGroup`); PyIceberg 0.12 reads the files' rows as often.
    """

    def manifests(self, io: FileIO) -> list[ManifestFile]:
        """Return the manifests, each where its list has it first."""
        found: dict[str, ManifestFile] = {}
        for manifest in super().manifests(io):
            found.setdefault(manifest.manifest_path, manifest)
        return list(found.values())
