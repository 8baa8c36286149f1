"""How the statistics of a table stand: by column and kind, for one engine or all, from coverage and committed blobs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from icestats.answers.text import counted
from icestats.estimation.coverage import name_state
from icestats.estimation.engine_statistics import list_engines
from icestats.iceberg.metadata import Field, Snapshot, TableMetadata
from icestats.read.puffin.statistics_files import (
    COLUMN_STATISTICS,
    FREQUENT_ITEMS,
    JOINT_STATISTICS,
    KLL,
    MANIFEST_STATISTICS,
    PARTITION_SKETCHES,
    THETA,
)
from icestats_widgets.reading.compute_request import find_blob_ages, find_partition_file_age

OWN = "icestats"
"""The kit's name among the engines: it reads whatever a table has."""
_WORST = ("missing", "ignored", "behind", "out of reach", "fresh")

BLOBS = {
    THETA: "distinct values (Theta)",
    KLL: "distribution (KLL)",
    COLUMN_STATISTICS: "column statistics",
    FREQUENT_ITEMS: "common values",
    JOINT_STATISTICS: "columns together",
    PARTITION_SKETCHES: "sketches by partition",
    MANIFEST_STATISTICS: "manifest statistics",
}


@dataclass(frozen=True, slots=True)
class Kind:
    """Statistics that stand in one cell, and what computes them."""

    title: str
    level: str
    """Of `engine_statistics.LEVELS`; empty: icestats alone uses it."""
    statistics: frozenset[str]
    """Of `engine_statistics.LEVELS`; empty: all of the level."""
    blob: str
    """The type of blob that has them; empty: none has."""
    computed: str
    """The kind of `ComputeRequest` that makes them; empty: none does."""
    head: str = ""
    """The head of its column in the matrix."""

    def has(self, row: Mapping[str, Any]) -> bool:
        """Whether a row of `schemas.COVERAGE` is about it."""
        return row["level"] == self.level and (not self.statistics or row["statistic"] in self.statistics)


_SCANNED = ("min value", "max value", "null count", "nulls fraction", "NaN count", "avg length", "max length")
OF_COLUMNS = {
    "ndv": Kind(BLOBS[THETA], "table-column", frozenset({"NDV"}), THETA, "table", "NDV (Theta)"),
    "histogram": Kind(BLOBS[KLL], "table-column", frozenset({"histogram"}), KLL, "table", "shape (KLL)"),
    "columns": Kind(
        BLOBS[COLUMN_STATISTICS], "table-column", frozenset(_SCANNED), COLUMN_STATISTICS, "table", "min, max, nulls"
    ),
    "frequent_items": Kind(BLOBS[FREQUENT_ITEMS], "", frozenset(), FREQUENT_ITEMS, "table", "common values"),
    "by_partition": Kind(
        BLOBS[PARTITION_SKETCHES], "partition-column", frozenset({"NDV", "histogram"}), PARTITION_SKETCHES,
        "by_partition", "by partition",
    ),
}  # fmt: skip
OF_TABLE = {
    "rows": Kind("row counts", "table", frozenset(), "", ""),
    "partitions": Kind("partition statistics file", "partition", frozenset(), "", "partitions"),
    "manifests": Kind(BLOBS[MANIFEST_STATISTICS], "manifest", frozenset(), MANIFEST_STATISTICS, "manifests"),
}
KINDS = {**OF_COLUMNS, **OF_TABLE}


@dataclass(frozen=True, slots=True)
class Standing:
    """How statistics stand for who asks."""

    word: str
    """`fresh`, `behind`, `missing`, `ignored`, `not used`, or `out of reach`: missing, and no command helps."""
    commits_behind: int = 0
    ignored_by: tuple[str, ...] = ()
    """Engines that would use them, and do not read where they are."""
    user_count: int = 0
    """Engines that use them, those that ignore where they are included; the kit itself is none of them."""
    is_gap: bool = False
    """Whether computing helps."""

    @property
    def text(self) -> str:
        """What a cell says."""
        if self.word == "not used":
            return "–"
        return f"{counted(self.commits_behind, 'commit')} behind" if self.word == "behind" else self.word

    @property
    def is_lacking(self) -> bool:
        """Whether who asks does not get them as they are now."""
        return self.word in ("missing", "ignored", "behind")

    @property
    def rank(self) -> int | None:
        """What cells are sorted by: the worst is the smallest; None: not used."""
        if self.word not in _WORST:
            return None
        return _WORST.index(self.word) * 1_000_000 - min(self.commits_behind, 999_999)

    @property
    def tone(self) -> str:
        """The class of a cell."""
        if self.word == "fresh" and self.user_count and self.user_count == len(self.ignored_by):
            return "fair"
        return {"fresh": "good", "behind": "fair", "missing": "bad", "ignored": "fair"}.get(self.word, "quiet")


