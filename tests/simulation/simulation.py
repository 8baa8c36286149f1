"""One run of one seed: actors, the table they work on, and what was found wrong."""

from __future__ import annotations

import logging
import shutil
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DoubleType, LongType, NestedField, StringType

import icestats
from icestats.iceberg.storage import Storage
from tests.simulation import invariants, storage
from tests.simulation.environment import controlled
from tests.simulation.model import Change, Model, Version
from tests.simulation.operations import (
    NAME,
    ORPHANS,
    READ,
    REMOVAL,
    ROWS,
    STATISTICS,
    Operation,
    draw,
    draw_rows,
    to_arrow,
)
from tests.simulation.turns import DAY_MS, Actor, Death, Turns

_Result = TypeVar("_Result")
ACTORS = ("writer", "keeper 1", "keeper 2", "others", "reader")
OPERATIONS = 10
"""How many of them a seed begins."""
_KEEPERS_SHARES = (1, 6)
"""How often a keeper begins something, for once that each of the others does; each seed takes one."""
_TOGETHER = 0.8
"""How often the other keeper begins to change statistics, too, when one begins."""
_SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "part", StringType(), required=False),
    NestedField(3, "v", DoubleType(), required=False),
)
_PARTITIONS = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "part"))


@dataclass(frozen=True)
class Outcome:
    """What came of a seed."""

    seed: int
    trace_hash: str
    trace: tuple[str, ...]
    violations: tuple[str, ...]
    steps: int
    commits: int
    faults: Counter[str]


def run_seed(seed: int) -> Outcome:
    """Run a seed in a folder of its own: on a RAM disk, where there is one."""
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="icestats-simulation-", dir=memory if memory.is_dir() else None))
    simulation = Simulation(seed, folder)
    storage.RUNNING.append(simulation)
    try:
        with controlled(simulation.turns):
            return simulation.run()
    finally:
        storage.RUNNING.pop()
        shutil.rmtree(folder)


def run_seeds(seeds: range, keep_trace: bool) -> list[Outcome]:
    """Run some seeds in a process of their own."""
    logging.disable()
    outcomes = [run_seed(seed) for seed in seeds]
    return outcomes if keep_trace else [replace(outcome, trace=()) for outcome in outcomes]


