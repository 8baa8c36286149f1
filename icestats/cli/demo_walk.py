"""The whole path in one go, on the demo warehouse: build, look, compute, commit, look again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from icestats.answers.text import render_count
from icestats.cli.progress import terminal_progress
from icestats.cli.records import plain_value
from icestats.errors import StatisticsMissingError
from icestats.table.demo_opening import TABLES, demo
from icestats.table.table import Table

SHOWN = {"events": ("device_id", "price", "event_type"), "flights": ("dep_delay", "distance", "carrier")}
"""The columns of each table that are shown before and after."""
KLL_K = 1_000
"""Size of the demo's sketches: ranks within 0.28 %, so that ranges of 1 % of the rows are estimated within a tenth."""


@dataclass(frozen=True)
class Walk:
    """What the walk did with one table, and what was seen before and after."""

    table: Table
    commit: str | None
    """What was committed; None where the statistics of this snapshot were there already."""
    before: dict[str, str]
    after: dict[str, str]

    def to_text(self) -> str:
        """Return the walk for a terminal."""
        width = max(map(len, self.after))
        lines = [repr(self.table), f"  {self.commit or 'statistics of this snapshot are committed already'}"]
        for column, after in self.after.items():
            lines += [f"  {column:<{width}}  before: {self.before[column]}", f"  {'':<{width}}  after:  {after}"]
        return "\n".join(lines)

    def to_json(self) -> dict[str, object]:
        """Return the walk as JSON."""
        return {**self.table.overview().to_json(), "commit": self.commit, "before": self.before, "after": self.after}


def walk_demo(say: Callable[[str], None]) -> list[Walk]:
    """Build the demo warehouse where it is missing, and compute and commit what its tables lack.

    Parameters
    ----------
    say : callable
        Called with a line of text at each step.
    """
    walks = []
    for name in TABLES:
        table = demo(name, progress=say)
        before = {column: _look(table, column) for column in SHOWN[name]}
        commit = None
        if table.overview().statistics_commits_behind != 0:
            say(f"{table.name}: one scan for Theta, KLL and column statistics of every column")
            with terminal_progress(f"scanning {table.name}") as progress:
                commit = str(table.compute(k=KLL_K, progress=progress).commit())
            table = table.refresh()
        walks.append(Walk(table, commit, before, {column: _look(table, column) for column in SHOWN[name]}))
    return walks


def _look(table: Table, column: str) -> str:
    row = next(row for row in table.columns().to_pylist() if row["name"] == column)
    ndv = f"NDV {render_count(row['ndv'])}"
    try:
        found = table.histogram(column)
    except StatisticsMissingError:
        return f"{ndv}, no histogram"
    low, middle, high = (plain_value(found.quantiles[rank]) for rank in (0.05, 0.5, 0.95))
    error = f"rank error {found.rank_error:.2%}"
    return (
        f"{ndv}, 5 % below {low}, median {middle}, 5 % above {high} ({error}, {render_count(found.null_count)} nulls)"
    )
