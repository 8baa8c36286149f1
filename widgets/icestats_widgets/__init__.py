"""The notebook layer of icestats: `icestats.load(...).explore()`."""

from icestats_widgets.explorer import Explorer
from icestats_widgets.state import ExplorerState

__all__ = ["Explorer", "ExplorerState"]
