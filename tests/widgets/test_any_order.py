"""Whatever comes between what: what the explorer shows at rest is what one that is opened now shows.

A seed chooses what a person and other writers do, and when work in the background runs and when its outcome arrives.
"""

from __future__ import annotations

import json
import os
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DoubleType, LongType, NestedField, StringType

import icestats
import icestats.spark.session_catalog
import icestats.spark.statistics_scan
import icestats_widgets.explorer
from icestats.iceberg.storage import local_path
from icestats.scan.scan_plan import scan_here
from icestats_widgets.reading.background import Background
from icestats_widgets.reading.selection import FieldRange, Selection
from icestats_widgets.reading.state_reader import StateReader

NAME = "db.t"
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "part", StringType(), required=False),
    NestedField(3, "v", DoubleType(), required=False),
)
SPEC = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "part"))
FILTERS = ("v < 3", "id >= 20 and v >= 1", "part = 'b'", "part = 'c' or v > 5", "")
SEEDS = 400 if "ICESTATS_FUZZ" in os.environ else 20
BUTTONS = ("start", "start", "cancel", "preview", "commit", "commit", "undo", "undo_now", "keep")
ASKED = ("row_filter", "clauses", "selection", "table")
DEPENDS = {
    **dict.fromkeys(("plan", "estimates", "asked_part", "part_sketches", "plan_comparison"), ASKED),
    **dict.fromkeys(("layout_report", "workload", "coverage", "sketches", "together", "sparks"), ("table",)),
    **dict.fromkeys(("columns", "manifests", "partitions"), ("table",)),
    "part": ("selection", "table"),
    "histogram": ("column", *ASKED),
}
"""What is read, and what it is of: shown while it is not said to be read anew, it is of what is chosen now."""


@dataclass
class _Work:
    kind: str
    number: int
    work: Callable[[], Any]
    deliver: Callable[[Any], object]
    fail: Callable[[Exception], object]
    question: dict[str, Any]
    outcome: Callable[[], object] | None = None


class Turns(Background):
    """Work whose running and whose arrival are two turns, taken when the test says so."""

    def __init__(self, question: Callable[[], dict[str, Any]]) -> None:
        super().__init__()
        self.question = question
        self.waiting: list[_Work] = []
        self.current: _Work | None = None

    def run(self, kind: str, work: Any, deliver: Any, fail: Any) -> None:
        self._newest[kind] = self._newest.get(kind, 0) + 1
        self.waiting.append(_Work(kind, self._newest[kind], work, deliver, fail, self.question()))

    def is_wanted(self) -> bool:
        return self.current is not None and self._newest[self.current.kind] == self.current.number

    def wait(self, timeout_s: float = 60.0) -> bool:
        while self.waiting:
            self.take(0)
        return True

    def take(self, place: int) -> None:
        """Run work, or let its outcome arrive."""
        self.current = work = self.waiting.pop(place)
        if work.outcome is not None:
            if self.is_wanted():
                work.outcome()
        else:
            try:
                found = work.work()
                work.outcome = lambda: work.deliver(found)
            except Exception as error:  # noqa: BLE001 - as in a thread
                failed = error
                work.outcome = lambda: work.fail(failed)
            self.waiting.insert(place, work)
        self.current = None


