"""What all figures share: colours that colour-blind people can tell apart, a plain layout, and escaped text."""

from __future__ import annotations

from html import escape
from typing import Any

DATA = "#0072B2"
"""Data files and values: the blue of Okabe and Ito."""
DELETES = "#D55E00"
"""Delete files: vermilion."""
ERROR = "#E69F00"
"""Error bands: orange."""
OVERLAP = "#009E73"
"""What overlaps: bluish green."""
MISSING = "#999999"
"""Nulls and NaN: grey."""
TEXT = "#767676"
"""Readable on white and on black; the style sheet replaces it with the theme's colour."""
GRID = "rgba(127,127,127,0.25)"
LONGEST_LABEL = 60


def escape_label(text: object, longest: int = LONGEST_LABEL) -> str:
    """Return text from the table so that plotly shows it literally: plotly interprets some HTML in labels and hovers.

    Examples
    --------
    >>> escape_label("<b>7</b>")
    '&lt;b&gt;7&lt;/b&gt;'
    >>> escape_label("0123456789", longest=5)
    '0123…'
    """
    plain = "".join(c if c.isprintable() else "\N{SYMBOL FOR NEWLINE}" if c == "\n" else " " for c in str(text))
    return escape(plain if len(plain) <= longest else plain[: longest - 1] + "…")


def shorten_path(path: str) -> str:
    """Return the end of a path, as a label.

    Examples
    --------
    >>> shorten_path("file:/warehouse/t/metadata/0-m0.avro")
    'metadata/0-m0.avro'
    """
    return escape_label("/".join(path.split("/")[-2:]), longest=90)


def build_layout(height: int, **more: Any) -> dict[str, Any]:
    """Return a transparent layout, for light and dark themes.

    Parameters
    ----------
    height : int
        Pixels.
    **more
        Further properties of plotly's layout; they win.
    """
    return {
        "template": "none",
        "height": height,
        "autosize": True,
        "margin": {"l": 56, "r": 12, "t": 12, "b": 40, "autoexpand": True},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"size": 11, "color": TEXT, "family": "system-ui, sans-serif"},
        "hoverlabel": {"align": "left", "font": {"size": 12}},
        "hovermode": "closest",
        "dragmode": "zoom",
        "showlegend": False,
        **more,
    }


def build_axis(title: str = "", **more: Any) -> dict[str, Any]:
    """Return a quiet axis.

    Parameters
    ----------
    title : str
        Shown unescaped: escape text from the table first.
    **more
        Further properties of plotly's axis; they win.
    """
    return {
        "title": {"text": title, "standoff": 8},
        "gridcolor": GRID,
        "linecolor": GRID,
        "zeroline": False,
        "automargin": True,
        "fixedrange": False,
        **more,
    }
