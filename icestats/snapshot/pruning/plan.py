"""A plan: what a scan with a filter reads of a snapshot, step by step, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import combine_chunks, join_paths, take_rows
from icestats.answers.findings import Finding
from icestats.answers.markup import build_answer, build_table, element
from icestats.answers.schemas import PLAN_MANIFESTS, PLAN_ROW_GROUPS, PLAN_STEPS, plan_files_schema
from icestats.answers.text import printable_lines, render_bytes, render_count
from icestats.errors import CallError, check_choice, check_whole
from icestats.iceberg.value_order import Longs, Mask
from icestats.snapshot.evaluation.explanations import Explanation, explain, join_explanations
from icestats.snapshot.pruning.funnel import ROW_GROUPS, Funnel, PlanStep

if TYPE_CHECKING:
    from icestats.iceberg.filters.row_filter import RowFilter

_WIDTH = 24
_HEAD = ("step", "of", "kept", "skipped", "share kept", "size kept", "records kept", "ms")
Which = Literal["kept", "skipped", "all", "none"]


@dataclass(frozen=True, eq=False)
class Plan:
    """What a scan with a row filter reads of one snapshot, and why. A plan equals itself alone.

    Nothing of the data has been read, unless row groups or rows were asked for.
    """

    table: str
    """The name or location that the table was loaded by."""
    snapshot_id: int | None
    bound: RowFilter = field(repr=False)
    """The filter, bound to the schema of the snapshot."""
    funnel: Funnel = field(repr=False)
    """What each step has left, and how it judged each manifest and file."""
    _find_deletes: Callable[[pa.Table], list[list[str]]] = field(repr=False)
    """Gives for data files (`file_metrics_schema`) the paths of the delete files that apply."""
    findings: tuple[Finding, ...] = ()
    """What is wrong with the files that are kept."""

    @property
    def row_filter(self) -> str:
        """The filter, as text."""
        return self.bound.text

    @property
    def steps(self) -> tuple[PlanStep, ...]:
        """From all manifests with live data files to what is read.

        `kept` + `skipped` = `total` at each step, and `total` is what the step before has left.
        """
        return self.funnel.steps

    @property
    def partition_filters(self) -> Mapping[int, str]:
        """For each partition spec the filter that every matching row's partition meets; `true` where there is none."""
        return {spec_id: str(condition) for spec_id, condition in self.bound.by_spec.items()}

    @property
    def unprojected(self) -> Mapping[int, Mapping[str, str]]:
        """For each partition spec the predicates that its partitions say nothing about, and why."""
        return {
            spec_id: {str(predicate): reason for predicate, reason in found.items()}
            for spec_id, found in self.bound.unprojected.items()
        }

    def step(self, name: str) -> PlanStep:
        """Return a step by its name.

        Raises
        ------
        CallError
            The plan has no such step.
        """
        for found in self.steps:
            if found.step == name:
                return found
        raise CallError(f"no step {name!r:.80}: the plan has {', '.join(s.step for s in self.steps)}")

    def to_arrow(self) -> pa.Table:
        """Return the steps.

        Returns
        -------
        pyarrow.Table
            `PLAN_STEPS`: one row a step.
        """
        return pa.Table.from_pylist([step.to_json() for step in self.steps], PLAN_STEPS)

    def manifests(self) -> pa.Table:
        """Return the manifests of data, each with whether it is read and why.

        Returns
        -------
        pyarrow.Table
            `PLAN_MANIFESTS`: one row a manifest, in manifest list order.
        """
        funnel = self.funnel
        manifests = funnel.manifests
        found = [self.explain_manifest(row) for row in range(manifests.num_rows)]
        counts = {
            name: pc.add(manifests[f"added_{what}_count"], manifests[f"existing_{what}_count"])
            for name, what in (("live_file_count", "files"), ("record_count", "rows"))
        }
        kept = np.zeros(manifests.num_rows, np.bool_)
        kept[funnel.kept_manifests] = True
        columns = {
            "manifest_path": manifests["manifest_path"],
            "manifest_length": manifests["manifest_length"],
            "spec_id": manifests["partition_spec_id"],
            **counts,
            "kept": kept,
            "step": [step for step, _ in found],
            **_texts([explanation for _, explanation in found]),
        }
        return pa.Table.from_pydict(columns, PLAN_MANIFESTS)

    def files(self, which: Which = "kept") -> pa.Table:
        """Return the live data files of the manifests that are read, each with whether it is read and why.

        Parameters
        ----------
        which : {"kept", "skipped", "all", "none"}
            Which of them. Files of manifests that are skipped are in none of these: nothing has been read of them.

        Returns
        -------
        pyarrow.Table
            `plan_files_schema`: one row a data file, in the order of the manifests and of their entries.
        """
        rows = self._choose(which)
        return self._build_files(rows, [self.explain_file(row) for row in rows.tolist()])

    def explain_manifest(self, row: int) -> tuple[str, Explanation]:
        """Return the step that decides about a row of `funnel.manifests`, and why it does."""
        row = check_whole("row", row, 0)
        step, parts = "", list[Explanation]()
        for judgement in (one for result in self.funnel.by_manifest for one in result.judgements):
            place = _find(judgement.rows, row)
            if place is not None:
                explanation = explain(judgement.evaluation, place, self.bound.unprojected.get(judgement.spec_id))
                step = judgement.step
                parts = [*parts, explanation] if judgement.evaluation.kept[place] else [explanation]
        return step, join_explanations(parts)

    def explain_file(self, row: int) -> tuple[str, Explanation]:
        """Return the step that decides about a row of `funnel.files`, and why it does."""
        row = check_whole("row", row, 0)
        for judgement in (one for result in reversed(self.funnel.by_file) for one in result.judgements):
            place = _find(judgement.rows, row)
            if place is not None:
                return judgement.step, explain(judgement.evaluation, place)
        raise CallError(f"no file {row} in this plan: it has {self.funnel.files.num_rows:,}")

    def row_groups(self) -> pa.Table:
        """Return the row groups of the kept files, each with whether it is read and why.

        Returns
        -------
        pyarrow.Table
            `PLAN_ROW_GROUPS`: one row a row group, in the order of the kept files.

        Raises
        ------
        CallError
            The plan was made without row groups.
        """
        groups, found = self.funnel.row_groups, self.funnel.by_row_group
        if groups is None or found is None:
            raise CallError("the plan was made without row groups: make it with row_groups=True")
        evaluation = found.judgements[0].evaluation
        paths = pa.array(self.kept_file_paths(), pa.string())
        columns = {
            "file_path": paths.take(groups["file_index"]),
            "row_group": groups["row_group"],
            "row_count": groups["row_count"],
            "size_bytes": groups["size_bytes"],
            "kept": evaluation.kept,
            "step": [ROW_GROUPS] * groups.num_rows,
            **_texts([explain(evaluation, place) for place in range(groups.num_rows)]),
        }
        return pa.Table.from_pydict(columns, PLAN_ROW_GROUPS)

    def kept_file_paths(self) -> list[str]:
        """Return the paths of the data files that are read."""
        files = take_rows(self.funnel.files.select(["folder", "file_name"]), self.funnel.kept_files)
        paths: list[str] = join_paths(files)["file_path"].to_pylist()
        return paths

    def to_json(self, files: Which = "kept") -> dict[str, Any]:
        """Return the plan as one JSON object.

        Parameters
        ----------
        files : {"kept", "skipped", "all", "none"}
            Which files are listed.
        """
        chosen = self._choose(files)
        table = self._build_files(chosen, found := [self.explain_file(row) for row in chosen.tolist()])
        rows = table.select(["file_path", "kept", "step", "reason", "delete_files"]).to_pylist()
        for row, (_, explanation) in zip(rows, found, strict=True):
            row["reason"] = explanation.sentence
        return {
            "row_filter": self.row_filter,
            "snapshot_id": None if self.snapshot_id is None else str(self.snapshot_id),
            "steps": [step.to_json() for step in self.steps],
            "files": rows,
            "partition_filters": {str(spec_id): text for spec_id, text in self.partition_filters.items()},
            "unprojected": {str(spec_id): dict(found) for spec_id, found in self.unprojected.items()},
            "findings": [finding.to_json() for finding in self.findings],
        }

    def __repr__(self) -> str:
        width = max((len(step.step) for step in self.steps), default=0)
        lines = [f"{self.table} where {self.row_filter}", *(f"  {line}" for line in self._filter_lines())]
        for step in self.steps:
            bar = "█" * max(round(_share(step) * _WIDTH), 1 if step.kept else 0)
            counts = [f"{render_count(step.kept)} of {step.total:,} {step.unit}s kept"]
            if step.unit != "row":
                counts += [render_bytes(step.kept_bytes), f"{render_count(step.kept_rows)} records"]
            counts.append(f"{step.duration_ms:.1f} ms" + (f" ({step.note})" if step.note else ""))
            lines.append(f"  {step.step:<{width}}  {bar:<{_WIDTH}}  {', '.join(counts)}")
        return printable_lines([*lines, *(f"  ! {finding}" for finding in self.findings)])

    def _repr_html_(self) -> str:
        lines = [line.strip() for line in self._filter_lines()]
        table = build_table(_HEAD, map(_row, self.steps))
        findings = (element("p", str(finding)) for finding in self.findings)
        return build_answer(f"{self.table} where {self.row_filter}", table, *findings, about=lines)

    def _filter_lines(self) -> list[str]:
        lines, unprojected = [], self.unprojected
        for spec_id, text in self.partition_filters.items():
            lines.append(f"partition spec {spec_id}: {text}")
            lines += [f"  {p}: {why}" for p, why in unprojected.get(spec_id, {}).items()]
        return lines

    def _choose(self, which: Which) -> Longs:
        check_choice("files", which, get_args(Which))
        kept = self._kept_mask()
        return np.flatnonzero({"kept": kept, "skipped": ~kept, "all": kept | True, "none": kept & False}[which])

    def _kept_mask(self) -> Mask:
        kept = np.zeros(self.funnel.files.num_rows, np.bool_)
        kept[self.funnel.kept_files] = True
        return kept

    def _build_files(self, rows: Longs, found: list[tuple[str, Explanation]]) -> pa.Table:
        funnel, kept = self.funnel, self._kept_mask()[rows]
        files = join_paths(take_rows(funnel.files, rows))
        deletes = iter(self._find_deletes(files.filter(pa.array(kept))))
        paths = combine_chunks(funnel.manifests["manifest_path"].take(pa.array(funnel.kept_manifests)))
        columns = {
            name: files[name] for name in ("file_path", "spec_id", "partition", "record_count", "file_size_in_bytes")
        }
        columns |= {
            "manifest_path": paths.take(files["manifest_index"]),
            "kept": kept,
            "step": [step for step, _ in found],
            **_texts([explanation for _, explanation in found]),
            "delete_files": [next(deletes) if keep else [] for keep in kept],
        }
        return pa.Table.from_pydict(columns, plan_files_schema(files.schema.field("partition").type))


