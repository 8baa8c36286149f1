"""What the optimizer of each engine gets of a table's statistics, and the commands that give it what is missing."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa

from icestats.answers.schemas import COVERAGE
from icestats.answers.text import align, can_stand, counted, printable_lines, quote_name
from icestats.errors import CallError
from icestats.estimation.engine_statistics import EngineFact, list_engines, read_engine_facts
from icestats.estimation.holdings import Holding, find_holdings
from icestats.iceberg.metadata import Field
from icestats.iceberg.summary import parse_count
from icestats.iceberg.types import has_lengths
from icestats.read.puffin.puffin import PuffinBlob
from icestats.read.puffin.statistics_age import count_ages
from icestats.read.puffin.statistics_files import HIVE_COLUMNS, CommittedBlob
from icestats.read.puffin.statistics_users import (
    ENGINES,
    TIME_TRAP,
    ZONELESS_TIMES,
    find_presto_file,
    find_presto_refusal,
)
from icestats.snapshot.snapshot_reader import SnapshotReader
from icestats.stats.column_accumulator import can_distribute, can_sketch

_KIT = "icestats"
_COMMITS = "{compute_partitions}"
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
        "num trues",
        "num falses",
    )
)
"""The statistics of a column that a scan gives."""
MOST_COLUMNS = 10_000
"""A column has a hundred rows."""
_BATCH_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class TableWords:
    """How commands name a table."""

    name: str | None
    """On the command line; None: that does not know the table's catalog, so commands are Python."""
    pin: Mapping[str, int | str]
    """The snapshot or ref that it was loaded with."""
    python: str
    """The call that loads it."""
    identifier: Sequence[str] | None
    """Namespace and name in its catalog; None for a bare metadata.json."""
    columns: Sequence[str] | None
    """The columns that are asked about, where not all are."""
    can_commit: bool

    def fill(self, fact: EngineFact) -> str:
        """Return the command of a fact for this table; empty where no statement can name what it was loaded with."""
        is_named = self.identifier and not self.pin and all(map(can_stand, self.identifier))
        if "{table}" in fact.command and not is_named:
            return ""
        parts, engine = self.identifier or (), fact.engine.lower()
        return fact.command.format(
            # Quoted whatever they are: which words an engine reserves, and which letters it takes, differs.
            table=quote_name(*parts, quote='"' if engine in ("presto", "trino") else "`"),
            load=self.python,
            export=self._export(engine),
            export_to_metastore=self._export(engine, to_metastore=True),
            compute_partitions=self.compute(partitions=True, with_column_stats=True),
        )

    def _export(self, engine: str, *, to_metastore: bool = False) -> str:
        if self.name is None:
            return f"print({self.python}.export({engine!r}{', metastore=metastore' if to_metastore else ''}))"
        return f"icestats export {self._source} --to {engine}" + (' --metastore "$METASTORE"' if to_metastore else "")

    def compute(self, *, list_ndv: Sequence[str] | None = None, **options: bool | str) -> str:
        """Return the command that computes with these options of `Table.compute`, and commits."""
        columns = self.columns if list_ndv is None else list_ndv
        listed = {} if list_ndv is None else {"list_ndv": list(list_ndv)}
        chosen = {} if columns is None else {"columns": list(columns)}
        if self.name is None or any("," in name or name != name.strip() for name in columns or ()):
            return f"{self.python}.compute({_arguments(options | chosen)}).commit({_arguments(listed)})"
        flags = "".join(f" {_option(name)}{'' if value is True else f' {value}'}" for name, value in options.items())
        lists = "".join(f" {_option(name)} {shlex.quote(','.join(names))}" for name, names in (listed | chosen).items())
        return f"icestats compute {self._source}{flags}{lists} --commit"

    @property
    def _source(self) -> str:
        pins = "".join(f" --{name} {shlex.quote(str(value))}" for name, value in self.pin.items())
        return shlex.quote(self.name or "") + pins


