"""Tables to which anything may have happened, and the rows that each of their snapshots has."""

from __future__ import annotations

import contextlib
import copy
import datetime as dt
import json
import math
import random
import struct
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import ValidationException
from pyiceberg.io.pyarrow import _dataframe_to_data_files
from pyiceberg.manifest import DataFile
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
    YearTransform,
)
from pyiceberg.typedef import Record
from pyiceberg.types import DecimalType, DoubleType, FloatType, IntegerType, LongType, NestedField, StructType, UUIDType
from pyiceberg.utils.datetime import date_to_days, datetime_to_micros, time_to_micros

import icestats
from icestats.iceberg.metadata import Field
from icestats.iceberg.storage import local_path
from icestats.scan.scan_job import Sizes
from icestats.scan.scan_plan import find_partitions, prepare_scan, scan_here
from icestats.stats.column_accumulator import ColumnAccumulator
from icestats.stats.table_statistics import ColumnStatistics, ScannedPartitions, TableStatistics
from icestats.stats.table_statistics import PartitionKey as Key
from icestats.table.statistics import Statistics
from tests.planned_tables import FIELDS, LONG_WORDS, VALUES
from tests.written_deletes import delete_by_vector, delete_equal, delete_positions, list_data_files, replace_files

PLACE, NUMBER, FLOOR = (len(FIELDS) + place for place in (1, 2, 3))
"""The fields beside these: a struct, the number of each row, and what is in the struct."""
WHOLE = Sizes(2_000, 12, 2_000, 12)
"""Sketches that hold every value of so few rows."""
SMALL = Sizes(8, 4, 8, 4)
_PARTITION, _NAN_COUNTS, _LOWER, _UPPER = 3, 9, 10, 11
"""Where a data file of PyIceberg's has them."""
_TIMES = [YearTransform(), MonthTransform(), DayTransform()]
_TRANSFORMS: dict[str, list[Any]] = {
    "flag": [],
    "small": [BucketTransform(3), TruncateTransform(10)],
    "large": [BucketTransform(4), TruncateTransform(10)],
    "real": [],
    "number": [],
    "amount": [BucketTransform(3), TruncateTransform(50)],
    "wide": [BucketTransform(3)],
    "day": [BucketTransform(3), *_TIMES],
    "moment": [BucketTransform(3)],
    "at": [BucketTransform(3), *_TIMES, HourTransform()],
    "at_zone": [BucketTransform(3), *_TIMES, HourTransform()],
    "name": [BucketTransform(3), TruncateTransform(2)],
    "token": [BucketTransform(3), TruncateTransform(2)],
    "code": [BucketTransform(3)],
    "key": [BucketTransform(3)],
}
"""By column, beside identity."""
_WIDER = {IntegerType(): LongType(), FloatType(): DoubleType(), DecimalType(20, 2): DecimalType(37, 2)}
_REFUSED = (icestats.StatisticsMissingError, icestats.UnsupportedError, icestats.SparkUnavailableError)


@dataclass
class Row:
    """A row of a data file: what was written of each field, by its id, and what has deleted it."""

    values: dict[int, Any]
    by_position: bool = False
    by_value: bool = False

    @property
    def is_live(self) -> bool:
        return not (self.by_position or self.by_value)

    def read(self, column: NestedField) -> Any:
        return self.values.get(column.field_id, column.initial_default)


@dataclass
class Version:
    """A snapshot, the schema that it is read with, and the rows of its data files by path."""

    snapshot_id: int
    schema: Schema
    files: dict[str, list[Row]]

    def rows(self, deletes: str = "deduct") -> list[Row]:
        rows = [row for own in self.files.values() for row in own]
        if deletes == "ignore":
            return rows
        return [row for row in rows if row.is_live or (deletes == "positions" and not row.by_position)]

    def columns(self) -> dict[str, NestedField]:
        """The primitive columns by name."""
        found = {one.name: one for one in self.schema.fields if not isinstance(one.field_type, StructType)}
        return found | {"place.floor": self.schema.find_field("place.floor")}


