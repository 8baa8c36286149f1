"""A problem that icestats finds in a table: how serious it is, the evidence, and the statement that fixes it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Literal

from icestats.answers.text import printable_lines

_Severity = Literal["error", "warning", "note"]
_Subject = Literal["statistics", "manifests", "files", "sizes"]


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
    cost: str | None = None
    """What the statement reads and writes, in words; None if that is not known."""
    is_lasting: bool = False
    """Whether the statement sets a property of the table, which stays until somebody takes it back."""
    subject: _Subject = "statistics"
    """What it is about: where to look further."""
    fields: tuple[str, ...] = ()
    """The columns or partition fields that it is about, if it is about some."""

    def __str__(self) -> str:
        fix = [f"  fix: {self.fix}"] if self.fix else []
        return printable_lines([f"{self.severity}: {self.title} ({self.evidence})", *fix])

    def to_json(self) -> dict[str, str | bool | None]:
        """Return the finding as a JSON object."""
        return {name: told for name, told in asdict(self).items() if name not in ("subject", "fields")}


_SEVERITIES = ("error", "warning", "note")


def order_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings, the gravest first; of the same severity, those whose fix sets a property for ever come last.

    Examples
    --------
    >>> lasting = Finding("warning", "no bounds", "of 3 files", "ALTER TABLE ...", is_lasting=True)
    >>> order_findings([lasting, Finding("warning", "small files", "9 of 10")])[0].title
    'small files'
    """
    return tuple(sorted(findings, key=lambda finding: (_SEVERITIES.index(finding.severity), finding.is_lasting)))
