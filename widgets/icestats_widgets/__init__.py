"""The notebook layer of icestats: `icestats.load(...).explore()`."""

from icestats_widgets.explorer import Explorer
from icestats_widgets.selected_part import SelectedPart, read_part
from icestats_widgets.selection import FieldRange, Selection
from icestats_widgets.state import ExplorerState

__all__ = ["Explorer", "ExplorerState", "FieldRange", "SelectedPart", "Selection", "read_part"]
