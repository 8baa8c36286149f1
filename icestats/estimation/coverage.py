"""What the optimizer of each engine gets of a table's statistics, and the commands that give it what is missing."""

from __future__ import annotations

import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from icestats.answers.schemas import COVERAGE
from icestats.answers.text import align, counted, printable_lines, quote_name
from icestats.errors import CallError
from icestats.estimation.engine_statistics import EngineFact, list_engines, read_engine_facts
from icestats.estimation.holdings import Holding, find_holdings, has_partitions
from icestats.iceberg.metadata import Field, StatisticsFile, parse_count
from icestats.iceberg.types import has_lengths
from icestats.read.puffin.puffin import PuffinBlob
from icestats.read.puffin.statistics_age import ENGINES, TIME_TRAP, ZONELESS_TIMES, count_ages
from icestats.read.puffin.statistics_files import HIVE_COLUMNS, CommittedBlob
from icestats.snapshot.snapshot_reader import SnapshotReader
from icestats.stats.column_accumulator import can_distribute, can_sketch

_PRESTO_REFUSES = r"timestamptz|timestamp(tz)?_ns"
_PRESTO_FORMAT_VERSION = 2
_KIT = "icestats"
_BY_SCAN = frozenset(
    (
        "NDV",
        "histogram",
        "min value",
        "max value",
        "null count",
        "nulls fraction",
        "NaN count",
        "avg length",
        "max length",
    )
)
"""The statistics of a column that a scan gives."""


@dataclass(frozen=True, slots=True)
class TableWords:
    """How commands name a table."""

    name: str
    pin: Mapping[str, int | str]
    """The snapshot or ref that it was loaded with."""
    identifier: Sequence[str] | None
    """Namespace and name in its catalog; None for a bare metadata.json."""
    columns: Sequence[str] | None
    """The columns that are asked about, where not all are."""
    can_commit: bool

    @property
    def source(self) -> str:
        """The table on the command line."""
        pins = "".join(f" --{name} {shlex.quote(str(value))}" for name, value in self.pin.items())
        return shlex.quote(self.name) + pins

    def fill(self, template: str, engine: str) -> str:
        """Return a command of a fact for this table; empty where it needs a name that the table does not have."""
        if "{table}" in template and self.identifier is None:
            return ""
        python = ", ".join([repr(self.name), *(f"{name}={value!r}" for name, value in self.pin.items())])
        parts = self.identifier or ()
        plain = all(re.fullmatch(r"[A-Za-z_]\w*", part) for part in parts)
        table = ".".join(parts) if plain else quote_name(*parts, quote='"' if engine in ("Presto", "Trino") else "`")
        return template.replace("{source}", self.source).replace("{python}", python).replace("{table}", table)

    def compute(self, options: str) -> str:
        """Return the command that computes and commits statistics."""
        names = "" if self.columns is None else f" --columns {shlex.quote(','.join(self.columns))}"
        return f"icestats compute {self.source} {options}{names} --commit"


def build_coverage(
    reader: SnapshotReader, words: TableWords, columns: Sequence[Field], engines: Sequence[str] | None
) -> pa.Table:
    """Build `schemas.COVERAGE`.

    Parameters
    ----------
    reader : SnapshotReader
        The snapshot.
    words : TableWords
        How commands name the table.
    columns : sequence of Field
        Primitive top-level columns.
    engines : sequence of str, optional
        Names of engines, in any case; by default all.

    Raises
    ------
    CallError
        There is no such engine.
    """
    chosen = _choose_engines(engines)
    blobs = tuple(reader.nearest_blobs())
    holdings = find_holdings(reader, blobs, columns)
    reading = _Reading(reader, blobs)
    by_statistic: dict[tuple[str, str], list[EngineFact]] = defaultdict(list)
    for fact in read_engine_facts():
        if fact.engine in chosen:
            by_statistic[fact.level, fact.statistic].append(fact)
    rows = []
    for (level, statistic), facts in by_statistic.items():
        for field in columns if level.endswith("column") else (None,):
            if _applies(reader, level, statistic, field):
                places = holdings.get((level, None if field is None else field.field_id, statistic), ())
                rows += [_build_row(fact, field, places, reading, words) for fact in facts]
    order = {field.field_id: place for place, field in enumerate(columns)}
    rows.sort(key=lambda row: (row["level"].startswith("partition"), row["level"], order.get(row["field_id"], -1)))
    return pa.Table.from_pylist(rows, COVERAGE)