class Person:
    """A table that others write to, an explorer of it, and what is done with it."""

    def __init__(self, seed: int, catalog: SqlCatalog, properties: dict[str, str], patch: pytest.MonkeyPatch) -> None:
        self.random = random.Random(seed)
        self.properties = properties
        self.table = catalog.create_table(NAME, SCHEMA, partition_spec=SPEC)
        self.row_count = 0
        self.lost: Path | None = None
        self.done: list[str] = []
        self.asked_of: dict[str, dict[str, Any]] = {}
        patch.setattr(icestats_widgets.explorer, "Background", lambda: Turns(self.question))
        patch.setattr(icestats_widgets.explorer, "_find_known", lambda table: table)
        patch.setattr(icestats.spark.statistics_scan, "run_scan", lambda _, *asked, **options: scan_here(*asked))
        patch.setattr(icestats.spark.session_catalog, "find_session", lambda *_: None)
        patch.setattr(time, "perf_counter", lambda: 0.0)
        show = StateReader._show
        patch.setattr(StateReader, "_show", lambda *shown: (self.note(*shown), show(*shown))[1])
        for write in (self.append, self.append, self.compute):
            write()
        self.explorer = icestats.load(NAME, catalog=properties).explore()
        self.state = self.explorer.state
        self.turns: Turns = self.explorer._background
        often = (self.type, self.select, self.mark, self.append, self.reload, self.count, self.press, self.press)
        seldom = (self.column, self.compute, self.change, self.workload, self.compare, self.travel, self.lose)
        self.acts = (*often, *often, *seldom)

    def question(self) -> dict[str, Any]:
        """What is chosen."""
        return {name: getattr(self.explorer.state, name) for name in ("column", *ASKED)} if self.is_open else {}

    @property
    def is_open(self) -> bool:
        return hasattr(self, "explorer")

    def note(self, reader: StateReader, part: str, found: Any) -> None:
        if self.is_open and reader._background is self.turns and self.turns.current is not None:
            self.asked_of[part] = self.turns.current.question

    def act(self, action: str, value: Any = None) -> None:
        self.explorer._receive({"kind": "act", "action": action, "value": value, "view": "v", "number": 1})

    def step(self) -> None:
        """Do something, or let work in the background go on."""
        if self.turns.waiting and self.random.random() < 0.85:
            place = self.random.randrange(len(self.turns.waiting))
            self.done.append(
                f"{'arrive' if self.turns.waiting[place].outcome else 'run'} {self.turns.waiting[place].kind}"
            )
            self.turns.take(place)
        else:
            chosen = self.random.choice(self.acts)
            self.done.append(chosen.__name__.upper())
            chosen()
        self.check()

    def check(self) -> None:
        """Find what is shown as if it were of what is chosen, and is not."""
        now = self.question()
        for part, needs in DEPENDS.items():
            said = {"plan", part} if part == "estimates" else {part}
            if not getattr(self.state, part) or said & {*self.state.loading, *self.state.notes}:
                continue
            other = [name for name in needs if name in self.asked_of[part] and self.asked_of[part][name] != now[name]]
            assert not other, f"{part} is of another {other}: {' '.join(self.done)}"

    def rest(self) -> None:
        """Let all come in, and compare with an explorer that is opened now."""
        self.find()
        self.finish()
        # So that nothing is left of what was asked for once.
        self.act("query.type", {"text": next(text for text in FILTERS[1:] if text != self.state.row_filter)})
        self.act("compare.kind", "")
        self.act("page.reload")
        self.finish()
        fresh = icestats.load(NAME, catalog=self.properties, **self.state.table.pin).explore(column=self.state.column)
        fresh.state.selection, fresh.state.row_filter = self.state.selection, self.state.row_filter
        fresh.bar.text = self.explorer.bar.text
        fresh.wait()
        shown_now = {name: part for name, part in self.explorer.parts.items() if name != "compute"}
        for name, part in (*shown_now.items(), ("bar", self.explorer.bar)):
            shown, wanted = (_shown(one.document()) for one in (part, fresh.parts.get(name, fresh.bar)))
            differ = [pair for pair in zip(shown, wanted, strict=False) if pair[0] != pair[1]]
            assert not differ, f"{name}: {differ[0]}: {' '.join(self.done)}"
            assert len(shown) == len(wanted)

    def finish(self) -> None:
        while self.turns.waiting:
            self.turns.take(self.random.randrange(len(self.turns.waiting)))
            self.check()

    def append(self) -> None:
        ids = range(self.row_count, self.row_count + self.random.randint(5, 40))
        rows = [list(ids), [self.random.choice("abc") for _ in ids], [n % 7 if n % 5 else None for n in ids]]
        self.table.refresh().append(pa.table(rows, SCHEMA.as_arrow()))
        self.row_count = ids.stop

    def lose(self) -> None:
        """Let a file be gone for a while: a manifest, or the statistics."""
        self.find()
        table = self.table.refresh()
        paths = [one.manifest_path for one in table.current_snapshot().manifests(table.io)]
        paths += [one.statistics_path for one in table.metadata.statistics]
        self.lost = Path(local_path(self.random.choice(paths)))
        self.lost.rename(f"{self.lost}.lost")

    def find(self) -> None:
        if self.lost is not None:
            Path(f"{self.lost}.lost").rename(self.lost)
            self.lost = None

    def compute(self) -> None:
        self.find()
        icestats.load(NAME, catalog=self.properties).compute(by="partition", max_size_bytes=1 << 20).commit()

    def change(self) -> None:
        with self.table.refresh().transaction() as transaction:
            transaction.set_properties({"write.target-file-size-bytes": str(self.random.randint(1, 1 << 30))})

    def type(self) -> None:
        self.act("query.type", {"text": self.random.choice(FILTERS)})

    def select(self) -> None:
        paths = [] if self.state.manifests is None else self.state.manifests["manifest_path"].to_pylist()
        chosen = Selection(manifest_paths=(self.random.choice(paths),)) if paths else None
        self.state.selection = None if self.state.selection else chosen

    def mark(self) -> None:
        """Mark partitions in their picture."""
        lower, upper = sorted(self.random.choices("abc", k=2))
        self.state.selection = Selection(0, (FieldRange("part", 2, "identity", "string", lower, upper),))

    def press(self) -> None:
        """Press a button of those that compute, commit and undo, whether or not it can be pressed."""
        self.act(f"compute.{self.random.choice(BUTTONS)}")

    def column(self) -> None:
        self.state.column = self.random.choice(SCHEMA.as_arrow().names)

    def reload(self) -> None:
        self.act("page.reload")

    def travel(self) -> None:
        self.state.compared = (self.random.choice([*self.state.table.metadata.snapshots]),)
        self.act(self.random.choice(("snapshots.show", "snapshots.current")))

    def count(self) -> None:
        self.act("estimates.count")

    def workload(self) -> None:
        self.act("estimates.workload")

    def compare(self) -> None:
        self.act("compare.kind", "sort_by")
        self.act("compare.choice", "v")


def _shown(document: Any) -> list[str]:
    """What a person sees: without the numbers of messages."""
    text = json.dumps(document, sort_keys=True, default=str, indent=0)
    return re.sub(r'"number": \d+', "", text).splitlines()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_is_shown_is_of_what_is_chosen_whatever_the_order(
    seed: int, catalog: SqlCatalog, catalog_properties: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    person = Person(seed, catalog, catalog_properties, monkeypatch)
    for _ in range(120):
        person.step()
    person.rest()