class Simulation:
    """A table, its actors, and the model that they are compared with.

    Parameters
    ----------
    seed : int
        Of all choices.
    folder : Path
        An empty one, for the catalog and all files.
    """

    def __init__(self, seed: int, folder: Path) -> None:
        self.folder = folder
        self.turns = Turns(seed)
        self.model = Model()
        self.violations: list[str] = []
        self.last_id = 0
        self.catalog_properties = storage.properties(folder)
        self.storage = Storage(self.catalog_properties)
        self._seed = seed
        self._actors = [Actor(name) for name in ACTORS]
        share = self.turns.random.choice(_KEEPERS_SHARES)
        self._may_begin = self._actors + [actor for actor in self._actors if "keeper" in actor.name] * (share - 1)
        self._own: Operation | None = None
        """What the simulation itself does to the table."""

    def run(self) -> Outcome:
        """Let the actors work until all of their operations have ended, then everything be put in order."""
        with self._open_catalog() as self._catalog:
            self._create_table()
            self._let_work()
            if not self.violations:
                self._settle()
            for actor in self._actors:
                self.turns.kill(actor)
        turns, commits = self.turns, len(self.model.versions) - 1
        found = tuple(turns.trace), tuple(self.violations), turns.step_count, commits, turns.faults
        return Outcome(self._seed, turns.trace_hash, *found)

    def _open_catalog(self) -> storage.SimulatedCatalog:
        options = {key: value for key, value in self.catalog_properties.items() if key != "name"}
        return storage.SimulatedCatalog(self.catalog_properties["name"], **options)

    def _create_table(self) -> None:
        rows = draw_rows(self)
        self._own = Operation(ROWS, "create", lambda *_: None, by_kit=False, change=Change(rows))
        self._catalog.create_namespace("db")
        kept = self.turns.random.choice(("3", "100"))
        table = self._catalog.create_table(
            NAME, _SCHEMA, partition_spec=_PARTITIONS, properties={"write.metadata.previous-versions-max": kept}
        )
        self.files = invariants.Files(table.io)
        self.model.versions.append(Version(table.metadata_location, table.metadata, self.turns.now_ms))
        table.append(to_arrow(rows))
        self._compute("compute at the beginning", table=True)

    def _compute(self, name: str, **what: bool) -> None:
        self._own = Operation(STATISTICS, name, lambda *_: None)
        self._own.may_change.add(self.model.current.metadata.current_snapshot_id)
        icestats.load(NAME, catalog=self.catalog_properties).compute(**what).commit()
        self._check(invariants.check_end, self._own)

    def _let_work(self) -> None:
        random, begun, drains = self.turns.random, 0, False
        while not self.violations:
            working = [actor for actor in self._actors if actor.under_way is not None]
            if not working:
                if begun == OPERATIONS:
                    return
                if drains:
                    self._pass_days()
                drains = False
            actor = random.choice(working if drains or begun == OPERATIONS else self._may_begin)
            if actor.under_way is None:
                begun += 1
                drains = random.random() < 0.2
                self._begin(actor)
                begun += self._begin_beside(actor, OPERATIONS - begun)
            self.turns.step(actor)
            if actor.under_way is None:
                self._end(actor)

    def _begin_beside(self, actor: Actor, most: int) -> int:
        """Let the other keeper begin something too, most of the time, so that both work on the same statistics."""
        idle = [one for one in self._actors if one.under_way is None and one.name[:6] == actor.name[:6] == "keeper"]
        begun = [one for one in idle[:most] if self.turns.random.random() < _TOGETHER]
        for one in begun:
            self._begin(one, "keeper beside")
        return len(begun)

    def _begin(self, actor: Actor, role: str = "") -> None:
        operation = draw(self, role or actor.name.split()[0])
        actor.operation = operation
        self.turns.note(actor.name, "begins", operation.name)

        def work() -> None:
            try:
                operation.result = operation.work(self, actor.memory, operation)
            except (Exception, Death) as error:  # noqa: BLE001 - what an actor gets is looked at
                operation.error = error

        self.turns.begin(actor, work)

    def _end(self, actor: Actor) -> None:
        operation: Operation = actor.operation
        if isinstance(operation.error, Death):
            actor.memory.clear()
        said = "" if operation.error is None else f"{type(operation.error).__name__}: {operation.error}"
        self.turns.note(actor.name, "ends", operation.name, said)
        self._check(invariants.check_end, operation)
        actor.operation = None

    def _pass_days(self) -> None:
        """Time passes only while nobody works: files of somebody who has worked for a day may be taken for orphans."""
        self._check(invariants.check_table)
        self.turns.now_ms += self.turns.random.randint(1, 3 * DAY_MS)
        self.turns.note("time passes")

    def _settle(self) -> None:
        """When nothing fails any more, statistics can be made, and what was left behind is removed."""
        self._check(invariants.check_table)
        self._compute("compute at the end", table=True, partitions=True, manifests=True)
        self._own = Operation(ORPHANS, "remove orphans at the end", lambda *_: None)
        self.turns.now_ms += 2 * DAY_MS
        table = icestats.load(NAME, catalog=self.catalog_properties)
        orphans = table.remove_orphans(dry_run=False, allow_referred=True)
        self._check(invariants.check_table)
        left = [(row["path"], row["kept_because"]) for row in orphans.to_pylist() if not row["removed"]]
        if left:
            self.violated(f"orphans that are two days old are not removed: {left}")

    # What storage and catalog report of the call that is being done.

    def committed(self, location: str, metadata: Any, updates: Any, base: Any) -> None:
        """The catalog has a version of the metadata, perhaps a new one, of one who knew the table as in `base`."""
        if location != self.model.current.location:
            self._check(_take_in, self._operation, Version(location, metadata, self.turns.now_ms), updates, base)

    def creating(self, location: str) -> None:
        """A file begins to exist."""
        if self._operation is not None:
            self._operation.created.append(location)
            if self._operation.kind == READ:
                self.violated(f"{self._operation.name} creates {location}")

    def deleting(self, location: str) -> None:
        """A file will be no more."""
        if self._operation is not None and storage.local_path(location).exists():
            self._check(invariants.check_deletion, self._operation, location)

    def may_read_cut(self) -> bool:
        """Whether a file that is opened may seem shorter than it is.

        PyIceberg takes the end of an Avro file for the end of its list: a writer would lose rows.
        """
        operation = self._operation
        return operation is not None and operation.kind in (READ, REMOVAL, ORPHANS)

    @property
    def _operation(self) -> Operation | None:
        actor = self.turns.current
        return self._own if actor is None else actor.operation

    # What operations and invariants need.

    def load(self) -> Any:
        """Return PyIceberg's table as it is now."""
        return self._catalog.load_table(NAME)

    def under_way(self) -> list[Operation]:
        """Return the operations that have begun and not ended."""
        return [actor.operation for actor in self._actors if actor.under_way is not None]

    def violated(self, text: str) -> None:
        """Report that something does not hold."""
        self.turns.note("VIOLATION", text)
        self.violations.append(text)

    def list_files(self) -> dict[str, int]:
        """Return the sizes of all files in bytes, by location."""
        found = sorted(path for path in (self.folder / "lake").rglob("*") if path.is_file())
        return {f"sim://{path.relative_to(self.folder)}": path.stat().st_size for path in found}

    def _check(self, check: Callable[..., None], *arguments: Any) -> None:
        """Check something without faults, in the middle of an actor's call too: its code must not catch what fails."""
        current, self.turns.current = self.turns.current, None
        try:
            check(self, *arguments)
        except Exception as error:  # noqa: BLE001 - a check that cannot be made is a violation like others
            place = traceback.extract_tb(error.__traceback__)[-1]
            self.violated(f"a check failed: {type(error).__name__}: {error} ({place.filename}:{place.lineno})")
        finally:
            self.turns.current = current


def _take_in(sim: Simulation, operation: Operation | None, version: Version, updates: Any, base: Any) -> None:
    """Take a new version of the metadata into the model, and check it."""
    before = sim.model.current
    change = Change() if operation is None else operation.change
    made = sim.model.add(version, updates, change, lambda i: sim.files.rows_of(version.metadata, i))
    if operation is not None:
        operation.commits.append(version)
        if made:
            operation.change = replace(operation.change, added=())
    invariants.check_commit(sim, operation, before, version, made)
    if operation is not None and operation.by_kit:
        invariants.check_base(sim, operation, base, before.metadata, version.metadata)
