"""A plan as text for a terminal and as HTML for a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from icestats.answers.markup import build_answer, build_table, element
from icestats.answers.text import printable, render_bytes, render_count
from icestats.plan.pruning.funnel import PlanStep

_WIDTH = 24
_HEAD = ("step", "of", "kept", "skipped", "share kept", "size kept", "records kept", "ms")


def render_plan_text(
    table: str,
    row_filter: str,
    steps: Sequence[PlanStep],
    partition_filters: Mapping[int, str],
    unprojected: Mapping[int, Mapping[str, str]],
) -> str:
    """Return a plan as a funnel of text: a line a step."""
    width = max((len(step.step) for step in steps), default=0)
    lines = [f"{table} where {printable(row_filter)}", *_filter_lines(partition_filters, unprojected)]
    for step in steps:
        bar = "█" * max(round(_share(step) * _WIDTH), 1 if step.kept else 0)
        figures = [f"{render_count(step.kept)} of {step.total:,} {step.unit}s kept"]
        if step.unit != "row":
            figures += [render_bytes(step.kept_bytes), f"{render_count(step.kept_rows)} records"]
        figures.append(f"{step.duration_ms:.1f} ms" + (f" ({step.note})" if step.note else ""))
        lines.append(f"  {step.step:<{width}}  {bar:<{_WIDTH}}  {', '.join(figures)}")
    return "\n".join(lines)


def render_plan_html(
    table: str,
    row_filter: str,
    steps: Sequence[PlanStep],
    partition_filters: Mapping[int, str],
    unprojected: Mapping[int, Mapping[str, str]],
) -> str:
    """Return a plan for a notebook: a row a step."""
    lines = [line.strip() for line in _filter_lines(partition_filters, unprojected)]
    return build_answer(f"{table} where {row_filter}", build_table(_HEAD, map(_row, steps)), about=lines)


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


def _filter_lines(partition_filters: Mapping[int, str], unprojected: Mapping[int, Mapping[str, str]]) -> list[str]:
    lines = []
    for spec_id, text in partition_filters.items():
        lines.append(f"  partition spec {spec_id}: {printable(text)}")
        lines += [f"    {printable(p)}: {why}" for p, why in unprojected.get(spec_id, {}).items()]
    return lines


def _share(step: PlanStep) -> float:
    return step.kept / step.total if step.kept is not None and step.total else 0.0