def name_state(row: Mapping[str, Any]) -> str:
    """Return what a row of `schemas.COVERAGE` says in a word or two.

    Examples
    --------
    >>> name_state({"uses": True, "available": True, "read_by_engine": True, "commits_behind": 3})
    '3 behind'
    """
    if not row["uses"]:
        return "not used"
    if not row["available"]:
        return "missing"
    if not row["read_by_engine"]:
        return "ignored"
    return f"{row['commits_behind']:,} behind" if row["commits_behind"] else "fresh"


def render_coverage(coverage: pa.Table) -> str:
    """Return a matrix of statistics and engines as text, columns of the table counted together, and the commands."""
    rows = coverage.to_pylist()
    engines = list(dict.fromkeys(row["engine"] for row in rows))
    states: dict[tuple[str, str], dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for row in rows:
        states[row["level"], row["statistic"]][row["engine"]][name_state(row)] += 1
    head = ["level", "statistic", *engines]
    lines = align(
        [head, *([level, name, *(_render_states(by[e]) for e in engines)] for (level, name), by in states.items())],
        left=range(len(head)),
    )
    commands = Counter(row["command"] for row in rows if row["command"] is not None)
    if commands:
        lines += ["", *(f"{counted(count, 'gap')}: {command}" for command, count in commands.items())]
    return printable_lines(lines) + "\n"


def _render_states(states: Mapping[str, int]) -> str:
    names = [name for name in states if name != "not used"]
    if len(states) == 1 or not names:
        return names[0] if names else "–"
    return ", ".join(f"{count} {name}" for name, count in states.items() if name != "not used")


def _choose_engines(engines: Sequence[str] | None) -> Collection[str]:
    known = list_engines()
    by_name = {name.lower(): name for name in known}
    if engines is None:
        return known
    if unknown := [name for name in engines if name.lower() not in by_name]:
        raise CallError(f"no engine {unknown[0]!r}: expected some of {', '.join(known)}")
    return {by_name[name.lower()] for name in engines}


def _applies(reader: SnapshotReader, level: str, statistic: str, field: Field | None) -> bool:
    """Whether a table, or a column of its type, can have a statistic."""
    if level.startswith("partition") and not has_partitions(reader):
        return False
    if statistic == "num delete vectors":
        return reader.source.metadata.format_version >= 3
    if field is None:
        return True
    if statistic == "NaN count":
        return field.has_nan
    if statistic in ("num trues", "num falses"):
        return field.type == "boolean"
    return statistic not in ("avg length", "max length") or has_lengths(field.type)


def _build_row(
    fact: EngineFact, field: Field | None, places: Sequence[Holding], reading: _Reading, words: TableWords
) -> dict[str, Any]:
    uses = fact.uses if field is None else fact.is_used_of(field.type)
    read = next((place for place in places if uses and reading.reads(fact, field, place)), None)
    best = read or (places[0] if places else None)
    reason = reading.find_obstacle(fact.engine, field) if uses else ""
    says = fact.says if uses or not fact.uses else f"not of type {field.type if field else ''}; else {fact.says}"
    return {
        "engine": fact.engine,
        "engine_version": fact.engine_version,
        "level": fact.level,
        "column": None if field is None else field.name,
        "field_id": None if field is None else field.field_id,
        "statistic": fact.statistic,
        "uses": uses,
        "available": best is not None,
        "source": None if best is None else best.source,
        "commits_behind": None if best is None else best.commits_behind,
        "read_by_engine": read is not None,
        "command": None if not uses or reason else _find_command(fact, field, best, words, is_read=read is not None),
        "evidence": f"{reason + '; ' if reason else ''}{says} ({fact.source})",
    }


def _find_command(
    fact: EngineFact, field: Field | None, best: Holding | None, words: TableWords, *, is_read: bool
) -> str | None:
    """Return the command that gives an engine a statistic that it uses; None where it has it, or nothing gives it."""
    if is_read and best is not None and not best.commits_behind:
        return None
    own = words.fill(fact.command, fact.engine)
    is_unlisted = "Theta sketch" in fact.reads and best is not None and best.blob is not None and not best.blob.listed
    if best is None or best.commits_behind or is_unlisted:
        options = _find_options(fact, field) if fact.reads or own else None
        if options is not None and field is not None and field.type in ZONELESS_TIMES and "Theta sketch" in fact.reads:
            options, words = f"{options} --list-ndv {shlex.quote(field.name)}", replace(words, columns=[field.name])
        if options is not None:
            return words.compute(options) if words.can_commit else None
        if own.startswith(_KIT) and best is None:
            return None
    if own.startswith(f"{_KIT} compute") and not words.can_commit:
        return None
    return own or None


def _find_options(fact: EngineFact, field: Field | None) -> str | None:
    """Return the options of `icestats compute` that make a statistic; None where it makes none."""
    if field is None or fact.statistic not in _BY_SCAN or can_sketch(field) is not None:
        return None
    if fact.statistic == "histogram" and can_distribute(field) is not None:
        return None
    if fact.level == "table-column":
        return "--table"
    return "--table --by partition" if "partition sketches" in fact.reads else None


class _Reading:
    """Which places of a table each engine reads today."""

    def __init__(self, reader: SnapshotReader, blobs: Sequence[CommittedBlob]) -> None:
        self._metadata = reader.source.metadata
        self._reader = reader
        self._seen: dict[str, list[PuffinBlob]] = defaultdict(list)
        for found in blobs:
            if not found.blob.is_hidden:
                self._seen[found.statistics_path].append(found.blob)
        self._presto_file = self._find_presto_file()
        self._presto_refuses = self._find_presto_refusal()
        self._trino_refuses = self._find_trino_refusal()

    def find_obstacle(self, engine: str, field: Field | None) -> str:
        """Return why an engine reads nothing of the table, or of a column; empty: nothing keeps it from that."""
        if engine == "Spark" and field is not None and field.type in ZONELESS_TIMES:
            return TIME_TRAP
        if engine == "Presto":
            return self._presto_refuses
        if engine == "Trino":
            is_fixed = field is not None and field.type.startswith("fixed")
            return "a query with a fixed column has no statistics at all" if is_fixed else self._trino_refuses
        if engine == "DuckDB" and self._metadata.format_version < 2:
            return "the table has format version 1"
        return ""

    def reads(self, fact: EngineFact, field: Field | None, place: Holding) -> bool:
        """Whether an engine reads a statistic where the table has it."""
        if place.place not in fact.reads or self.find_obstacle(fact.engine, field):
            return False
        if fact.engine == "Hive" and place.commits_behind:
            return False
        found = place.blob
        if found is None or fact.engine == _KIT:
            return True
        if fact.engine in ENGINES:
            return fact.engine in found.engines
        if fact.engine == "Hive":
            return found.listed and all(blob.type == HIVE_COLUMNS for blob in self._seen[found.statistics_path])
        stated = found.blob.properties.get("ndv" if place.place == "Theta sketch" else "data_size")
        path = None if self._presto_file is None else self._presto_file.statistics_path
        return found.statistics_path == path and parse_count(stated) is not None

    def _find_trino_refusal(self) -> str:
        ages = count_ages(self._metadata, self._reader.snapshot)
        files = {file.snapshot_id: file for file in self._metadata.statistics}
        nearest = next((files[snapshot_id] for snapshot_id in ages if snapshot_id in files), None)
        for blob in () if nearest is None else nearest.blobs:
            stated = blob.properties.get("ndv")
            if stated is not None and parse_count(stated) is None:
                return f"Trino sees no statistics of the table at all: metadata.json lists the ndv {stated[:40]!r}"
        return ""

    def _find_presto_file(self) -> StatisticsFile | None:
        """Return the file that Presto takes: that of the snapshot nearest in time, whatever branch it is of."""
        target, snapshots = self._reader.snapshot, self._metadata.snapshots
        if target is None:
            return None
        known = [file for file in self._metadata.statistics if file.snapshot_id in snapshots]
        return min(
            known,
            key=lambda file: abs(target.timestamp_ms - snapshots[file.snapshot_id].timestamp_ms),
            default=next(iter(self._metadata.statistics), None),
        )

    def _find_presto_refusal(self) -> str:
        if self._metadata.format_version > _PRESTO_FORMAT_VERSION:
            return f"Presto 0.287 cannot read format version {self._metadata.format_version}"
        refused = [field for field in self._reader.schema.fields if re.fullmatch(_PRESTO_REFUSES, field.type)]
        if refused:
            return f"Presto 0.287 refuses the table: column {refused[0].name!r} is {refused[0].type}"
        path = "" if self._presto_file is None else self._presto_file.statistics_path
        odd = [blob for blob in self._seen[path] if len(blob.field_ids) != 1]
        if odd:
            return (
                f"Presto sees no statistics of the table at all: the blob {odd[0].type[:80]!r} in {path} has "
                f"{counted(len(odd[0].field_ids), 'field')}, expected exactly one"
            )
        return ""
