"""What a rewrite of manifests would do, or has done: as it was, as predicted, as it came out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from icestats.answers.markup import build_answer, element
from icestats.answers.schemas import MANIFEST_REWRITE
from icestats.plan.layout.layout_figures import FieldLayout
from icestats.plan.layout.what_if import Comparison


@dataclass(frozen=True, slots=True)
class Outcome:
    """One figure, before, as predicted, and after; None: the rewrite has not been run."""

    subject: str
    """A filter, or a partition field."""
    figure: str
    before: float
    predicted: float
    after: float | None


@dataclass(frozen=True, slots=True)
class ManifestRewrite:
    """A rewrite of manifests, planned or done."""

    table: str
    statements: tuple[str, ...]
    is_done: bool
    rewritten_manifest_count: int | None
    added_manifest_count: int | None
    outcomes: tuple[Outcome, ...]

    def to_arrow(self) -> pa.Table:
        """Return the figures.

        Returns
        -------
        pyarrow.Table
            `MANIFEST_REWRITE`: one row a figure.
        """
        rows = [
            {"subject": o.subject, "figure": o.figure, "before": o.before, "predicted": o.predicted, "after": o.after}
            for o in self.outcomes
        ]
        return pa.Table.from_pylist(rows, MANIFEST_REWRITE)

    def __repr__(self) -> str:
        return "\n".join([self._head(), *(f"  {line}" for line in self._lines()), *self.statements])

    def _repr_html_(self) -> str:
        lines = element("ul", *(element("li", line) for line in self._lines()))
        return build_answer(self._head(), lines, element("pre", ";\n".join(self.statements)))

    def _head(self) -> str:
        if not self.is_done:
            return f"{self.table}: nothing has been changed; dry_run=False runs"
        return (
            f"{self.table}: {self.rewritten_manifest_count:,} manifests rewritten, {self.added_manifest_count:,} made "
            "of them"
        )

    def _lines(self) -> list[str]:
        return [
            f"{o.subject}, {o.figure}: {o.before:,.6g} before, {o.predicted:,.6g} predicted"
            + ("" if o.after is None else f", {o.after:,.6g} after")
            for o in self.outcomes
        ]


def build_outcomes(
    workload: Sequence[Comparison],
    fields: Sequence[tuple[FieldLayout, FieldLayout]],
    after: tuple[Sequence[Comparison], Sequence[FieldLayout]] | None,
) -> tuple[Outcome, ...]:
    """Build the figures of a rewrite.

    Parameters
    ----------
    workload : sequence of Comparison
        Each filter's funnel before, and as predicted.
    fields : sequence of tuple of FieldLayout
        Each partition field's overlap before, and as predicted.
    after : tuple, optional
        The funnels (`now`) and overlaps of the rewritten table.
    """
    counts, layouts = ((), ()) if after is None else after
    found = []
    for place, comparison in enumerate(workload):
        for step, (now, then) in enumerate(zip(comparison.now, comparison.then, strict=True)):
            came = counts[place].now[step].kept if after is not None else None
            found.append(Outcome(comparison.row_filter, f"{now.step} kept", now.kept, then.kept, came))
    for place, (before, predicted) in enumerate(fields):
        mean = layouts[place].manifests.mean if after is not None else None
        name = "manifests that a key lies in, mean"
        found.append(Outcome(before.name, name, before.manifests.mean, predicted.manifests.mean, mean))
    return tuple(found)
