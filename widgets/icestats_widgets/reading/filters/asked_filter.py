"""What is asked of the table as one filter: what was typed, what was clicked or marked, and the selection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from icestats.answers.text import counted
from icestats.iceberg.filters.filter_text import write_column, write_value
from icestats_widgets.reading.filters.filter_check import check_filter
from icestats_widgets.reading.filters.filter_words import join_filters
from icestats_widgets.reading.selection import Selection
from icestats_widgets.state import ExplorerState

SELECTION = "selection"
_MOST_NAMES = 12


class Chip(NamedTuple):
    """A part of what is asked that was not typed, and that can be taken out by itself."""

    name: str
    """`selection`, or `clause:` and the name of the clause."""
    text: str
    about: str


def effective_filter(state: ExplorerState) -> str | None:
    """Return what was typed, clicked and selected as one filter, as far as a filter can say it; None for nothing."""
    selection: Selection | None = state.selection
    marked = None if selection is None else selection.row_filter(state.table.schema)
    parts = [part for part in (state.row_filter.strip(), *state.clauses.values(), marked) if part]
    return join_filters(parts) or ("true" if asked_manifests(state) is not None else None)


def asked_manifests(state: ExplorerState) -> tuple[str, ...] | None:
    """Return the paths of the manifests that are selected, which no filter can say; None if there are none."""
    selection: Selection | None = state.selection
    return None if selection is None or selection.ranges else selection.manifest_paths


def filter_beside_selection(state: ExplorerState, *, without: str = "") -> str:
    """Return what was typed and clicked as one filter; empty for nothing.

    Parameters
    ----------
    state : ExplorerState
        What is asked.
    without : str
        A source of clauses that is left out. A range that was marked in a column's own distribution is shown there.
    """
    clauses = [text for source, text in state.clauses.items() if source != without]
    return join_filters([part for part in (state.row_filter.strip(), *clauses) if part])


def find_chips(state: ExplorerState) -> list[Chip]:
    """Return what is asked beside the text that was typed."""
    chips = [Chip(f"clause:{name}", text, f"from {name.partition(':')[0]}") for name, text in state.clauses.items()]
    selection: Selection | None = state.selection
    if selection is None:
        return chips
    if selection.ranges:
        said, untold = selection.row_filter(state.table.schema), selection.untold(state.table.schema)
        text = ", ".join(part for part in (said, untold and f"marked only: {untold}") if part)
        about = f"{selection.text}. No filter can say {untold}: plan and estimates go without it." if untold else ""
        return [*chips, Chip(SELECTION, text, about or selection.text)]
    paths = selection.manifest_paths
    about = f"{name_manifests(paths, _MOST_NAMES)}. Estimates are of all manifests: no filter can say these."
    return [*chips, Chip(SELECTION, counted(len(paths), "manifest"), about)]


def name_manifests(paths: Sequence[str], most: int) -> str:
    """Return the names of some manifests, at most so many, and how many more there are.

    Examples
    --------
    >>> name_manifests(["s3://b/m0.avro", "s3://b/m1.avro", "s3://b/m2.avro"], 2)
    'm0.avro, m1.avro, and 1 more'
    """
    more = [f"and {len(paths) - most:,} more"] if len(paths) > most else []
    return ", ".join([*(path.rsplit("/", 1)[-1] for path in paths[:most]), *more])


def drop_chip(state: ExplorerState, name: str) -> None:
    """Take a chip out; a name that is none changes nothing."""
    if name == SELECTION:
        state.selection = None
    kind, _, source = name.partition(":")
    if kind == "clause" and source in state.clauses:
        state.clauses = {other: text for other, text in state.clauses.items() if other != source}


def add_clause(state: ExplorerState, source: str, column: str, value: Any) -> bool:
    """Ask for a value of a column, in place of what the same source has asked for before.

    Parameters
    ----------
    state : ExplorerState
        Gets the clause.
    source : str
        What asks, such as `histogram:price`.
    column : str
        Its full name.
    value : object
        A value of the column; None asks for null.

    Returns
    -------
    bool
        False if no filter can say it; nothing has changed then.
    """
    field, name = state.table.schema.find(column), write_column(column)
    literal = None if value is None else write_value(field.type, value)
    if name is None or (value is not None and literal is None):
        return False
    return _set_clause(state, source, f"{name} is null" if literal is None else f"{name} = {literal}")


def add_range(
    state: ExplorerState, source: str, column: str, lower: Any, upper: Any, *, with_upper: bool = False
) -> None:
    """Ask for a range of a column's values, in place of what the same source has asked for before, if a filter can.

    Parameters
    ----------
    state : ExplorerState
        Gets the clause.
    source, column : str
        As in `add_clause`.
    lower, upper : object
        Values of the column.
    with_upper : bool
        Whether the upper end is a part of the range.
    """
    field, name = state.table.schema.find(column), write_column(column)
    first, last = (write_value(field.type, value) for value in (lower, upper))
    if None not in (name, first, last):
        _set_clause(state, source, f"{name} >= {first} and {name} {'<=' if with_upper else '<'} {last}")


def _set_clause(state: ExplorerState, source: str, text: str) -> bool:
    if not check_filter(text, state.table).fits:
        return False
    state.clauses = {**state.clauses, source: text}
    return True
