"""A plot of a few lines, side by side with others, as SVG without anything that has to be loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 400, 280, 58, 38, 48
COLORS = ("#1f6feb", "#8b949e", "#bf5700", "#2da44e")
_GRID, _TEXT = "#8b949e", "#57606a"


@dataclass(frozen=True, slots=True)
class Panel:
    """One plot, both of whose axes begin at 0."""

    title: str
    x_title: str
    y_title: str
    lines: Mapping[str, Sequence[tuple[float, float]]]


def draw(panels: Sequence[Panel], description: str) -> str:
    """Return an SVG document of plots side by side."""
    size = f'width="{WIDTH * len(panels)}" height="{HEIGHT}" viewBox="0 0 {WIDTH * len(panels)} {HEIGHT}"'
    style = f'font-family="system-ui, sans-serif" font-size="12" fill="{_TEXT}"'
    body = "\n".join(f'<g transform="translate({WIDTH * n} 0)">\n{_panel(p)}\n</g>' for n, p in enumerate(panels))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{description}" {style}>'
    return f"{head}\n{body}\n</svg>\n"


def _panel(panel: Panel) -> str:
    points = [point for line in panel.lines.values() for point in line]
    right, low = WIDTH - 32, HEIGHT - BOTTOM
    x_ticks, y_ticks = (_ticks(max(values)) for values in zip(*points, strict=True))

    def place(x: float, y: float) -> tuple[float, float]:
        return LEFT + (right - LEFT) * x / x_ticks[-1], low - (low - TOP) * y / y_ticks[-1]

    parts = [f'<text x="{LEFT}" y="18" font-weight="600">{panel.title}</text>']
    for tick in y_ticks:
        y = place(0, tick)[1]
        parts.append(f'<path d="M{LEFT} {y:.1f}H{right}" stroke="{_GRID}" stroke-opacity="0.3"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    parts += [
        f'<text x="{place(tick, 0)[0]:.1f}" y="{low + 16}" text-anchor="middle">{tick:,g}</text>' for tick in x_ticks
    ]
    parts.append(f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 12}" text-anchor="middle">{panel.x_title}</text>')
    parts.append(
        f'<text transform="translate(14 {(TOP + low) / 2}) rotate(-90)" text-anchor="middle">{panel.y_title}</text>'
    )
    for (name, line), color in zip(panel.lines.items(), COLORS, strict=False):
        places = [place(*point) for point in line]
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        parts.append(f'<path d="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{color}"/>' for x, y in places]
        x, y = places[-1]
        parts.append(f'<text x="{x - 8:.1f}" y="{y - 9:.1f}" text-anchor="end" fill="{color}">{name}</text>')
    return "\n".join(parts)


def _ticks(largest: float) -> list[float]:
    step = 10.0**-3
    while not any(largest <= 5 * step * factor for factor in (1, 2, 5)):
        step *= 10
    step *= next(factor for factor in (1, 2, 5) if largest <= 5 * step * factor)
    return [step * number for number in range(int(-(-largest // step)) + 1)]
