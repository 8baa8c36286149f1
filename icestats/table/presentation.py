"""A table as text for a terminal and as HTML for a notebook. Everything from the table is escaped: it is data."""

from __future__ import annotations

from html import escape

from icestats.answers.text import counted, render_bytes, render_count, render_time
from icestats.table.overview import KeyRange, Overview

MOST_RANGES_DRAWN = 90
_WIDTH, _ROW_HEIGHT = 640, 7

_STYLE = """
.icestats{font-family:var(--jp-ui-font-family,system-ui,sans-serif);font-size:13px;max-width:900px;
color:var(--jp-ui-font-color1,#212121);line-height:1.4}
.icestats h3{font-size:15px;margin:0 0 2px;font-weight:600}
.icestats .sub{color:var(--jp-ui-font-color2,#616161);margin-bottom:8px;overflow-wrap:anywhere}
.icestats dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:8px;margin:0 0 10px}
.icestats dl div{border:1px solid var(--jp-border-color2,#e0e0e0);border-radius:4px;padding:6px 8px}
.icestats dt,.icestats dd{float:none;width:auto;margin:0}
.icestats dt{font-size:11px;font-weight:400;color:var(--jp-ui-font-color2,#616161)}
.icestats dd{font-size:16px;font-weight:600;font-variant-numeric:tabular-nums}
.icestats ul{margin:8px 0 0;padding-left:18px}
.icestats svg text{font-size:11px;fill:var(--jp-ui-font-color2,#616161)}
.icestats .data{fill:#0072b2}.icestats .deletes{fill:#d55e00}
.icestats .axis{stroke:var(--jp-border-color1,#bdbdbd)}
"""


def build_figures(overview: Overview) -> list[tuple[str, str]]:
    """Return the strip of figures: label and text."""
    return [
        ("records in data files", render_count(overview.record_count)),
        ("data files", render_count(overview.data_file_count)),
        ("manifests", render_count(overview.data_manifest_count + overview.delete_manifest_count)),
        ("size of files", render_bytes(overview.file_size_in_bytes)),
        ("delete files", render_count(overview.delete_file_count)),
        ("delete records", render_count(overview.delete_record_count)),
        ("snapshots", render_count(overview.snapshot_count)),
        ("statistics", _statistics_text(overview)),
    ]


def _statistics_text(overview: Overview) -> str:
    age = overview.statistics_commits_behind
    if age is None:
        return "none"
    columns = counted(overview.statistics_column_count, "column")
    return columns if age == 0 else f"{columns}, {age:,} behind"


def _snapshot_text(overview: Overview) -> str:
    snapshot = overview.snapshot
    if snapshot is None:
        return f"format v{overview.format_version} · no snapshot"
    when = render_time(snapshot.timestamp_ms)
    return f"format v{overview.format_version} · snapshot {snapshot.snapshot_id} · {snapshot.operation} · {when}"


def render_text(overview: Overview) -> str:
    """Return a table for the terminal: a line of what it is, its figures, its findings."""
    figures = build_figures(overview)
    width = max(len(label) for label, _ in figures)
    lines = [f"{overview.name}  ({_snapshot_text(overview)})"]
    lines += [f"  {label:<{width}}  {text}" for label, text in figures]
    lines += [f"  ! {finding}" for finding in overview.findings]
    return "\n".join(lines)


def render_html(overview: Overview) -> str:
    """Return a table for a notebook: figures, the key ranges of its manifests, findings."""
    figures = "".join(
        f"<div><dt>{escape(label)}</dt><dd>{escape(text)}</dd></div>" for label, text in build_figures(overview)
    )
    findings = "".join(f"<li>{escape(finding)}</li>" for finding in overview.findings)
    return (
        f"<style>{_STYLE}</style><div class='icestats'><h3>{escape(overview.name)}</h3>"
        f"<div class='sub'>{escape(_snapshot_text(overview))}<br>{escape(overview.location)}</div>"
        f"<dl>{figures}</dl>{_render_ranges(overview)}{f'<ul>{findings}</ul>' if findings else ''}</div>"
    )


def _render_ranges(overview: Overview) -> str:
    ranges = overview.key_ranges
    if not ranges or overview.key_field is None:
        return ""
    step = -(-len(ranges) // MOST_RANGES_DRAWN)
    drawn = ranges[::step]
    low, high = min(r.lower for r in ranges), max(r.upper for r in ranges)
    span = high - low + 1
    bars = "".join(_render_bar(i, r, low, span) for i, r in enumerate(drawn))
    height = len(drawn) * _ROW_HEIGHT
    some = f", 1 in {step} of {len(ranges):,}" if step > 1 else ""
    title = f"Key range of each manifest: {overview.key_field}{some}"
    first, last = min(ranges, key=lambda r: r.lower).lower_text, max(ranges, key=lambda r: r.upper).upper_text
    return (
        f"<svg viewBox='0 0 {_WIDTH} {height + 40}' width='100%' role='img' aria-label='{escape(title, quote=True)}' "
        f"style='max-width:{_WIDTH}px'><text x='0' y='12'>{escape(title)} "
        f"(blue: data, orange: deletes)</text><g transform='translate(0,20)'>{bars}"
        f"<line class='axis' x1='0' x2='{_WIDTH}' y1='{height + 2}' y2='{height + 2}'/></g>"
        f"<text x='0' y='{height + 36}'>{escape(first)}</text>"
        f"<text x='{_WIDTH}' y='{height + 36}' text-anchor='end'>{escape(last)}</text></svg>"
    )


def _render_bar(row: int, key_range: KeyRange, low: float, span: float) -> str:
    # A key stands for the width of one, such as a day; no bar is thinner than 3 units.
    start = (key_range.lower - low) / span * (_WIDTH - 3)
    width = max(3.0, (key_range.upper - key_range.lower + 1) / span * (_WIDTH - 3))
    records = counted(key_range.row_count, "record")
    hover = f"{key_range.lower_text} to {key_range.upper_text}, {records}, {key_range.manifest_path}"
    return (
        f"<rect class='{'data' if key_range.is_data else 'deletes'}' x='{start:.1f}' y='{row * _ROW_HEIGHT}' "
        f"width='{width:.1f}' height='{_ROW_HEIGHT - 2}'><title>{escape(hover)}</title></rect>"
    )