def _arguments(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items())


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


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
        There is no such engine, or there are too many columns.
    """
    if len(columns) > MOST_COLUMNS:
        raise CallError(
            f"coverage of {len(columns):,} columns: expected at most {MOST_COLUMNS:,}, choose some by columns="
        )
    chosen = _choose_engines(engines)
    blobs = tuple(reader.nearest_blobs())
    holdings = find_holdings(reader, blobs, columns)
    reading = _Reading(reader, blobs)
    by_statistic: dict[tuple[str, str], list[EngineFact]] = defaultdict(list)
    for fact in read_engine_facts():
        if fact.engine in chosen:
            by_statistic[fact.level, fact.statistic].append(fact)
    rows = (
        _build_row(
            fact, field, holdings.get((level, None if field is None else field.field_id, statistic), ()), reading, words
        )
        for level in sorted({level for level, _ in by_statistic}, key=lambda name: (name.startswith("partition"), name))
        for field in (columns if level.endswith("column") else (None,))
        for (own, statistic), facts in by_statistic.items()
        if own == level and _applies(reader, level, statistic, field)
        for fact in facts
    )
    # As Python's objects all rows of thousands of columns would take more than a gigabyte.
    parts = iter(lambda: list(islice(rows, _BATCH_ROWS)), [])
    return pa.concat_tables([COVERAGE.empty_table(), *(pa.Table.from_pylist(part, COVERAGE) for part in parts)])


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
    if level.startswith("partition") and not reader.source.metadata.has_partition_fields:
        return False
    if statistic == "num delete vectors":
        return reader.source.metadata.format_version >= 3
    if field is None:
        return True
    if statistic == "histogram":
        return can_distribute(field) is None
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
    is_unlisted = "Theta sketch" in fact.reads and best is not None and best.blob is not None and not best.blob.listed
    if best is None or best.commits_behind or is_unlisted:
        options = _find_options(fact, field) if fact.reads or fact.command else None
        if options is not None:
            listed = field is not None and field.type in ZONELESS_TIMES and "Theta sketch" in fact.reads
            names = [field.name] if field is not None and listed else None
            return words.compute(list_ndv=names, **options) if words.can_commit else None
    # What the kit gives an engine, it has to know; a statement of the engine's finds it out.
    if (best is None and "{table}" not in fact.command) or (_COMMITS in fact.command and not words.can_commit):
        return None
    return words.fill(fact) or None


def _find_options(fact: EngineFact, field: Field | None) -> dict[str, bool | str] | None:
    """Return the options of `Table.compute` that make a statistic; None where it makes none."""
    if field is None or fact.statistic not in _BY_SCAN or can_sketch(field) is not None:
        return None
    if fact.level == "table-column":
        return {"table": True}
    return {"table": True, "by": "partition"} if "partition sketches" in fact.reads else None


class _Reading:
    """Which places of a table each engine reads today."""

    def __init__(self, reader: SnapshotReader, blobs: Sequence[CommittedBlob]) -> None:
        self._metadata = reader.source.metadata
        self._reader = reader
        self._seen: dict[str, list[PuffinBlob]] = defaultdict(list)
        for found in blobs:
            if not found.blob.is_hidden:
                self._seen[found.statistics_path].append(found.blob)
        presto_file = find_presto_file(self._metadata, reader.snapshot)
        prestos = [] if presto_file is None else self._seen[presto_file.statistics_path]
        self._presto_refuses = find_presto_refusal(self._metadata, reader.schema, prestos)
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
        return found.listed and all(blob.type == HIVE_COLUMNS for blob in self._seen[found.statistics_path])

    def _find_trino_refusal(self) -> str:
        ages = count_ages(self._metadata, self._reader.snapshot)
        files = {file.snapshot_id: file for file in self._metadata.statistics}
        nearest = next((files[snapshot_id] for snapshot_id in ages if snapshot_id in files), None)
        for blob in () if nearest is None else nearest.blobs:
            stated = blob.properties.get("ndv")
            if stated is not None and parse_count(stated) is None:
                return f"Trino sees no statistics of the table at all: metadata.json lists the ndv {stated[:40]!r}"
        return ""