@dataclass
class History:
    """A table and what has happened to it."""

    table: Table
    chance: random.Random
    sizes: Sizes = WHOLE
    files: dict[str, list[Row]] = field(default_factory=dict)
    pools: dict[int, list[Any]] = field(default_factory=dict)
    """By field id the values that are written."""
    with_vector: set[str] = field(default_factory=set)
    versions: dict[int, Version] = field(default_factory=dict)
    row_count: int = 0
    orders_uuids_signed: bool = False
    """Whether bounds of uuids are by signed halves, as Java has ordered them (apache/iceberg#14216)."""

    @classmethod
    def start(cls, catalog: Catalog, name: str, chance: random.Random, sizes: Sizes = WHOLE) -> History:
        fields = [NestedField(i, name, kind, required=False) for i, (name, kind) in enumerate(FIELDS.items(), 1)]
        floor = StructType(NestedField(FLOOR, "floor", IntegerType(), required=False))
        fields.append(NestedField(PLACE, "place", floor, required=False))
        fields.append(NestedField(NUMBER, "number_", LongType(), required=False))
        metrics = chance.choice(["truncate(16)", "truncate(16)", "truncate(3)", "full", "counts", "none"])
        properties = {"format-version": "2", "write.metadata.metrics.default": metrics}
        made = cls(catalog.create_table(name, Schema(*fields), properties=properties), chance, sizes)
        made.orders_uuids_signed = chance.random() < 0.4
        made.pools = {i: pool_of(name) for i, name in enumerate(FIELDS, 1)} | {FLOOR: [1, 5, 9]}
        if chance.random() < 0.8:
            made.evolve_spec()
        return made

    def load(self, **pin: Any) -> icestats.Table:
        return icestats.load(".".join(self.table.name()), catalog=dict(self.table.catalog.properties), **pin)

    def load_as_version_3(self, **pin: Any) -> icestats.Table:
        """Open a copy of the metadata of the version that has deletion vectors and defaults; PyIceberg writes none."""
        path = local_path(self.table.refresh().metadata_location)
        assert path is not None
        copied = path.with_name("v3.metadata.json")
        copied.write_text(json.dumps(json.loads(path.read_text()) | {"format-version": 3, "next-row-id": 1_000}))
        return icestats.load(str(copied), **pin)

    def current(self) -> Version:
        snapshot = self.table.refresh().current_snapshot()
        assert snapshot is not None
        return Version(snapshot.snapshot_id, self.table.schema(), self.files)

    def run(self, step: str) -> None:
        """Take a step; remember the rows of its snapshot, and forget files that are gone."""
        before = self.table.refresh().current_snapshot()
        getattr(self, step)()
        after = self.table.refresh().current_snapshot()
        if after is None or after == before:
            return
        schema = self.table.schemas()[after.schema_id or 0]
        self.versions[after.snapshot_id] = Version(after.snapshot_id, schema, copy.deepcopy(self.files))

    def forget(self) -> None:
        """Forget files that are gone."""
        self.files = {file.file_path: self.files[file.file_path] for file in list_data_files(self.table)}

    def draw_rows(self, *counts: int) -> list[Row]:
        """Draw rows of few values, so that files differ in their bounds; some columns are all null."""
        few: dict[int, list[Any]] = {}
        for column in (*self.table.schema().fields, self.table.schema().find_field(FLOOR)):
            if column.field_id in self.pools:
                pool, fate = self.pools[column.field_id], self.chance.random()
                chosen = self.chance.sample(pool, k=min(len(pool), self.chance.choice((1, 2, 4))))
                few[column.field_id] = [None] if fate < 0.1 else chosen + [None] * (fate > 0.6)
        rows = []
        for _ in range(self.chance.choice(counts)):
            self.row_count += 1
            values = {field_id: self.chance.choice(chosen) for field_id, chosen in few.items()}
            values |= {NUMBER: self.row_count, PLACE: values[FLOOR] is not None or self.chance.random() < 0.5}
            rows.append(Row(values))
        return rows

    def to_arrow(self, rows: Sequence[Row]) -> pa.Table:
        kinds, columns = self.table.schema().as_arrow(), []
        for column in self.table.schema().fields:
            values = [row.read(column) for row in rows]
            if column.field_id == PLACE:
                values = [{"floor": row.values[FLOOR]} if row.values[PLACE] else None for row in rows]
            columns.append(pa.array(values, kinds.field(column.name).type))
        return pa.table(columns, kinds)

    def write(self, rows: Sequence[Row]) -> list[DataFile]:
        """Write a data file for each partition, with counts of NaN, and by NaN: PyIceberg has neither."""
        spec, schema = self.table.spec(), self.table.schema()
        by_partition: dict[str, tuple[list[Any], list[Row]]] = {}
        for row in rows:
            # What is written is what the schema gives now.
            now = {column.field_id: row.read(column) for column in schema.fields if column.field_id != PLACE}
            key = [_transform(one, schema, now[one.source_id]) for one in spec.fields]
            by_partition.setdefault(repr(key), (key, []))[1].append(Row(row.values | now))
        floating = [one for one in schema.fields if isinstance(one.field_type, FloatType | DoubleType)]
        specs = {"default_spec_id": -1, "partition_specs": [PartitionSpec(spec_id=-1)]}
        metadata, files = self.table.metadata.model_copy(update=specs), []
        for key, own in by_partition.values():
            (file,) = _dataframe_to_data_files(table_metadata=metadata, df=self.to_arrow(own), io=self.table.io)
            file._data[_PARTITION], file.spec_id = Record(*key), spec.spec_id
            counted = [column for column in floating if column.field_id in (file.value_counts or {})]
            nan_counts = {column.field_id: sum(is_nan(row.read(column)) for row in own) for column in counted}
            file._data[_NAN_COUNTS] = nan_counts
            if self.orders_uuids_signed:
                self._sign_bounds(file, own)
            self.files[file.file_path] = own
            files.append(file)
        return files

    def _sign_bounds(self, file: DataFile, rows: Sequence[Row]) -> None:
        for column in self.table.schema().fields:
            if column.field_type == UUIDType() and column.field_id in (file.lower_bounds or {}):
                keys = [key for row in rows if (key := row.read(column)) is not None]
                file._data[_LOWER][column.field_id] = min(keys, key=sign_halves)
                file._data[_UPPER][column.field_id] = max(keys, key=sign_halves)

    def choose_files(self) -> list[DataFile]:
        """Return the data files of one partition."""
        files = sorted(list_data_files(self.table), key=lambda file: self.files[file.file_path][0].values[NUMBER])
        if not files:
            return []
        one = self.chance.choice(files)
        # As text, -0.0 is not 0.0, and NaN is NaN.
        return [file for file in files if (file.spec_id, repr(file.partition)) == (one.spec_id, repr(one.partition))]

    def choose_deletable(self) -> list[DataFile]:
        """Return the data files of one partition, none of a spec whose column is gone: PyIceberg writes no deletes."""
        known = self.table.schema().field_ids
        return [
            file
            for file in self.choose_files()
            if all(one.source_id in known for one in self.table.specs()[file.spec_id].fields)
        ]

    def append(self) -> None:
        self.add(self.draw_rows(1, 3, 12, 25))

    def add(self, rows: Sequence[Row]) -> None:
        with self.table.transaction() as transaction, transaction.update_snapshot().fast_append() as change:
            for file in self.write(rows):
                change.append_data_file(file)

    def overwrite(self) -> None:
        if files := self.choose_files():
            rows = self.draw_rows(1, 3, 12) if self.chance.random() < 0.6 else []
            self._replace(files, rows, changes_rows=True)

    def compact(self) -> None:
        """Replace the files of a partition by their live rows, in the table's current spec."""
        self.replace(self.choose_files())

    def replace(self, files: Sequence[DataFile]) -> None:
        if rows := [row for file in files for row in self.files[file.file_path] if row.is_live]:
            self._replace(files, rows)

    def _replace(self, files: Sequence[DataFile], rows: Sequence[Row], *, changes_rows: bool = False) -> None:
        # PyIceberg does not find a file in a partition of infinity or NaN.
        with contextlib.suppress(ValidationException, ValueError):
            replace_files(self.table, files, self.write(rows), changes_rows=changes_rows)
        self.forget()

    def delete_positions(self) -> None:
        files = [file for file in self.choose_deletable() if file.file_path not in self.with_vector][:2]
        positions = [(file, self.chance.randrange(file.record_count)) for file in files for _ in range(3)]
        if positions:
            self.delete_at(positions)

    def delete_at(self, positions: Sequence[tuple[DataFile, int]]) -> None:
        delete_positions(self.table, positions)
        for file, position in positions:
            self.files[file.file_path][position].by_position = True

    def delete_by_vector(self) -> None:
        files = [file for file in self.choose_deletable() if file.file_path not in self.with_vector]
        if not files:
            return
        rows, share = self.files[files[0].file_path], self.chance.choice((0.1, 0.5, 1.0))
        self.with_vector.add(files[0].file_path)
        for place, row in enumerate(rows):
            row.by_position |= self.chance.random() < share or not place
        # A vector stands for all position deletes of its file.
        delete_by_vector(self.table, files[0], [place for place, row in enumerate(rows) if row.by_position])

    def delete_by_value(self) -> None:
        """Delete by value in one partition; by a spec that has none, in all."""
        files, schema = self.choose_deletable(), self.table.schema()
        names = ("small", "name", "day", "key", "amount", "number_")
        column = self.chance.choice([one for one in schema.fields if one.name in names])
        rows = [row for file in files for row in self.files[file.file_path]]
        drawn = [row.read(column) for row in self.chance.sample(rows, k=min(len(rows), 2))]
        # Some values of no row, too.
        drawn += self.chance.sample(self.pools.get(column.field_id, [0, -1]), k=self.chance.choice((0, 0, 1)))
        if files and (values := {value for value in drawn if value is not None}):
            self.delete_values(files, column.name, values)

    def delete_values(self, files: Sequence[DataFile], name: str, values: Collection[Any]) -> None:
        column, kind = self.table.schema().find_field(name), self.table.schema().as_arrow().field(name).type
        delete_equal(self.table, pa.table({name: pa.array(list(values), kind)}), files[0])
        for path in [file.file_path for file in files] if len(files[0].partition) else self.files:
            for row in self.files[path]:
                row.by_value |= row.read(column) in values

    def evolve_schema(self) -> None:
        """Drop, rename or widen a column, or add one: maybe of a dropped one's name, maybe with a default."""
        schema, chance = self.table.schema(), self.chance
        plain = [one for one in schema.fields if one.field_id not in (PLACE, NUMBER)]
        one, kind, fate = chance.choice(plain), chance.choice(sorted(FIELDS)), chance.random()
        narrow = [column for column in plain if column.field_type in _WIDER]
        used = {partitioned.source_id for partitioned in self.table.spec().fields}
        with self.table.update_schema() as update:
            if fate < 0.3 and one.field_id not in used and len(plain) > 1:
                update.delete_column(one.name)
            elif fate < 0.45:
                update.rename_column(one.name, f"{one.name}_{len(self.table.schemas())}")
            elif fate < 0.7 and narrow:
                one = chance.choice(narrow)
                update.update_column(one.name, _WIDER[one.field_type])
                more = {"int": VALUES["large"], "float": VALUES["number"]}.get(str(one.field_type), [])
                self.pools[one.field_id] = [*self.pools[one.field_id], *more]
            else:
                free = [name for name in FIELDS if name not in schema.column_names] or [f"late_{schema.schema_id}"]
                has_default = chance.random() < 0.4 and kind not in ("key", "token", "code")
                finite = [value for value in VALUES[kind] if not isinstance(value, float) or math.isfinite(value)]
                default = chance.choice(finite) if has_default else None
                update.add_column(chance.choice(free), FIELDS[kind], default_value=default)
        for column in self.table.schema().fields:
            if column.field_id not in (PLACE, NUMBER):
                self.pools.setdefault(column.field_id, pool_of(kind))

    def evolve_spec(self) -> None:
        spec, chance = self.table.spec(), self.chance
        kept = [one for one in spec.fields if chance.random() < 0.5]
        taken = {one.source_id for one in kept}
        usable = [
            column
            for column in self.table.schema().fields
            if column.field_id not in taken and column.field_type == FIELDS.get(column.name)
        ]
        # Most transforms are of times.
        times = [column for column in usable if column.name in ("day", "at", "at_zone")]
        usable = times if times and chance.random() < 0.4 else usable
        with self.table.update_spec() as update:
            for one in spec.fields:
                if one not in kept:
                    update.remove_field(one.name)
            for place, column in enumerate(chance.sample(usable, k=min(len(usable), chance.choice((0, 1, 1, 2))))):
                transform = chance.choice([IdentityTransform(), *_TRANSFORMS[column.name]])
                update.add_field(column.name, transform, f"p{len(self.table.specs())}_{place}")

    def sketch(self, *, is_of_all: bool = False) -> None:
        """Commit statistics of some columns or all, of a scan, or of the known rows where Spark alone can scan."""
        opened = self.load()
        if opened.snapshot is None:
            return
        names = [one.name for one in opened.schema.top_level if one.is_primitive]
        names = (
            names if is_of_all or self.chance.random() < 0.5 else self.chance.sample(names, k=max(1, len(names) // 2))
        )
        is_partitioned = any(spec.fields for spec in opened.metadata.specs.values())
        by_partition = is_partitioned and (is_of_all or self.chance.random() < 0.7)
        plan = prepare_scan(opened._source, opened.snapshot, opened.schema, names, by_partition=by_partition)
        if self.current().rows():
            found = self._count(opened, names, by_partition) if plan.fallback else scan_here(plan, self.sizes)
            Statistics(opened._source, found).commit()

    def _count(self, opened: icestats.Table, names: Sequence[str], by_partition: bool) -> TableStatistics:
        snapshot, rows = opened.snapshot, self.current().rows()
        assert snapshot is not None
        fields = opened.schema.select([opened.schema.find(name).field_id for name in names])
        columns = {one.name: self._accumulate(one, rows) for one in fields}
        files, of_partitions = opened.files(), None
        keys = find_partitions(files.filter(pa.compute.equal(files["content"], "data")), opened.metadata)
        if by_partition:
            by_key: dict[Key, list[Row]] = {}
            for path, own in self.files.items():
                if live := [row for row in own if row.is_live]:
                    by_key.setdefault(keys[path], []).extend(live)
            each = {one.name: {key: self._accumulate(one, own) for key, own in by_key.items()} for one in fields}
            of_partitions = ScannedPartitions(each, dict.fromkeys(each, (self.sizes.k, self.sizes.lg_k)))
        ids = snapshot.snapshot_id, snapshot.sequence_number
        return TableStatistics(*ids, len(rows), 0, 0, columns, {}, by_partition=of_partitions)

    def _accumulate(self, column: Field, rows: Iterable[Row]) -> ColumnStatistics:
        accumulator = ColumnAccumulator(column, k=self.sizes.k, lg_k=self.sizes.lg_k)
        one, kind = self.table.schema().find_field(column.field_id), self.table.schema().as_arrow().field(column.name)
        accumulator.update(pa.array([row.read(one) for row in rows], kind.type))
        return accumulator.result()

    def sketch_partitions(self) -> None:
        has_columns = self.chance.random() < 0.7
        self._commit(lambda opened: opened.compute(partitions=True, with_column_stats=has_columns))

    def sketch_manifests(self) -> None:
        self._commit(lambda opened: opened.compute(manifests=True))

    def refresh(self) -> None:
        self._commit(lambda opened: opened.refresh_statistics())

    def _commit(self, make: Callable[[icestats.Table], Statistics]) -> None:
        """Commit what can be made without Spark."""
        with contextlib.suppress(*_REFUSED):
            make(self.load()).commit()


STEPS = (
    *("append", "append", "overwrite", "compact", "delete_positions", "delete_by_vector", "delete_by_value"),
    *("evolve_schema", "evolve_schema", "evolve_spec", "sketch", "sketch", "sketch_partitions", "sketch_manifests"),
    "refresh",
)


def pool_of(name: str) -> list[Any]:
    """Return values of a type by the name of its column, as they are when they have been stored."""
    pool = [*VALUES[name], *(LONG_WORDS if name == "name" else ())]
    return [float(np.float32(value)) for value in pool] if name == "real" else pool


def sign_halves(key: bytes) -> tuple[int, ...]:
    return struct.unpack(">qq", key)


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _transform(partitioned: PartitionField, schema: Schema, value: Any) -> Any:
    """Return the partition value of a column's value: numbers of times, as PyIceberg takes them."""
    if isinstance(value, dt.datetime):
        value = datetime_to_micros(value.replace(tzinfo=None))
    elif isinstance(value, dt.date):
        value = date_to_days(value)
    elif isinstance(value, dt.time):
        value = time_to_micros(value)
    return partitioned.transform.transform(schema.find_field(partitioned.source_id).field_type)(value)
