"""The steps of a plan: how much each of them is about, and how much it leaves."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Unit = Literal["manifest", "file", "row group", "row"]

SUMMARIES = "manifests by partition summaries"
ROLLUPS = "manifests by column bounds"
TUPLES = "data files by partition tuple"
BOUNDS = "data files by column bounds"
ROW_GROUPS = "row groups by column bounds"
ROWS = "rows"


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One step of a plan. None is unknown, never 0."""

    step: str
    unit: Unit
    total: int
    """What the step before has left, of this unit."""
    kept: int | None
    kept_bytes: int | None
    """Of manifests: their own length. Of files and row groups: their size on disk."""
    kept_rows: int | None
    """Records in what is kept, row-level deletes not deducted."""
    duration_ms: float
    """With the reading that the step needs."""
    values_read: int = 0
    """Statistics that the step looked at."""
    bytes_read: int = 0
    """Of metadata files, read for this step."""
    note: str = ""

    @property
    def skipped(self) -> int | None:
        """What the step rules out."""
        return None if self.kept is None else self.total - self.kept

    def to_json(self) -> dict[str, Any]:
        """Return the step as JSON has it."""
        found = asdict(self)
        return {"step": found.pop("step"), "unit": found.pop("unit"), "total": found.pop("total"),
                "kept": found.pop("kept"), "skipped": self.skipped, **found}  # fmt: skip
