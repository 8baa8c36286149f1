"""A table as text for a terminal and as HTML for a notebook."""

from __future__ import annotations

from collections.abc import Iterator

from icestats.answers.markup import Markup, build_answer, element
from icestats.answers.text import counted, render_bytes, render_count, render_time
from icestats.table.overview import KeyRange, Overview

MOST_RANGES_DRAWN = 90
_WIDTH, _ROW_HEIGHT = 640, 7


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


def describe_snapshot(overview: Overview) -> str:
    """Return what the snapshot is, in a line."""
    snapshot = overview.snapshot
    if snapshot is None:
        return f"format v{overview.format_version} · no snapshot"
    when = render_time(snapshot.timestamp_ms)
    return f"format v{overview.format_version} · snapshot {snapshot.snapshot_id} · {snapshot.operation} · {when}"


def render_text(overview: Overview) -> str:
    """Return a table for the terminal: a line of what it is, its figures, its findings."""
    figures = build_figures(overview)
    width = max(len(label) for label, _ in figures)
    lines = [f"{overview.name}  ({describe_snapshot(overview)})"]
    lines += [f"  {label:<{width}}  {text}" for label, text in figures]
    lines += [f"  ! {finding}" for finding in overview.findings]
    return "\n".join(lines)


def render_html(overview: Overview) -> str:
    """Return a table for a notebook: figures, the key ranges of its manifests, findings."""
    figures = element(
        "dl", *(element("div", element("dt", label), element("dd", text)) for label, text in build_figures(overview))
    )
    findings = element("ul", *(element("li", finding) for finding in overview.findings))
    about = (describe_snapshot(overview), overview.location)
    return build_answer(overview.name, figures, *_render_ranges(overview), findings, about=about)


def _render_ranges(overview: Overview) -> Iterator[Markup]:
    ranges = overview.key_ranges
    if not ranges or overview.key_field is None:
        return
    step = -(-len(ranges) // MOST_RANGES_DRAWN)
    drawn = ranges[::step]
    low, high = min(r.lower for r in ranges), max(r.upper for r in ranges)
    bars = [_render_bar(i, r, low, high - low + 1) for i, r in enumerate(drawn)]
    height = len(drawn) * _ROW_HEIGHT
    axis = {"x1": "0", "x2": f"{_WIDTH}", "y1": f"{height + 2}", "y2": f"{height + 2}"}
    some = f", 1 in {step} of {len(ranges):,}" if step > 1 else ""
    title = f"Key range of each manifest: {overview.key_field}{some}"
    first, last = min(ranges, key=lambda r: r.lower).lower_text, max(ranges, key=lambda r: r.upper).upper_text
    yield element(
        "svg",
        element("text", f"{title} (blue: data, orange: deletes)", x="0", y="12"),
        element("g", *bars, element("line", class_="axis", **axis), transform="translate(0,20)"),
        element("text", first, x="0", y=f"{height + 36}"),
        element("text", last, x=f"{_WIDTH}", y=f"{height + 36}", text_anchor="end"),
        viewBox=f"0 0 {_WIDTH} {height + 40}",
        width="100%",
        role="img",
        aria_label=title,
        style=f"max-width:{_WIDTH}px",
    )


def _render_bar(row: int, key_range: KeyRange, low: float, span: float) -> Markup:
    # A key stands for the width of one, such as a day; no bar is thinner than 3 units.
    start = (key_range.lower - low) / span * (_WIDTH - 3)
    width = max(3.0, (key_range.upper - key_range.lower + 1) / span * (_WIDTH - 3))
    records = counted(key_range.row_count, "record")
    return element(
        "rect",
        element("title", f"{key_range.lower_text} to {key_range.upper_text}, {records}, {key_range.manifest_path}"),
        class_="data" if key_range.is_data else "deletes",
        x=f"{start:.1f}",
        y=f"{row * _ROW_HEIGHT}",
        width=f"{width:.1f}",
        height=f"{_ROW_HEIGHT - 2}",
    )
