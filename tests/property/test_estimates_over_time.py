"""Bounds hold whatever has happened to a table: appends, dropped partitions, row-level deletes, compactions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IntegerType, LongType, NestedField

import icestats
from icestats.stats.column_accumulator import ColumnAccumulator
from icestats.stats.table_statistics import PartitionKey, ScannedPartitions, TableStatistics
from icestats.table.statistics import Statistics
from tests.written_deletes import compact, delete_equal, delete_positions, list_data_files

SCHEMA = Schema(NestedField(1, "day", IntegerType()), NestedField(2, "v", LongType()), NestedField(3, "w", LongType()))
BY_DAY = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "day"))
ARROW = pa.schema([("day", pa.int32()), ("v", pa.int64()), ("w", pa.int64())])
DAYS = (1, 2, 3)
NUMBERS = count()

Row = tuple[int, int | None, int]


@dataclass
class Known:
    """A table, and the live rows of each of its data files by path."""

    table: Table
    files: dict[str, list[Row | None]] = field(default_factory=dict)
    """None: a deleted row."""

    def live(self) -> list[Row]:
        return [row for rows in self.files.values() for row in rows if row is not None]

    def keep_files(self, rows: Sequence[Row] = ()) -> None:
        """Forget files that are gone; what is new has these rows, in their order within each day."""
        self.table.refresh()
        paths = {file.file_path: file.partition for file in list_data_files(self.table)}
        self.files = {path: rows for path, rows in self.files.items() if path in paths}
        for path in paths.keys() - self.files.keys():
            day = paths[path][0] if len(paths[path]) else None
            self.files[path] = [row for row in rows if day in (None, row[0])]

    def load(self) -> icestats.Table:
        return icestats.load(".".join(self.table.name()), catalog=dict(self.table.catalog.properties))


def append(known: Known, chance: Any) -> None:
    days = chance.choice(DAYS, chance.integers(1, 3), replace=False)
    low = int(chance.integers(0, 60))
    values = {day: chance.integers(low, low + 20, chance.integers(1, 30)).tolist() for day in days.tolist()}
    rows = [(day, None if value % 7 == 0 else value, value // 4) for day, own in values.items() for value in own]
    known.table.append(to_arrow(rows))
    known.keep_files(rows)


def to_arrow(rows: Sequence[Row]) -> pa.Table:
    return pa.table([list(column) for column in zip(*rows, strict=True)], ARROW)


def drop_day(known: Known, chance: Any) -> None:
    day = int(chance.choice(DAYS))
    if known.table.spec().fields and any(row[0] == day for row in known.live()):
        gone = [file for file in list_data_files(known.table) if file.partition[0] == day]
        with known.table.transaction() as transaction, transaction.update_snapshot().overwrite() as overwrite:
            for file in gone:
                overwrite.delete_data_file(file)
        known.keep_files()


def delete_some(known: Known, chance: Any) -> None:
    files = list_data_files(known.table)
    if not files:
        return
    partition = files[int(chance.integers(len(files)))].partition
    own = [file for file in files if file.partition == partition][: int(chance.integers(1, 3))]
    positions = [(file, int(chance.integers(file.record_count))) for file in own for _ in range(3)]
    delete_positions(known.table, positions)
    for file, position in positions:
        known.files[file.file_path][position] = None
    known.table.refresh()


def delete_by_value(known: Known, chance: Any) -> None:
    files = list_data_files(known.table)
    if not files:
        return
    partition, value = files[int(chance.integers(len(files)))].partition, int(chance.integers(0, 20))
    delete_equal(known.table, pa.table({"w": pa.array([value], pa.int64())}), partition)
    for file in files:
        if file.partition == partition:
            rows = known.files[file.file_path]
            rows[:] = [None if row is not None and row[2] == value else row for row in rows]
    known.table.refresh()


def rewrite(known: Known, chance: Any) -> None:
    files = list_data_files(known.table)
    own = [file for file in files if file.partition == files[0].partition]
    rows = [row for file in own for row in known.files[file.file_path] if row is not None]
    if rows:
        compact(known.table, own, to_arrow(rows))
        known.keep_files(rows)


def sketch(known: Known, chance: Any) -> None:
    """Commit sketches of the rows that are live now."""
    rows, opened = known.live(), known.load()
    if opened.snapshot is None or not rows:
        return
    days = sorted({row[0] for row in rows})
    columns, by_day = {}, {}
    for column in opened.schema.columns:
        columns[column.name] = accumulate(column, rows)
        if known.table.spec().fields:
            by_day[column.name] = {
                PartitionKey(known.table.spec().spec_id, ((1000, day.to_bytes(4, "little")),)): accumulate(
                    column, [row for row in rows if row[0] == day]
                )
                for day in days
            }
    found = TableStatistics(
        opened.snapshot.snapshot_id, opened.snapshot.sequence_number, len(rows), 0, 0, columns, {},
        by_partition=ScannedPartitions(2_000, 12, by_day) if by_day else None,
    )  # fmt: skip
    Statistics(opened._source, found).commit()
    known.table.refresh()


def accumulate(column: Any, rows: Sequence[Row]) -> Any:
    accumulator = ColumnAccumulator(column, k=2_000, lg_k=12)
    place = ARROW.get_field_index(column.name)
    accumulator.update(pa.array([row[place] for row in rows], ARROW.field(place).type))
    return accumulator.result()


STEPS = {one.__name__: one for one in (append, drop_day, delete_some, delete_by_value, rewrite, sketch)}
FILTERS = {
    "v > 40": lambda day, v, w: v is not None and v > 40,
    "v = 30": lambda day, v, w: v == 30,
    "v is null": lambda day, v, w: v is None,
    "v != 30": lambda day, v, w: v is not None and v != 30,
    "day = 2": lambda day, v, w: day == 2,
    "day >= 2 and v < 33": lambda day, v, w: day >= 2 and v is not None and v < 33,
    "v < 20 or w > 9": lambda day, v, w: (v is not None and v < 20) or w > 9,
    "v > 25 and w < 12": lambda day, v, w: v is not None and v > 25 and w < 12,
}


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlCatalog]:
    folder: Path = tmp_path_factory.mktemp("over_time")
    made = SqlCatalog("catalog", type="sql", uri=f"sqlite:///{folder / 'c.db'}", warehouse=f"file://{folder / 'w'}")
    made.create_namespace("db")
    yield made
    made.close()


@settings(max_examples=40)
@given(
    st.sampled_from([BY_DAY, UNPARTITIONED_PARTITION_SPEC]),
    st.lists(st.sampled_from(sorted(STEPS)), min_size=3, max_size=8),
    st.integers(0, 2**32 - 1),
)
def test_bounds_hold_whatever_has_happened_since_the_sketches(
    catalog: SqlCatalog, spec: PartitionSpec, steps: list[str], seed: int
) -> None:
    """Bounds of every source hold the truth, as whole numbers, and `combined` lies within all that are certain."""
    chance = np.random.default_rng(seed)
    name = f"db.t{next(NUMBERS)}"
    known = Known(catalog.create_table(name, SCHEMA, partition_spec=spec, properties={"format-version": "2"}))
    for step in ["append", *steps]:
        STEPS[step](known, chance)
    table, rows = known.load(), known.live()
    for row_filter, holds in FILTERS.items():
        truth = sum(holds(*row) for row in rows)
        estimates = table.estimate(row_filter)
        said = f"{row_filter}: {truth} rows after {steps}\n{estimates!r}"
        for one in estimates:
            assert one.rows_lower is not None, said
            assert one.rows_upper is not None, said
            # Sketches of so few values hold each of them: their bounds are as certain as the others.
            assert one.rows_lower <= truth <= one.rows_upper, f"{one.source}, {said}"
            assert one.rows_lower.is_integer(), said
            assert one.rows_upper.is_integer(), said
            assert one.rows is None or one.rows_lower <= one.rows <= one.rows_upper, f"{one.source}, {said}"
        combined = estimates["combined"]
        certain = [one for one in estimates if one.bound.startswith("certain")]
        assert combined.rows_lower >= max(one.rows_lower for one in certain), said
        assert combined.rows_upper <= min(one.rows_upper for one in certain), said
