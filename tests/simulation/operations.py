"""What actors do to the table: each operation with what it means to change, by PyIceberg itself or by icestats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyiceberg.table.statistics import StatisticsFile

import icestats
from icestats import writers
from icestats.commit.puffin_writer import NewBlob, write_puffin
from icestats.stats.theta import ThetaSketch
from tests.simulation.model import Change, Row, Rows, Version

if TYPE_CHECKING:
    from tests.simulation.simulation import Simulation

NAME = "db.t"
PARTS = ("a", "b", "c")
SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.string()), ("v", pa.float64())])

READ, ROWS, STATISTICS, REMOVAL, ORPHANS, EXPIRY, PROPERTY, FOREIGN = (
    "read",
    "rows",
    "statistics",
    "removal",
    "orphans",
    "expiry",
    "property",
    "foreign statistics",
)


@dataclass
class Operation:
    """Something that an actor does, and what came of it."""

    kind: str
    name: str
    work: Callable[[Simulation, dict[str, Any], Operation], Any]
    by_kit: bool = True
    change: Change = field(default_factory=Change)
    may_change: set[Any] = field(default_factory=set)
    """Keys of the metadata that it means to change: ids of snapshots, names of properties."""
    commits: list[Version] = field(default_factory=list)
    """Versions of the metadata that it made."""
    created: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    result: Any = None
    error: BaseException | None = None


def draw(simulation: Simulation, role: str) -> Operation:
    """Draw what an actor does next."""
    random = simulation.turns.random
    if role == "writer":
        return random.choice((_draw_append, _draw_append, _draw_overwrite, _draw_delete))(simulation)
    if role == "others":
        return random.choice((_draw_expiry, _draw_property, _draw_foreign, _draw_append))(simulation)
    if role == "reader":
        return Operation(READ, "read", _read)
    makers = (_draw_compute, _draw_compute, _draw_refresh, _draw_removal, _draw_removal)
    return random.choice((*makers, _draw_orphans) if role == "keeper" else makers)(simulation)


def draw_rows(simulation: Simulation) -> Rows:
    random = simulation.turns.random
    rows = []
    for _ in range(random.randint(1, 4)):
        simulation.last_id += 1
        rows.append((simulation.last_id, random.choice(PARTS), random.choice((None, 0.0, 1.5, 2.5, -7.0, 1e9))))
    return tuple(rows)


def to_arrow(rows: Rows) -> pa.Table:
    return pa.table(list(zip(*rows, strict=True)) if rows else [[], [], []], schema=SCHEMA)


def _draw_append(simulation: Simulation) -> Operation:
    rows = draw_rows(simulation)
    if simulation.turns.random.random() < 0.5:
        work = lambda sim, memory, op: sim.load().append(to_arrow(rows))  # noqa: E731
        return Operation(ROWS, "append", work, by_kit=False, change=Change(rows))
    work = lambda sim, memory, op: writers.append(_open(sim, memory), to_arrow(rows))  # noqa: E731
    return Operation(ROWS, "writers.append", work, change=Change(rows))


def _draw_overwrite(simulation: Simulation) -> Operation:
    rows, (row_filter, removes) = draw_rows(simulation), _draw_filter(simulation)
    if simulation.turns.random.random() < 0.5:
        work = lambda sim, memory, op: sim.load().overwrite(to_arrow(rows), row_filter)  # noqa: E731
        return Operation(ROWS, f"overwrite {row_filter}", work, by_kit=False, change=Change(rows, removes))
    work = lambda sim, memory, op: writers.overwrite(_open(sim, memory), to_arrow(rows))  # noqa: E731
    return Operation(ROWS, "writers.overwrite", work, change=Change(rows, lambda row: True))


def _draw_delete(simulation: Simulation) -> Operation:
    row_filter, removes = _draw_filter(simulation)
    work = lambda sim, memory, op: sim.load().delete(row_filter)  # noqa: E731
    return Operation(ROWS, f"delete {row_filter}", work, by_kit=False, change=Change(removes=removes))


def _draw_filter(simulation: Simulation) -> tuple[str, Callable[[Row], bool]]:
    """Whole partitions, or some rows of files."""
    random = simulation.turns.random
    if random.random() < 0.5:
        part = random.choice(PARTS)
        return f"part = '{part}'", lambda row: row[1] == part
    low = random.randint(1, simulation.last_id)
    high = low + random.randint(0, 3)
    return f"id >= {low} and id <= {high}", lambda row: low <= row[0] <= high


def _draw_compute(simulation: Simulation) -> Operation:
    random = simulation.turns.random
    flags = {name: random.random() < 0.6 for name in ("table", "partitions", "manifests")}
    if not any(flags.values()):
        flags["table"] = True
    if flags["partitions"]:
        flags["with_column_stats"] = random.choice((None, True, False))
    columns = random.sample(SCHEMA.names, random.randint(1, 2)) if random.random() < 0.5 else None

    def work(sim: Simulation, memory: dict[str, Any], operation: Operation) -> Any:
        table = _open(sim, memory)
        operation.may_change.add(table.metadata.current_snapshot_id)
        statistics = table.compute(columns=columns if flags["table"] else None, **flags)
        return _commit(sim, statistics)

    return Operation(STATISTICS, f"compute {' '.join(name for name, on in flags.items() if on)}", work)


def _commit(sim: Simulation, statistics: Any) -> Any:
    if sim.turns.random.random() < 0.2:
        statistics.commit(dry_run=True)
    sim.turns.pause()
    return statistics.commit()


def _draw_refresh(simulation: Simulation) -> Operation:
    def work(sim: Simulation, memory: dict[str, Any], operation: Operation) -> Any:
        table = _open(sim, memory)
        operation.may_change.add(table.metadata.current_snapshot_id)
        return _commit(sim, table.refresh_statistics())

    return Operation(STATISTICS, "refresh", work)


def _draw_removal(simulation: Simulation) -> Operation:
    restore, partitions = (simulation.turns.random.random() < chance for chance in (0.5, 0.7))

    def work(sim: Simulation, memory: dict[str, Any], operation: Operation) -> Any:
        table = _open(sim, memory)
        known = [entry.snapshot_id for entry in table.metadata.statistics] or [table.metadata.current_snapshot_id]
        current = table.metadata.current_snapshot_id
        recent = current in known and sim.turns.random.random() < 0.7
        snapshot_id = current if recent else sim.turns.random.choice(known)
        operation.may_change.add(snapshot_id)
        return table.remove_statistics(snapshot_id, restore=restore, partitions=partitions)

    return Operation(REMOVAL, f"remove statistics {'and restore' if restore else ''}", work)


def _draw_orphans(simulation: Simulation) -> Operation:
    days = simulation.turns.random.randint(1, 3)
    work = lambda sim, memory, op: _open(sim, memory).remove_orphans(timedelta(days), dry_run=False)  # noqa: E731
    return Operation(ORPHANS, f"remove orphans of {days} days", work)


def _draw_expiry(simulation: Simulation) -> Operation:
    def work(sim: Simulation, memory: dict[str, Any], operation: Operation) -> Any:
        table = sim.load()
        old = [s.snapshot_id for s in table.metadata.snapshots if s.snapshot_id != table.metadata.current_snapshot_id]
        if not old:
            return None
        chosen = sim.turns.random.sample(old, sim.turns.random.randint(1, len(old)))
        operation.may_change.update(chosen)
        return table.maintenance.expire_snapshots().by_ids(chosen).commit()

    return Operation(EXPIRY, "expire snapshots", work, by_kit=False)


def _draw_property(simulation: Simulation) -> Operation:
    random = simulation.turns.random
    key, value = f"owner-{random.randint(1, 3)}", str(random.randint(1, 100))

    def work(sim: Simulation, memory: dict[str, Any], operation: Operation) -> Any:
        with sim.load().transaction() as transaction:
            transaction.set_properties({key: value})

    return Operation(PROPERTY, f"set {key}", work, by_kit=False, may_change={key})


def _draw_foreign(simulation: Simulation) -> Operation:
    """Another engine's statistics, registered as PyIceberg does it: whatever was there is replaced."""

    def work(sim: Simulation, memory: dict[str, Any], operation: Operation) -> Any:
        table = sim.load()
        snapshot = sim.turns.random.choice(table.metadata.snapshots)
        operation.may_change.add(snapshot.snapshot_id)
        ndv = sim.model.distinct(snapshot.snapshot_id, 3)
        blob = NewBlob(
            "apache-datasketches-theta-v1",
            (3,),
            snapshot.snapshot_id,
            snapshot.sequence_number,
            ThetaSketch().to_bytes(),
            {"ndv": str(ndv), "by": "another engine"},
        )
        puffin = write_puffin([blob])
        path = f"{table.location()}/metadata/{sim.turns.uuid4()}.stats"
        with table.io.new_output(path).create() as stream:
            stream.write(puffin.data)
        entry = {
            "snapshot-id": snapshot.snapshot_id,
            "statistics-path": path,
            "file-size-in-bytes": len(puffin.data),
            "file-footer-size-in-bytes": puffin.footer_size_bytes,
            "blob-metadata": [
                {
                    "type": blob.type,
                    "snapshot-id": blob.snapshot_id,
                    "sequence-number": blob.sequence_number,
                    "fields": [3],
                    "properties": dict(blob.properties),
                }
            ],
        }
        with table.update_statistics() as update:
            update.set_statistics(StatisticsFile.model_validate(entry))

    return Operation(FOREIGN, "register foreign statistics", work, by_kit=False)


def _read(simulation: Simulation, memory: dict[str, Any], operation: Operation) -> Any:
    table = _open(simulation, memory)
    what = simulation.turns.random.choice(("sketches", "columns", "partitions", "manifests", "orphans"))
    operation.name = f"read {what}"
    return table.metadata.current_snapshot_id, what, getattr(table, what)()


def _open(simulation: Simulation, memory: dict[str, Any]) -> icestats.Table:
    """Return the table as the actor has it since a while, or loaded anew."""
    if "table" not in memory or simulation.turns.random.random() < 0.6:
        memory["table"] = icestats.load(NAME, catalog=simulation.catalog_properties)
    return memory["table"]