@dataclass(frozen=True, slots=True)
class PlanOutlook:
    """What the manifest list alone says of a plan; judging files, and manifests by their columns, leaves no more."""

    manifest_count: int
    """Manifests whose files the plan is going to read; 0 if they are known already."""
    file_count: int | None
    """Data files that it keeps at most; None where the manifest list does not count them."""


def _find(rows: Longs, row: int) -> int | None:
    """Return the place of a row among ascending ones."""
    place = int(np.searchsorted(rows, row))
    return place if place < len(rows) and rows[place] == row else None


def _texts(found: list[Explanation]) -> dict[str, list[str]]:
    return {
        "predicate": [one.predicate for one in found],
        "reason": [one.reason for one in found],
        "evidence": [one.evidence for one in found],
    }


def _row(step: PlanStep) -> Sequence[str]:
    share = _share(step)
    bar = element("span", class_="bar", style=f"width:{share:.1%}", title=f"{share:.2%}")
    return (
        element("span", step.step, title=step.note),
        f"{step.total:,} {step.unit}s",
        render_count(step.kept),
        render_count(step.skipped),
        element("span", bar, class_="rest"),
        render_bytes(step.kept_bytes),
        render_count(step.kept_rows),
        f"{step.duration_ms:.1f}",
    )


def _share(step: PlanStep) -> float:
    return step.kept / step.total if step.kept is not None and step.total else 0.0
