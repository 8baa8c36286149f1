"""Bounds hold whatever has happened to a table: appends, dropped partitions, row-level deletes, compactions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
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

Values = tuple[int, int | None, int]


@dataclass
class Row:
    """A row of a data file, and what has deleted it."""

    values: Values
    by_position: bool = False
    by_value: bool = False

    @property
    def is_live(self) -> bool:
        return not (self.by_position or self.by_value)


@dataclass
class Known:
    """A table, and the rows of each of its live data files by path."""

    table: Table
    files: dict[str, tuple[PartitionKey, list[Row]]] = field(default_factory=dict)

    def rows(self, key: PartitionKey | None = None) -> list[Row]:
        return [row for own, rows in self.files.values() for row in rows if key in (None, own)]

    def live(self, key: PartitionKey | None = None) -> list[Values]:
        return [row.values for row in self.rows(key) if row.is_live]

    def keep_files(self, rows: Sequence[Values] = ()) -> None:
        """Forget files that are gone; what is new has these rows, in their order within each day."""
        files = {file.file_path: file for file in list_data_files(self.table)}
        self.files = {path: known for path, known in self.files.items() if path in files}
        for path in files.keys() - self.files.keys():
            day = files[path].partition[0] if len(files[path].partition) else None
            values = () if day is None else ((1000, day.to_bytes(4, "little")),)
            own = [Row(row) for row in rows if day in (None, row[0])]
            self.files[path] = PartitionKey(files[path].spec_id, values), own

    def choose_files(self, chance: Any) -> list[Any]:
        """Return the data files of one partition."""
        files = list_data_files(self.table)
        chosen = self.files[files[int(chance.integers(len(files)))].file_path][0] if files else None
        return [file for file in files if self.files[file.file_path][0] == chosen]

    def load(self) -> icestats.Table:
        return icestats.load(".".join(self.table.name()), catalog=dict(self.table.catalog.properties))


def append(known: Known, chance: Any) -> None:
    days = chance.choice(DAYS, chance.integers(1, 3), replace=False)
    low = int(chance.integers(0, 60))
    values = {day: chance.integers(low, low + 20, chance.integers(1, 30)).tolist() for day in days.tolist()}
    rows = [(day, None if value % 7 == 0 else value, value // 4) for day, own in values.items() for value in own]
    known.table.append(to_arrow(rows))
    known.keep_files(rows)


def to_arrow(rows: Sequence[Values]) -> pa.Table:
    return pa.table([list(column) for column in zip(*rows, strict=True)], ARROW)


def drop_partition(known: Known, chance: Any) -> None:
    with known.table.transaction() as transaction, transaction.update_snapshot().overwrite() as overwrite:
        for file in known.choose_files(chance):
            overwrite.delete_data_file(file)
    known.keep_files()


def delete_some(known: Known, chance: Any) -> None:
    files = known.choose_files(chance)[: int(chance.integers(1, 3))]
    positions = [(file, int(chance.integers(file.record_count))) for file in files for _ in range(3)]
    if positions:
        delete_positions(known.table, positions)
    for file, position in positions:
        known.files[file.file_path][1][position].by_position = True


def delete_by_value(known: Known, chance: Any) -> None:
    """Delete by value in one partition; by a spec that has none, in all."""
    files, value = known.choose_files(chance), int(chance.integers(0, 20))
    if not files:
        return
    delete_equal(known.table, pa.table({"w": pa.array([value], pa.int64())}), files[0])
    key = known.files[files[0].file_path][0]
    for row in known.rows(key if key.values else None):
        row.by_value |= row.values[2] == value


def rewrite(known: Known, chance: Any) -> None:
    """Compact a partition, into the table's current spec."""
    files = known.choose_files(chance)
    rows = [row.values for file in files for row in known.files[file.file_path][1] if row.is_live]
    if rows:
        compact(known.table, files, to_arrow(rows))
        known.keep_files(rows)


def evolve(known: Known, chance: Any) -> None:
    with known.table.update_spec() as update:
        if known.table.spec().fields:
            update.remove_field("day")
        else:
            update.add_field("day", IdentityTransform(), "day")


def sketch(known: Known, chance: Any) -> None:
    """Commit sketches of the rows that are live now."""
    rows, opened = known.live(), known.load()
    if opened.snapshot is None or not rows:
        return
    keys = {key for key, _ in known.files.values() if known.live(key)}
    columns = {column.name: accumulate(column, rows) for column in opened.schema.columns}
    by_key = {
        column.name: {key: accumulate(column, known.live(key)) for key in keys} for column in opened.schema.columns
    }
    snapshot, by_partition = opened.snapshot, ScannedPartitions(by_key, dict.fromkeys(by_key, (2_000, 12)))
    found = TableStatistics(
        snapshot.snapshot_id, snapshot.sequence_number, len(rows), 0, 0, columns, {}, by_partition=by_partition
    )
    Statistics(opened._source, found).commit()
    known.table.refresh()


