"""The line on top of the explorer: what the table is, and how much there is of it."""

from __future__ import annotations

from typing import Any

from icestats.answers.text import printable
from icestats.table.overview import build_figures, describe_snapshot
from icestats.table.table import Table
from icestats_widgets.page.blocks import button, fact
from icestats_widgets.state import ExplorerState


def title_of(table: Table) -> str:
    """Return what a table is called: its name, or the last folder of its location where it was opened by that.

    Examples
    --------
    >>> import icestats
    >>> title_of(icestats.load("demo.events"))
    'demo.events'
    """
    if "/" not in table.name:
        return printable(table.name)
    return printable(table.metadata.location.rstrip("/").rpartition("/")[2] or table.name)


def build_head(state: ExplorerState) -> dict[str, Any]:
    """Return the line on top: title, subtitle, facts, buttons, and how far reading is.

    Parameters
    ----------
    state : ExplorerState
        What is shown.
    """
    overview = state.overview
    note = state.notes.get("overview", "")
    subtitle = note or ("The manifest list has not been read." if overview is None else describe_snapshot(overview))
    done, total = state.reading
    return {
        "title": title_of(state.table), "about": printable(state.table.metadata.location),
        "subtitle": printable(subtitle), "is_bad": bool(note),
        "facts": [] if overview is None else [fact(label, text) for label, text in build_figures(overview)],
        "buttons": [
            button("page.reload", "Reload", about="Open the table again, as it is now"),
            button("page.code", "Code", about="Python for what you see"),
            button("page.report", "Report", about="Save what you see as one HTML file"),
        ],
        "busy": f"Reading manifests: {done:,} of {total:,}" if total else "",
    }  # fmt: skip
