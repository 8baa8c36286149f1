"""How the time of roll-ups grows with files and with columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.generated_table import Shape, generate
from benchmarks.line_plot import Panel, draw
from benchmarks.metadata_cases import AGAIN, FLOOR, Bench, measure

PARTS = (10, 3, 1)
"""One tenth, one third, all."""
LINES = {"all roll-ups": AGAIN, "inflating": FLOOR}


def draw_scaling(scratch: Path, shape: Shape, rounds: int) -> str:
    """Measure tables of a tenth and a third of the files, and of the columns, and draw the seconds as SVG."""
    fewer_files = [replace(shape, days=max(2, shape.days // part)) for part in PARTS]
    fewer_columns = [replace(shape, columns=max(4, shape.columns // part)) for part in PARTS]
    panels = [
        _panel(
            f"{shape.columns} columns", "data files", [s.days * s.files_per_day for s in fewer_files],
            [_seconds(scratch, s, rounds) for s in fewer_files],
        ),
        _panel(
            f"{shape.days * shape.files_per_day:,} data files", "columns", [s.columns for s in fewer_columns],
            [_seconds(scratch, s, rounds) for s in fewer_columns],
        ),
    ]  # fmt: skip
    return draw(panels, "Seconds of all roll-ups and of inflating alone, by data files and by columns")


def _panel(title: str, x_title: str, sizes: Sequence[int], seconds: Sequence[Sequence[float]]) -> Panel:
    for size, found in zip(sizes, seconds, strict=True):
        print(f"{title}, {size:,} {x_title}: " + ", ".join(f"{n} {s:.3f} s" for n, s in zip(LINES, found, strict=True)))
    by_line = zip(*seconds, strict=True)
    lines = {name: list(zip(sizes, found, strict=True)) for name, found in zip(LINES, by_line, strict=True)}
    return Panel(title, x_title, "seconds", lines)


def _seconds(scratch: Path, shape: Shape, rounds: int) -> list[float]:
    runs = measure(Bench(str(generate(scratch, shape)), scratch), list(LINES.values()), rounds)
    found = []
    for case in LINES.values():
        done = runs[case]
        if isinstance(done, str):
            raise SystemExit(f"benchmarks: {done}")
        found.append(min(run.seconds for run in done))
    return found
