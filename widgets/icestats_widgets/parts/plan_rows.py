"""What each step of a plan has kept and skipped, as rows of grids; explained when they are seen."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import combine_chunks, join_paths, to_rows
from icestats.answers.text import counted, render_bytes, render_count
from icestats.iceberg.metadata import Schema, TableMetadata
from icestats.snapshot.pruning.funnel import PlanStep
from icestats.snapshot.pruning.plan import Plan
from icestats_widgets.page.cells import Cell, bytes_cell, count_cell, text_cell
from icestats_widgets.page.grid import BuiltRows, Row
from icestats_widgets.reading.partition_names import PartitionNames
from icestats_widgets.reading.plan_outcomes import Numbers, group_partitions

STEP_COLUMNS = (
    {"name": "step", "title": "step", "width": "minmax(236px,2fr)"},
    {"name": "kept", "title": "kept of total", "width": "minmax(130px,1.4fr)", "align": "end"},
    {"name": "skipped", "title": "skipped", "width": "minmax(72px,.7fr)", "align": "end"},
    {"name": "bytes", "title": "kept bytes", "width": "minmax(90px,.8fr)", "align": "end"},
    {"name": "rows", "title": "kept records", "width": "minmax(106px,.9fr)", "align": "end"},
    {"name": "values", "title": "values read", "width": "minmax(90px,.8fr)", "align": "end", "hidden": True},
    {"name": "time", "title": "ms", "width": "minmax(48px,.5fr)", "align": "end"},
)
_WHY = (
    {"name": "verdict", "title": "verdict", "width": "minmax(64px,.3fr)", "sortable": False},
    {"name": "why", "title": "why, with the evidence", "width": "minmax(260px,4fr)", "sortable": False, "wraps": True},
)
_SIZES = (
    {"name": "records", "title": "records", "width": "minmax(66px,.3fr)", "align": "end", "roomy": True},
    {"name": "bytes", "title": "bytes", "width": "minmax(66px,.3fr)", "align": "end", "roomy": True},
)
MANIFEST_COLUMNS = ({"name": "path", "title": "manifest", "width": "minmax(160px,1.6fr)"}, *_SIZES, *_WHY)
PARTITION_COLUMNS = (
    {"name": "partition", "title": "partition", "width": "minmax(160px,1.6fr)"},
    {"name": "files", "title": "files", "width": "minmax(64px,.6fr)", "align": "end", "roomy": True},
    *_SIZES,
    *_WHY,
)
FILE_COLUMNS = (
    {"name": "path", "title": "file", "width": "minmax(110px,1.4fr)", "name_pixels": 160},
    {"name": "partition", "title": "partition", "width": "minmax(100px,1fr)", "name_pixels": 160, "roomy": True},
    *_SIZES,
    *_WHY,
)


def build_step_rows(plan: Plan) -> list[Row]:
    """Return a row a step; its key is the step's number."""
    return [{"key": f"s{number}", "depth": 0, "cells": _step_cells(step)} for number, step in enumerate(plan.steps)]


def _step_cells(step: PlanStep) -> list[Cell]:
    total = counted(step.total, step.unit)
    kept = text_cell(f"{render_count(step.kept)} of {total}", f"{render_count(step.kept)} of {total} kept")
    if step.kept is not None and step.total:
        kept |= {"b": round(step.kept / step.total, 4), "v": step.kept}
    read = f"{counted(step.values_read, 'value')}, {counted(step.bytes_read, 'byte')} of metadata"
    return [
        text_cell(step.step, step.note or step.step, "strong"),
        kept,
        count_cell(step.skipped),
        bytes_cell(step.kept_bytes),
        count_cell(step.kept_rows),
        text_cell(f"{step.values_read:,}", read) | {"v": step.values_read},
        text_cell(f"{step.duration_ms:,.1f}") | {"v": step.duration_ms},
    ]


def build_manifest_rows(plan: Plan, rows: Numbers, kept: Numbers) -> BuiltRows:
    """Return rows of `plan.funnel.manifests`; `kept` are those that the step keeps."""
    manifests, is_kept = plan.funnel.manifests, set(kept.tolist())
    counts = pc.add(manifests["added_rows_count"], manifests["existing_rows_count"])

    def build(row: int) -> Row:
        path, (_, why) = manifests["manifest_path"][row].as_py(), plan.explain_manifest(row)
        cells = [
            text_cell(path.rsplit("/", 1)[-1], path),
            count_cell(counts[row].as_py()),
            bytes_cell(manifests["manifest_length"][row].as_py()),
            *verdict_cells(row in is_kept, why.sentence),
        ]
        return {"key": f"m{row}", "depth": 0, "cells": cells}

    paths = combine_chunks(manifests["manifest_path"])
    figures = {"path": paths, "records": combine_chunks(counts), "bytes": combine_chunks(manifests["manifest_length"])}
    return BuiltRows(figures, paths, build, rows)


