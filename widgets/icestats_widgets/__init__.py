"""The notebook layer of icestats: `icestats.load(...).explore()`."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from icestats_widgets.explorer import Explorer
    from icestats_widgets.reading.selected_part import SelectedPart, read_part
    from icestats_widgets.reading.selection import FieldRange, Selection
    from icestats_widgets.state import ExplorerState

__all__ = ["Explorer", "ExplorerState", "FieldRange", "SelectedPart", "Selection", "read_part"]

_HOMES = {
    "Explorer": "explorer",
    "ExplorerState": "state",
    "FieldRange": "reading.selection",
    "SelectedPart": "reading.selected_part",
    "Selection": "reading.selection",
    "read_part": "reading.selected_part",
}
"""What is imported when it is first named: figures and reports need no widget."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'icestats_widgets' has no attribute {name!r}")
    return getattr(importlib.import_module(f"icestats_widgets.{_HOMES[name]}"), name)
