"""A state with all that reads into it, and the bar: the explorer without its page."""

from __future__ import annotations

from typing import Any

from icestats_widgets.page.filter_bar import FilterBar
from icestats_widgets.reading.background import Background
from icestats_widgets.reading.coordinator import Coordinator
from icestats_widgets.reading.question_coordinator import QuestionCoordinator
from icestats_widgets.state import ExplorerState


class Asked:
    """A table that is asked.

    Parameters
    ----------
    table : icestats.Table
        What is asked.
    """

    def __init__(self, table: Any) -> None:
        self.state = ExplorerState(table=table)
        self.background = Background()
        self.coordinator = Coordinator(self.state, self.background)
        self.coordinator.read_overview()
        self.questions = QuestionCoordinator(self.state, self.background)
        self.bar = FilterBar(self.state)
        self.sent: list[dict[str, Any]] = []
        self.bar.send = self.sent.append

    def read(self) -> Asked:
        """Read everything else."""
        self.coordinator.read_rollups()
        self.wait()
        return self

    def wait(self) -> None:
        """Wait for what is read in the background."""
        assert self.background.wait(600)

    def type(self, text: str) -> dict[str, Any]:
        """Type a filter; return the bar once it is answered."""
        self.bar.act("type", {"text": text})
        self.wait()
        return self.bar.document()

    def complete(self, text: str) -> list[str]:
        """Return what may come next."""
        self.bar.act("complete", {"text": text, "cursor": len(text), "number": 7})
        return [item["text"] for item in self.sent[-1]["items"]]


def find_blocks(blocks: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """Return all blocks of a kind, those in cards and beside each other too."""
    found = [block for block in blocks if block["is"] == kind]
    return found + [one for block in blocks for one in find_blocks(block.get("blocks", []), kind)]