class FileRows:
    """The files of a plan's manifests, and their partitions, each numbered and named once.

    Parameters
    ----------
    plan : Plan
        The plan.
    metadata : TableMetadata
        The partition specs.
    schema : Schema
        Gives the types of partition fields.
    """

    def __init__(self, plan: Plan, metadata: TableMetadata, schema: Schema) -> None:
        self._plan, self._files = plan, plan.funnel.files
        groups = group_partitions([self._files]) if self._files.num_rows else np.zeros(0, np.int64)
        found, first, self._groups = np.unique(groups, return_index=True, return_inverse=True)
        self.count = len(found)
        """How many partitions there are."""
        names = PartitionNames(metadata, schema)
        heads = to_rows(self._files.select(["partition", "spec_id"]).take(pa.array(first)))
        self._names = pa.array([names.text(**row) or "not partitioned" for row in heads], pa.string())
        self._first = first

    def of_partition(self, number: int) -> Numbers:
        """Return the rows of the files of a partition."""
        return np.flatnonzero(self._groups == number)

    def name(self, number: int) -> str:
        """Return a partition as readable text."""
        return str(self._names[number])

    def files(self, rows: Numbers, kept: Numbers) -> BuiltRows:
        """Return some files; `kept` are those that the step keeps."""
        is_kept, figures = set(kept.tolist()), self._figures
        paths, names = figures["path"], figures["partition"]

        def build(row: int) -> Row:
            path, (_, why) = paths[row].as_py(), self._plan.explain_file(row)
            cells = [
                text_cell(path.rsplit("/", 1)[-1], path) | {"a": "plan.files.cell"},
                text_cell(names[row].as_py()),
                count_cell(figures["records"][row].as_py()),
                bytes_cell(figures["bytes"][row].as_py()),
                *verdict_cells(row in is_kept, why.sentence),
            ]
            return {"key": f"f{row}", "depth": 0, "cells": cells}

        return BuiltRows(figures, self._text, build, rows)

    @cached_property
    def _figures(self) -> dict[str, pa.Array]:
        names = {"path": "file_path", "records": "record_count", "bytes": "file_size_in_bytes"}
        files = join_paths(self._files)
        figures = {title: combine_chunks(files[name]) for title, name in names.items()}
        return figures | {"partition": self._names.take(pa.array(self._groups))}

    @cached_property
    def _text(self) -> pa.Array:
        return pc.binary_join_element_wise(self._figures["path"], self._figures["partition"], " ")

    def partitions(self, rows: Numbers, kept: Numbers) -> BuiltRows:
        """Return the partitions of some files; `kept` are those files that the step keeps."""
        shown = np.unique(self._groups[rows])
        is_kept = np.zeros(self.count, np.bool_)
        is_kept[self._groups[kept]] = True
        within = self._files.select(["record_count", "file_size_in_bytes"]).take(pa.array(rows))
        groups = self._groups[rows]
        counts = np.bincount(groups, minlength=self.count)
        sums = [
            np.bincount(groups, weights=within[name].to_numpy(), minlength=self.count).astype(np.int64)
            for name in ("record_count", "file_size_in_bytes")
        ]

        def build(number: int) -> Row:
            _, why = self._plan.explain_file(int(self._first[number]))
            cells = [
                text_cell(self.name(number)) | {"a": "plan.partitions.cell"},
                count_cell(int(counts[number])),
                count_cell(int(sums[0][number])),
                bytes_cell(int(sums[1][number])),
                *verdict_cells(bool(is_kept[number]), "" if is_kept[number] else why.sentence),
            ]
            return {"key": f"p{number}", "depth": 0, "cells": cells}

        figures = {"files": pa.array(counts), "records": pa.array(sums[0]), "bytes": pa.array(sums[1])}
        return BuiltRows({"partition": self._names, **figures}, self._names, build, shown)


def verdict_cells(is_kept: bool, why: str) -> list[Cell]:
    """Return whether something is kept, and why."""
    word = "kept" if is_kept else "skipped"
    return [text_cell(word, kind=word), text_cell(why or "–")]


def describe_step(step: PlanStep) -> str:
    """Return what a step has kept, in a sentence."""
    kept = f"{render_count(step.kept)} of {counted(step.total, step.unit)} kept"
    rows = "" if step.kept_rows is None else f", {counted(step.kept_rows, 'record')}"
    return f"{step.step}: {kept}, {render_bytes(step.kept_bytes)}{rows}"
