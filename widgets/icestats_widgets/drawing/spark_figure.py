"""A histogram so small that it fits into a cell of a table."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from icestats.answers.text import printable

_WIDTH, _HEIGHT, _MISSING_WIDTH = 96, 22, 5


def build_spark(
    heights: Sequence[float],
    *,
    label: str,
    missing: tuple[float | None, float | None] = (None, None),
) -> str:
    """Build the picture of a cell: bars, and beside them the shares of nulls and of NaN.

    It has no style of its own, as a table has hundreds of them: its colours are variables with a value to fall back to.

    Parameters
    ----------
    heights : sequence of float
        Heights of the bars from 0 to 1; none if there is no sketch.
    label : str
        What the picture shows, for screen readers.
    missing : tuple of float or None
        The shares of nulls and NaN; None is not drawn.

    Examples
    --------
    >>> build_spark([0.5, 1.0], label="two bars").count("M")
    2
    """
    shares = [share for share in missing if share is not None]
    room = _WIDTH - len(shares) * (_MISSING_WIDTH + 3)
    pitch = room / max(1, len(heights))
    wide = max(pitch - 0.7, 0.5)
    bars = "".join(
        f"M{i * pitch:.1f} {_HEIGHT}v-{max(share * _HEIGHT, 0.5 if share else 0):.1f}h{wide:.1f}V{_HEIGHT}z"
        for i, share in enumerate(heights)
    )
    beside = "".join(
        f'<rect x="{room + 3 + i * (_MISSING_WIDTH + 3):.1f}" width="{_MISSING_WIDTH}" y="{y:.1f}" height="{tall:.1f}"'
        f' fill="var(--icestats-{colour})"/>'
        for i, share in enumerate(shares)
        for y, tall, colour in (
            (0, _HEIGHT, "line,#d9dce0"),
            (_HEIGHT * (1 - share), _HEIGHT * share, "missing,#8f959b"),
        )
    )
    drawn = f'<path fill="var(--icestats-data,#0072b2)" d="{bars}"/>' if bars else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="icestats-spark" role="img" width="{_WIDTH}"'
        f' height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}" aria-label="{escape(printable(label))}">'
        f"{drawn}{beside}</svg>"
    )
