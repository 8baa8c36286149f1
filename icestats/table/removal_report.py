"""What taking a snapshot's statistics out of a table has changed, or would change."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class RemovalReport:
    """What `Table.remove_statistics` has done, or would do."""

    removed: bool
    """False for a dry run."""
    snapshot_id: int
    statistics_path: str
    """The file that the table no longer refers to; it stays on storage."""
    restored_path: str | None
    """The file of the entry that was put back; None for none."""
    text: str = field(repr=False)

    def __str__(self) -> str:
        return self.text.replace("would ", "", 3) if self.removed else self.text

    def to_json(self) -> dict[str, Any]:
        """Return the report as the command line prints it."""
        return {
            "removed": self.removed,
            "snapshot_id": str(self.snapshot_id),
            "path": self.statistics_path,
            "restored_path": self.restored_path,
        }
