"""Two plans side by side: files, bytes, records and time at each step, and the difference in words."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa

from icestats.answers.text import render_bytes, render_count, render_time
from icestats_widgets.page.blocks import Block, button, choice, code_block, form_block, text_block, text_field
from icestats_widgets.page.cells import Cell, text_cell
from icestats_widgets.page.grid import Row
from icestats_widgets.page.part import AskingPart
from icestats_widgets.reading.filters.asked_filter import asked_manifests, effective_filter
from icestats_widgets.reading.filters.filter_check import Check, check_filter
from icestats_widgets.reading.plan_comparison import BY_PARTITION, PlanComparison, Step, compare_plans

_KINDS = {
    "filter": "another filter",
    "snapshot": "another snapshot",
    "ref": "a branch or tag",
    "table": "another table",
    "regroup": "its manifests rewritten",
    "sort_by": "its files sorted",
    "partition_by": "another partition spec",
}
_TYPED = {
    "filter": "its filter",
    "table": "its name, or the location of its metadata.json",
    "partition_by": "such as day(event_time), bucket(16, device_id)",
}
"""Kinds of what is typed, and what the empty field says."""
_MOST_LISTED = 500
_MOST_CHARACTERS = 100_000
_FIGURES = (("kept", "kept"), ("kept_bytes", "bytes"), ("kept_rows", "records"), ("duration_ms", "ms"))


class ComparePart(AskingPart):
    """The filter's plan beside that of another filter, snapshot, branch or table, or after maintenance."""

    name = "compare"
    title = "Compare two plans"
    tab = "query"
    follows = ("plan_comparison", "row_filter", "clauses", "selection", "table")
    hears = ("plan_comparison",)

    def build(self) -> None:
        """Make the grid; nothing is compared yet."""
        columns: list[dict[str, Any]] = [{"name": "step", "title": "step", "width": "minmax(190px,2fr)"}]
        for name, title in _FIGURES:
            columns += [
                {
                    "name": f"{name}_{i}",
                    "title": f"{title} {i}",
                    "width": "minmax(72px,.8fr)",
                    "align": "end",
                    "about": f"{title} of the {which}",
                }
                for i, which in ((1, "first"), (2, "second"))
            ]
        self.grid = self.add_grid("steps", "Steps of both plans", columns, placeholder="")
        self._kind = ""
        self._choices: dict[str, str] = {}

    def blocks(self) -> list[Block]:
        """Return what to compare with, and both plans once there are two."""
        found: PlanComparison | None = self.state.plan_comparison
        form = form_block(*self._controls())
        note = [text_block(self.note, "bad")] if self.note else []
        if found is None:
            return [form, *note]
        self.grid.show([_row(number, *step) for number, step in enumerate(found.steps())])
        names = [f"{which}: {side.title}" for which, side in zip(("First", "Second"), found.sides, strict=True)]
        said = [text_block(f"A prediction: {found.assumes}.")] if found.assumes else []
        statement = [code_block(found.statement)] if found.statement else []
        return [form, *note, *said, text_block("\n".join(names), "quiet"), self.grid.block(), *statement]

    def caption(self) -> str:
        """Return what is compared with what."""
        if self.state.plan_comparison is not None:
            return str(self.state.plan_comparison.describe())
        scope = "" if asked_manifests(self.state) is None else ", in all manifests,"
        others = "another one, another snapshot, branch or table, or what maintenance would make of this one"
        return f"The filter's plan{scope} beside {others}."

    def to_arrow(self) -> pa.Table | None:
        """Return both plans, a row a step."""
        return None if self.state.plan_comparison is None else self.state.plan_comparison.to_arrow()

    def code(self) -> str:
        """Return the Python line that gives both."""
        return "" if self.state.plan_comparison is None else str(self.state.plan_comparison.line)

    def on_kind(self, value: Any) -> None:
        """Choose what to compare with; nothing is read for it."""
        if isinstance(value, str) and (value in _KINDS or not value):
            self._kind = value
            self.redraw()

    def on_choice(self, value: Any) -> None:
        """Choose the other filter, snapshot, branch, table, field or column, and compare."""
        if isinstance(value, str) and self._kind and len(value) <= _MOST_CHARACTERS:
            self._choices[self._kind] = value
            self.on_run(None)

    def on_run(self, _: Any) -> None:
        """Compare, or compare again."""
        chosen = self._chosen
        check = check_filter(chosen, self.state.table) if self._kind == "filter" else Check()
        if not check.fits:
            self.state.set_note("plan_comparison", check.error or check.hint)
        elif self._kind and chosen:
            asked = effective_filter(self.state) or "true"
            work = partial(compare_plans, self.state.table, asked, self._kind, chosen)
            self.questions.start("plan_comparison", work)

    @property
    def _chosen(self) -> str:
        chosen = self._choices.get(self._kind, "").strip()
        if self._kind in _TYPED:
            return chosen
        options = self._options()
        return chosen if chosen in dict(options) else next((value for value, _ in options), "")

    def _options(self) -> list[tuple[str, str]]:
        """Return what can be chosen."""
        table = self.state.table
        if self._kind == "snapshot":
            others = [one for one in table.metadata.snapshots.values() if one != table.snapshot]
            others.sort(key=lambda one: (one.sequence_number, one.timestamp_ms), reverse=True)
            return [
                (str(one.snapshot_id), f"{render_time(one.timestamp_ms)} {one.operation} ({one.snapshot_id})")
                for one in others[:_MOST_LISTED]
            ]
        if self._kind == "ref":
            return [(name, f"{name} ({ref.type})") for name, ref in list(table.metadata.refs.items())[:_MOST_LISTED]]
        if self._kind == "regroup":
            spec = table.metadata.specs.get(table.metadata.default_spec_id)
            names = [field.name for field in spec.fields] if spec is not None else []
            return [(BY_PARTITION, "by partition"), *((name, f"by {name}") for name in names)]
        if self._kind == "sort_by":
            columns = [field.name for field in table.schema.columns if not field.repeated]
            return [(name, f"by {name}") for name in columns[:_MOST_LISTED]]
        return []

    def _controls(self) -> list[Block]:
        kinds = [("", "nothing"), *_KINDS.items()]
        fields = [choice("compare.kind", "compare with", self._kind, kinds)]
        if not self._kind:
            return fields
        options, label = self._options(), _KINDS[self._kind]
        if self._kind not in _TYPED:
            fields.append(choice("compare.choice", label, self._chosen, options or [("", "there is none")]))
        else:
            fields.append(text_field("compare.choice", label, self._choices.get(self._kind, ""), _TYPED[self._kind]))
        return [
            *fields,
            button("compare.run", "Compare", tone="primary", is_disabled=self.is_loading or not self._chosen),
        ]


def _row(number: int, step: str, one: Step, other: Step) -> Row:
    cells = [text_cell(step, kind="strong")]
    for name, _ in _FIGURES:
        cells += [_cell(name, one), _cell(name, other)]
    return {"key": f"s{number}", "depth": 0, "cells": cells}


def _cell(name: str, side: Step) -> Cell:
    value = getattr(side, name, None)
    if side is None or value is None:
        return text_cell("–", "there is no such step, or it is not known") | {"v": None}
    if name == "kept":
        share = {"b": round(value / side.total, 4)} if side.total else {}
        return text_cell(render_count(value), f"of {side.total:,}") | {"v": value} | share
    text = render_bytes(value) if name == "kept_bytes" else f"{value:,.1f}" if name == "duration_ms" else f"{value:,}"
    return text_cell(text) | {"v": value}
