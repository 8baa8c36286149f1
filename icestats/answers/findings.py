"""A problem that icestats finds in a table: how serious it is, the evidence, and the statement that fixes it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

from icestats.answers.text import printable_lines

_Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem of a table."""

    severity: _Severity
    """`error`: answers or statistics are wrong. `warning`: queries do more work than needed. `note`: worth knowing."""
    title: str
    """The problem, in one sentence."""
    evidence: str
    """The figures that show it."""
    fix: str | None = None
    """The exact statement that fixes it; None if there is none."""

    def __str__(self) -> str:
        fix = [f"  fix: {self.fix}"] if self.fix else []
        return printable_lines([f"{self.severity}: {self.title} ({self.evidence})", *fix])

    def to_json(self) -> dict[str, str | None]:
        """Return the finding as a JSON object."""
        return asdict(self)
