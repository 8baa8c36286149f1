"""A layout as text for a terminal and as HTML for a notebook."""

from __future__ import annotations

from collections.abc import Sequence

from icestats.answers.findings import Finding
from icestats.answers.markup import build_answer, build_table, element
from icestats.answers.text import counted
from icestats.plan.layout.depth import Depth
from icestats.plan.layout.layout_figures import FieldLayout, LateData, Spread

_HEAD = (
    "field",
    "transform",
    "manifests a key lies in",
    "most",
    "share opened",
    "files a key lies in",
    "most",
    "of its partition",
)


def render_layout_text(
    table: str, fields: Sequence[FieldLayout], spread: Spread, late: LateData | None, findings: Sequence[Finding]
) -> str:
    """Return a layout as text: a line a field, then the findings."""
    names = _names(fields)
    width = max(map(len, names), default=0)
    lines = [f"layout of {table}", *(f"  {line}" for line in _spread_lines(spread, late))]
    if spread.file_count:
        lines += [f"  {name:<{width}}  {_line(field)}" for name, field in zip(names, fields, strict=True)]
    for finding in findings:
        lines.append(f"  ! {finding.severity}: {finding.title}")
        lines.append(f"      {finding.evidence}")
        lines += [f"      {line}" for line in (finding.fix or "").splitlines()]
    return "\n".join(lines)


def render_layout_html(
    table: str, fields: Sequence[FieldLayout], spread: Spread, late: LateData | None, findings: Sequence[Finding]
) -> str:
    """Return a layout for a notebook: a row a field, then the findings."""
    body = [_row(field) for field in fields if spread.file_count]
    told = [
        element(
            "li", element("b", f.severity), f": {f.title} ({f.evidence})", *([element("pre", f.fix)] if f.fix else [])
        )
        for f in findings
    ]
    shown = build_table(_HEAD, body), element("ul", *told)
    return build_answer(f"Layout of {table}", *shown, about=_spread_lines(spread, late))


def _row(field: FieldLayout) -> Sequence[str]:
    manifests, files = field.manifests, field.files
    return (
        field.name,
        field.transform if field.kind == "partition field" else "a column",
        f"{manifests.mean:.1f} of {manifests.range_count:,}",
        f"{manifests.max:,}",
        f"{manifests.share_opened:.1%}",
        f"{files.mean:.1f} of {files.range_count:,}",
        f"{files.max:,}",
        f"{field.files_of_partition.mean:.1f}",
    )


def _names(fields: Sequence[FieldLayout]) -> list[str]:
    """Return their names; that of a column which a partition field is named after says which of both it is."""
    others = {field.name for field in fields if field.kind == "partition field"}
    return [
        f"{field.name} (column)" if field.kind == "column" and field.name in others else field.name for field in fields
    ]


def _line(field: FieldLayout) -> str:
    within = f", {field.files_of_partition.mean:.1f} of its own partition" if field.kind == "column" else ""
    return f"a key lies in {_depth(field.manifests, 'manifests')}, in {_depth(field.files, 'files')}{within}"


def _depth(depth: Depth, what: str) -> str:
    return f"{depth.mean:.1f} of {depth.range_count:,} {what} ({depth.share_opened:.1%}, at most {depth.max:,})"


def _spread_lines(spread: Spread, late: LateData | None) -> list[str]:
    if not spread.file_count:
        return ["no data files: nothing to measure"]
    lines = [
        f"{counted(spread.file_count, 'data file')}, {counted(spread.manifest_count, 'manifest')}, "
        f"{counted(spread.partition_count, 'partition')}",
        f"a partition is spread over {spread.manifests_per_partition_mean:.1f} manifests "
        f"({spread.manifests_per_partition_max:,} at most), a manifest holds "
        f"{spread.partitions_per_manifest_mean:.1f} partitions ({spread.partitions_per_manifest_max:,} at most)",
    ]
    if late is not None:
        lines.append(f"{counted(late.file_count, 'file')} ({late.share:.1%}) came late by {late.field}")
    return lines
