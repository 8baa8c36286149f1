"""Catalogs that PyIceberg does not know, in the place of one of its own: another library loads tables and commits."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from pyiceberg.catalog.noop import NoopCatalog

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.table.metadata import TableMetadata as IcebergMetadata


class ForeignCatalog(NoopCatalog):
    """A catalog of another library, for one table: `load_table` and `commit_table` are asked of that library."""

    swaps_metadata: bool = False
    """Whether a commit replaces the very metadata that its requirements were checked against, or fails. False where a
    server decides alone. Known once the table is loaded."""
    file_io: FileIO | None = None
    """What opens the table's files, in this process only; None where they are opened as any other table's."""

    def list_files(self, folder: str) -> Iterator[tuple[str, int, datetime]]:
        """Yield the location, size in bytes and time of the files in a folder that `file_io` opens."""
        raise NotImplementedError

    @staticmethod
    def _delete_old_metadata(io: FileIO, base: IcebergMetadata, metadata: IcebergMetadata) -> None:
        """The other library has deleted what the table's properties say."""
