"""The plan: what a scan with the filter reads, step by step, down to the file, its bounds and its row groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from icestats.answers.arrays import join_paths, to_rows
from icestats.answers.text import counted, render_bytes, render_count
from icestats.snapshot.pruning.funnel import StepResult
from icestats.snapshot.pruning.plan import Plan
from icestats_widgets.drawing.bounds_figure import build_bounds_figure
from icestats_widgets.page.blocks import (
    Block,
    button,
    card_block,
    choice,
    fact,
    facts_block,
    figure_block,
    form_block,
    side_block,
    text_block,
)
from icestats_widgets.page.cells import bytes_cell, count_cell, text_cell
from icestats_widgets.page.filter_bar import describe_outlook
from icestats_widgets.page.grid import BuiltRows
from icestats_widgets.page.part import AskingPart
from icestats_widgets.parts.plan_rows import (
    FILE_COLUMNS,
    MANIFEST_COLUMNS,
    PARTITION_COLUMNS,
    STEP_COLUMNS,
    FileRows,
    build_manifest_rows,
    build_step_rows,
    describe_step,
    verdict_cells,
)
from icestats_widgets.reading.filters.asked_filter import asked_manifests
from icestats_widgets.reading.plan_outcomes import Compared, Numbers, find_compared, read_row_groups
from icestats_widgets.reading.question_coordinator import MOST_FILES

_MOST_DRAWN = 6
_WHICH = (("kept", "kept"), ("skipped", "skipped"), ("all", "both"))
_GROUP_COLUMNS = (
    {"name": "group", "title": "row group", "width": "minmax(64px,.5fr)"},
    {"name": "records", "title": "records", "width": "minmax(76px,.7fr)", "align": "end"},
    {"name": "bytes", "title": "bytes", "width": "minmax(76px,.7fr)", "align": "end"},
    {"name": "verdict", "title": "verdict", "width": "minmax(64px,.5fr)"},
    {"name": "why", "title": "why, with the evidence", "width": "minmax(160px,2fr)"},
)


class PlanPart(AskingPart):
    """The steps of a plan, and what each has kept and skipped."""

    name = "plan"
    title = "Plan: what a scan reads, and why"
    tab = "query"
    follows = ("plan", "outlook", "asked_part", "row_groups", "table")
    hears = ("plan", "row_groups")

    def build(self) -> None:
        """Make the grids."""
        self.steps = self.add_grid("steps", "Steps of the plan", STEP_COLUMNS, placeholder="", on_choose=self._choose)
        for kind, columns, on_click in (
            ("manifests", MANIFEST_COLUMNS, None),
            ("partitions", PARTITION_COLUMNS, self._open_partition),
            ("files", FILE_COLUMNS, self._open_file),
        ):
            self.add_grid(
                kind, f"{kind.capitalize()} of the step", columns, most_rows=10, on_cell=on_click, on_choose=on_click
            )
        self.groups = self.add_grid("groups", "Row groups of the file", _GROUP_COLUMNS, placeholder="", most_rows=6)
        self._which, self._step = "kept", -1
        self._partition: int | None = None
        self._file: int | None = None
        self._is_asked = False
        self._built: tuple[Any, ...] = ()
        self._files: tuple[Plan, FileRows] | None = None

    def blocks(self) -> list[Block]:
        """Return the steps, what the chosen one has kept or skipped, and the chosen file."""
        plan: Plan | None = self.state.plan
        if plan is None:
            return []
        if not self._built or self._built[0] is not plan:
            self._begin(plan)
        self.steps.selected = [f"s{self._number(plan)}"]
        found = [self.steps.block(), form_block(*self._controls()), *self._list(plan)]
        opened = self._opened(plan)
        return [side_block(card_block("steps", "Steps", *found), opened, shares=[5, 3])] if opened else found

    def caption(self) -> str:
        """Return what is left to read, or why there is no plan."""
        plan: Plan | None = self.state.plan
        outlook = describe_outlook(self.state)
        if outlook:
            return f"{outlook[0].upper()}{outlook[1:]}. Below is the plan of an earlier filter." if plan else outlook
        if plan is None:
            return self.note or "No filter yet: type one above, or mark a part of a picture."
        last = plan.steps[-1]
        told = [counted(last.kept, last.unit)]
        told += [] if last.kept_bytes is None else [render_bytes(last.kept_bytes)]
        told += [] if last.unit == "row" else [counted(last.kept_rows, "record")]
        outcome = f"{', '.join(told)} left to read"
        return f"{outcome} for {plan.row_filter}."

    def to_arrow(self) -> pa.Table | None:
        """Return the steps."""
        return None if self.state.plan is None else self.state.plan.to_arrow()

    def code(self) -> str:
        """Return the Python line that gives the plan."""
        plan, paths = self.state.plan, asked_manifests(self.state)
        if plan is None:
            return ""
        return f"table.plan({plan.row_filter!r}{'' if paths is None else f', manifest_paths={list(paths)!r}'})"

    def on_which(self, value: Any) -> None:
        """Show what the step has kept, what it has skipped, or both."""
        if isinstance(value, str) and value in dict(_WHICH):
            self._which = value
            self.redraw()

    def on_list(self, _: Any) -> None:
        """List the files of a large table."""
        self._is_asked = True
        self.redraw()

    def on_close(self, _: Any) -> None:
        """Close the file."""
        self._file = None
        self.redraw()

    def on_whole(self, _: Any) -> None:
        """List the files of all partitions again."""
        self._partition = None
        self.redraw()

    def on_footer(self, _: Any) -> None:
        """Read the row groups of the file that is open."""
        plan, row = self.state.plan, self._file
        if plan is not None and row is not None:
            table = self.state.table
            self.questions.start("row_groups", lambda: (plan, row, read_row_groups(table, plan, row)))

    def _begin(self, plan: Plan) -> None:
        self._built, self._partition, self._file, self._is_asked = (plan,), None, None, False
        if self._step >= len(plan.steps):
            self._step = -1
        self.steps.show(build_step_rows(plan))

    def _number(self, plan: Plan) -> int:
        """Return the chosen step; by default the last one of files."""
        if self._step >= 0:
            return self._step
        return max(number for number, step in enumerate(plan.steps) if step.unit == "file")

    def _choose(self, key: str, _: Any) -> None:
        plan: Plan | None = self.state.plan
        number = None if plan is None else self.number_of(key, "s", len(plan.steps))
        if number is not None:
            self._step, self._partition, self._file = number, None, None

    def _open_partition(self, key: str, _: object) -> None:
        number = None if self._files is None else self.number_of(key, "p", self._files[1].count)
        if number is not None:
            self._partition, self._file = number, None

    def _open_file(self, key: str, _: object) -> None:
        plan: Plan | None = self.state.plan
        number = None if plan is None else self.number_of(key, "f", plan.funnel.files.num_rows)
        if number is not None:
            self._file = number

    def _controls(self) -> list[Block]:
        fields = [choice("plan.which", "show", self._which, _WHICH)]
        if self._partition is not None and self._files is not None:
            fields.append(button("plan.whole", f"all partitions, not only {self._files[1].name(self._partition)}"))
        return fields

    def _list(self, plan: Plan) -> list[Block]:
        results = [*plan.funnel.by_manifest, *plan.funnel.by_file]
        number = self._number(plan)
        if number >= len(results):
            last = plan.steps[number]
            return [text_block(f"{describe_step(last)}{': ' if last.note else ''}{last.note}.", "quiet")]
        result = results[number]
        kind = "manifests" if number < len(plan.funnel.by_manifest) else "files"
        if kind == "files" and number == len(plan.funnel.by_manifest) and self._partition is None:
            kind = "partitions"
        rows, kept = self._rows(plan, number, results)
        if kind != "manifests" and plan.funnel.files.num_rows > MOST_FILES and not self._is_asked:
            label = f"List the {counted(len(rows), 'file')}"
            return [form_block(button("plan.list", label, about="takes seconds for a table of this size"))]
        grid = self.grids[kind]
        grid.label = result.step.step.capitalize()
        grid.selected = [f"f{self._file}"] if kind == "files" and self._file is not None else []
        state = (plan, number, self._which, self._partition)
        if self._built != state:
            self._built = state
            grid.show(
                self._build(kind, plan, rows, kept), "" if len(rows) else f"Nothing: {describe_step(result.step)}."
            )
        return [*self._about(plan), grid.block()]

    def _rows(self, plan: Plan, number: int, results: list[StepResult]) -> tuple[Numbers, Numbers]:
        """Return the rows of the step's table that are to be shown, and those that the step keeps."""
        kept = results[number].kept
        if self._partition is not None:
            return self._file_rows(plan).of_partition(self._partition), kept
        if self._which == "kept":
            return kept, kept
        is_first = number in (0, len(plan.funnel.by_manifest))
        count = (plan.funnel.manifests if number < len(plan.funnel.by_manifest) else plan.funnel.files).num_rows
        is_shown = np.full(count, is_first)
        if not is_first:
            is_shown[results[number - 1].kept] = True
        if self._which == "skipped":
            is_shown[kept] = False
        return np.flatnonzero(is_shown), kept

    def _build(self, kind: str, plan: Plan, rows: Numbers, kept: Numbers) -> BuiltRows:
        if kind == "manifests":
            return build_manifest_rows(plan, rows, kept)
        files = self._file_rows(plan)
        return files.partitions(rows, kept) if kind == "partitions" else files.files(rows, kept)

    def _file_rows(self, plan: Plan) -> FileRows:
        if self._files is None or self._files[0] is not plan:
            self._files = (plan, FileRows(plan, self.state.table.metadata, self.state.table.schema))
        return self._files[1]

    def _about(self, plan: Plan) -> list[Block]:
        said = [
            f"On partitions of spec {spec}: {text}." for spec, text in plan.partition_filters.items() if text != "true"
        ]
        missing = {f"{one}: {reason}." for found in plan.unprojected.values() for one, reason in found.items()}
        return [text_block(" ".join([*said, *sorted(missing)]), "quiet")] if said or missing else []

    def _opened(self, plan: Plan) -> Block | None:
        row = self._file
        if row is None:
            return None
        step, why = plan.explain_file(row)
        (file,) = to_rows(join_paths(plan.funnel.files.slice(row, 1)))
        is_kept = bool(np.isin(row, plan.funnel.kept_files))
        blocks = [
            facts_block(
                fact("verdict", "kept" if is_kept else "skipped", step),
                fact("records", render_count(file["record_count"])),
                fact("size", render_bytes(file["file_size_in_bytes"])),
            ),
            text_block(file["file_path"], "quiet"),
            text_block(f"{why.sentence} ({step})"),
            *(self._draw_bounds(number, one) for number, one in enumerate(find_compared(plan, row)[:_MOST_DRAWN])),
            *self._row_groups(plan, row),
        ]
        return card_block("file", "File", *blocks, actions=[button("plan.close", "close")])

    def _draw_bounds(self, number: int, one: Compared) -> Block:
        width = self.width(f"bounds{number}", 420)
        picture = build_bounds_figure(
            one.type, one.lower, one.upper, one.literals, width=width, operator=one.operator, predicate=one.predicate
        )
        return figure_block(
            f"bounds{number}", picture.svg, f"Bounds of the file against {one.predicate}", name="bounds"
        )

    def _row_groups(self, plan: Plan, row: int) -> list[Block]:
        read = self.state.row_groups
        if read is None or read[0] is not plan or read[1] != row:
            is_busy = "row_groups" in self.state.loading
            note = self.state.notes.get("row_groups")
            label = "Row groups: read the footer"
            return [
                form_block(button("plan.footer", label, is_disabled=is_busy)),
                *([text_block(note, "bad")] if note else []),
            ]
        rows = [
            {"key": f"g{one['row_group']}", "depth": 0, "cells": [
                text_cell(f"{one['row_group']}"), count_cell(one["row_count"]), bytes_cell(one["size_bytes"]),
                *verdict_cells(one["is_kept"], one["reason"]),
            ]}
            for one in read[2]
        ]  # fmt: skip
        self.groups.show(rows)
        return [self.groups.block()]