class Matrix:
    """How the statistics of a table stand.

    Parameters
    ----------
    coverage : pyarrow.Table
        `schemas.COVERAGE`.
    sketches : pyarrow.Table or None
        `schemas.SKETCHES`; None where statistics files cannot be read.
    metadata : TableMetadata
        The table.
    snapshot : Snapshot or None
        The snapshot that ages are counted to.
    """

    def __init__(
        self, coverage: pa.Table, sketches: pa.Table | None, metadata: TableMetadata, snapshot: Snapshot | None
    ) -> None:
        self._rows: dict[int | None, list[dict[str, Any]]] = defaultdict(list)
        for row in coverage.to_pylist():
            self._rows[row["field_id"]].append(row)
        self._has_commands = any(row["command"] for rows in self._rows.values() for row in rows)
        self._blobs = {} if sketches is None else find_blob_ages(sketches)
        self._partition_file = find_partition_file_age(metadata, snapshot)

    def _rows_of(self, field: Field | None) -> list[dict[str, Any]]:
        return self._rows.get(None if field is None else field.field_id, [])

    def find_rows(self, field: Field | None, kind: str = "", engine: str = "") -> list[dict[str, Any]]:
        """Return the rows of `schemas.COVERAGE` of a column or the table, of one kind, for one engine; "": all."""
        return [
            row
            for row in self._rows_of(field)
            if (not kind or KINDS[kind].has(row)) and (not engine or row["engine"] == engine) and row["uses"]
        ]

    def find(self, kind: str, field: Field | None, engine: str) -> Standing:
        """Return how a kind of statistics of a column stands for an engine, or for all of them.

        Parameters
        ----------
        kind : str
            Of `KINDS`.
        field : Field or None
            The column; None: the table's own.
        engine : str
            Empty: whether the table has it, and who ignores it.
        """
        rows = self.find_rows(field, kind)
        own = self._find_own(kind, field, [row for row in rows if row["engine"] == OWN])
        if not engine:
            others = {row["engine"] for row in rows if row["engine"] != OWN and name_state(row) == "ignored"}
            ignored = () if own.word == "missing" else tuple(name for name in list_engines() if name in others)
            users = {row["engine"] for row in rows} - {OWN}
            return Standing(own.word, own.commits_behind, ignored, len(users), own.is_gap)
        if engine == OWN and not KINDS[kind].level:
            return own
        asked = [row for row in rows if row["engine"] == engine]
        found = _worst(asked)
        if kind == "partitions" and found.word == "fresh" and self._partition_file is None:
            # It has its figures from the manifests.
            return Standing("not used")
        commands = [row["command"] for row in asked if row["command"]]
        helps = any(command.startswith("icestats compute") or ").compute(" in command for command in commands)
        if found.word == "missing" and not commands and self._has_commands:
            return Standing("out of reach")
        is_gap = bool(KINDS[kind].computed) and found.word in ("missing", "behind") and helps
        return Standing(found.word, found.commits_behind, is_gap=is_gap)

    def _find_own(self, kind: str, field: Field | None, rows: Sequence[Mapping[str, Any]]) -> Standing:
        """Return whether the table has a kind of statistics, wherever that is."""
        of = KINDS[kind]
        if kind == "rows":
            return _worst(rows)
        if kind == "partitions":
            return _age(self._partition_file) if rows else Standing("not used")
        if kind != "manifests" and not (rows if of.level else self._rows_of(field)):
            return Standing("not used")
        blob = self._blobs.get((of.blob, "" if field is None else field.name))
        return _age(None if blob is None else blob["commits_behind"])


def _age(commits_behind: int | None) -> Standing:
    if commits_behind is None:
        return Standing("missing", is_gap=True)
    return Standing("behind", commits_behind, is_gap=True) if commits_behind else Standing("fresh")


def _worst(rows: Iterable[Mapping[str, Any]]) -> Standing:
    words, commits = {"not used"}, 0
    for row in rows:
        state = name_state(row)
        words.add("behind" if state.endswith("behind") else state)
        commits = max(commits, row["commits_behind"] or 0)
    word = next((word for word in _WORST if word in words), "not used")
    return Standing(word, commits if word == "behind" else 0)
