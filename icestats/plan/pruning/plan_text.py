"""A plan as text for a terminal and as HTML for a notebook. Everything from the table is escaped: it is data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from icestats.plan.pruning.steps import PlanStep

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
_WIDTH = 24

STYLE = """
.icestats-answer{font-family:var(--jp-ui-font-family,system-ui,sans-serif);font-size:13px;max-width:900px;
color:var(--jp-ui-font-color1,#212121);line-height:1.4}
.icestats-answer h3{font-size:15px;margin:0 0 2px;font-weight:600;overflow-wrap:anywhere}
.icestats-answer .sub{color:var(--jp-ui-font-color2,#616161);margin-bottom:8px;overflow-wrap:anywhere}
.icestats-answer table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
.icestats-answer th{font-weight:400;font-size:11px;text-align:right;padding:2px 6px}
.icestats-answer td{text-align:right;padding:3px 6px;border-top:1px solid var(--jp-border-color2,#e0e0e0)}
.icestats-answer th:first-child,.icestats-answer td:first-child{text-align:left}
.icestats-answer .bar{display:block;height:8px;min-width:1px;background:#0072b2}
.icestats-answer ul{margin:8px 0 0;padding-left:18px}
.icestats-answer pre{font-size:12px;white-space:pre-wrap;overflow-wrap:anywhere;margin:2px 0 6px}
.icestats-answer .rest{display:block;height:8px;width:160px;background:var(--jp-border-color2,#e0e0e0)}
"""
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
    lines = [f"{table} where {_printable(row_filter)}", *_filter_lines(partition_filters, unprojected)]
    for step in steps:
        bar = "█" * max(round(_share(step) * _WIDTH), 1 if step.kept else 0)
        figures = [f"{_number(step.kept)} of {step.total:,} {step.unit}s kept"]
        if step.unit != "row":
            figures += [_size(step.kept_bytes), f"{_number(step.kept_rows)} records"]
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
    head = "".join(f"<th scope='col'>{escape(name)}</th>" for name in _HEAD)
    body = "".join(_row(step) for step in steps)
    filters = "<br>".join(escape(line.strip()) for line in _filter_lines(partition_filters, unprojected))
    return (
        f"<style>{STYLE}</style><div class='icestats-answer'><h3>{escape(table)} where {escape(row_filter)}</h3>"
        f"<div class='sub'>{filters}</div><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _row(step: PlanStep) -> str:
    share = _share(step)
    bar = f"<span class='rest'><span class='bar' style='width:{share:.1%}' title='{share:.2%}'></span></span>"
    title = f" title='{escape(step.note, quote=True)}'" if step.note else ""
    cells = (f"{step.total:,} {step.unit}s", _number(step.kept), _number(step.skipped))
    last = (_size(step.kept_bytes), _number(step.kept_rows), f"{step.duration_ms:.1f}")
    return (
        f"<tr><td{title}>{escape(step.step)}</td>"
        + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        + f"<td>{bar}</td>"
        + "".join(f"<td>{escape(cell)}</td>" for cell in last)
        + "</tr>"
    )


def _filter_lines(partition_filters: Mapping[int, str], unprojected: Mapping[int, Mapping[str, str]]) -> list[str]:
    lines = []
    for spec_id, text in partition_filters.items():
        lines.append(f"  partition spec {spec_id}: {_printable(text)}")
        lines += [f"    {_printable(p)}: {why}" for p, why in unprojected.get(spec_id, {}).items()]
    return lines


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _share(step: PlanStep) -> float:
    return step.kept / step.total if step.kept is not None and step.total else 0.0


def _number(count: int | None) -> str:
    return "unknown" if count is None else f"{count:,}"


def _size(size_bytes: int | None) -> str:
    if size_bytes is None:
        return "unknown"
    value, unit = float(size_bytes), 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{size_bytes} B" if unit == 0 else f"{value:.3g} {_UNITS[unit]}"