def accumulate(column: Any, rows: Sequence[Values]) -> Any:
    accumulator = ColumnAccumulator(column, k=2_000, lg_k=12)
    place = ARROW.get_field_index(column.name)
    accumulator.update(pa.array([row[place] for row in rows], ARROW.field(place).type))
    return accumulator.result()


STEPS = {one.__name__: one for one in (append, drop_partition, delete_some, delete_by_value, rewrite, evolve, sketch)}
Filters = dict[str, Callable[[int, int | None, int], bool]]
FILTERS: Filters = {
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


@settings(max_examples=30)
@example(BY_DAY, ["evolve", "append", "sketch", "rewrite", "rewrite"], "deduct", 0)
@example(BY_DAY, ["append", "evolve", "append", "sketch", "delete_by_value", "delete_by_value"], "deduct", 2)
@example(BY_DAY, ["append", "delete_some", "delete_by_value", "sketch"], "ignore", 0)
@example(BY_DAY, ["append", "delete_by_value", "delete_by_value"], "deduct", 4)
@given(
    st.sampled_from([BY_DAY, UNPARTITIONED_PARTITION_SPEC]),
    st.lists(st.sampled_from(sorted(STEPS)), min_size=3, max_size=8),
    st.sampled_from(["deduct", "deduct", "positions", "ignore"]),
    st.integers(0, 2**32 - 1),
)
def test_bounds_hold_whatever_has_happened_since_the_sketches(
    catalog: SqlCatalog, spec: PartitionSpec, steps: list[str], deletes: str, seed: int
) -> None:
    """Bounds of every source hold the truth, as whole numbers, and `combined` lies within all that are certain."""
    chance = np.random.default_rng(seed)
    name = f"db.t{next(NUMBERS)}"
    known = Known(catalog.create_table(name, SCHEMA, partition_spec=spec, properties={"format-version": "2"}))
    for step in ["append", *steps]:
        STEPS[step](known, chance)
    check_bounds(known, deletes, f"after {steps}")


def check_bounds(
    known: Known, deletes: str, when: str, filters: Filters = FILTERS, sources: list[str] | None = None
) -> None:
    table = known.load()
    rows = [row for row in known.rows() if deletes == "ignore" or not row.by_position]
    rows = [row for row in rows if deletes != "deduct" or row.is_live]
    for row_filter, holds in filters.items():
        truth = sum(holds(*row.values) for row in rows)
        estimates = table.estimate(row_filter, deletes=deletes, sources=sources)
        said = f"{row_filter}: {truth} rows {when}, deletes {deletes}\n{estimates!r}"
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


@pytest.mark.parametrize(
    ("by_position", "by_value", "compacted"),
    [
        ([], [(1, (7,)), (2, tuple(range(5_000, 5_050)))], None),
        ([(2, range(10))] * 3, [(1, tuple(range(10)))], None),
        ([(2, range(40))] * 2 + [(1, range(2, 5))], [(1, (1,))], None),
        ([(2, range(20))], [(1, tuple(range(10)))], 2),
    ],
    ids=["by value, most of no row", "by position, each thrice", "by position, some twice", "of files that are gone"],
)
def test_bounds_hold_where_deletes_are_recorded_that_delete_nothing(
    catalog: SqlCatalog,
    by_position: list[tuple[int, range]],
    by_value: list[tuple[int, tuple[int, ...]]],
    compacted: int | None,
) -> None:
    """Sketches then count so many rows that equality deletes seem to delete none; 1 to 10 of day 1 they do delete."""
    properties = {"format-version": "2"}
    known = Known(catalog.create_table(f"db.t{next(NUMBERS)}", SCHEMA, partition_spec=BY_DAY, properties=properties))
    for day, first in ((1, 0), (2, 1_000)):
        rows = [(day, 5 if day == 1 else 70, first + number) for number in range(100)]
        known.table.append(to_arrow(rows))
        known.keep_files(rows)
    of_day = {file.partition[0]: file for file in list_data_files(known.table)}
    for day, positions in by_position:
        delete_positions(known.table, [(of_day[day], position) for position in positions])
        for position in positions:
            known.files[of_day[day].file_path][1][position].by_position = True
    if compacted is not None:
        kept = [row.values for row in known.files[of_day[compacted].file_path][1] if row.is_live]
        compact(known.table, [of_day[compacted]], to_arrow(kept))
        known.keep_files(kept)
    for day, numbers in by_value:
        delete_equal(known.table, pa.table({"w": pa.array(numbers, pa.int64())}), of_day[day])
        for row in known.rows():
            row.by_value |= row.values[0] == day and row.values[2] in numbers
    sketch(known, None)
    filters: Filters = {"day = 1": lambda day, v, w: day == 1, "v = 5": lambda day, v, w: v == 5}
    for sources in (None, ["combined"]):
        check_bounds(known, "deduct", f"of {by_position}, {by_value}", FILTERS | filters, sources)
