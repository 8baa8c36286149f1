"""Tables to plan over: columns of every type, whose schemas and partition specs change from commit to commit."""

from __future__ import annotations

import datetime as dt
import math
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg import expressions as e
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
    YearTransform,
)
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

import icestats
from icestats.iceberg.storage import local_path

FIELDS = {
    "flag": BooleanType(),
    "small": IntegerType(),
    "large": LongType(),
    "real": FloatType(),
    "number": DoubleType(),
    "amount": DecimalType(20, 2),
    "wide": DecimalType(38, 3),
    "day": DateType(),
    "moment": TimeType(),
    "at": TimestampType(),
    "at_zone": TimestamptzType(),
    "name": StringType(),
    "token": BinaryType(),
    "code": FixedType(4),
    "key": UUIDType(),
}
EPOCH = dt.datetime(1970, 1, 1)
# Few values, so that filters hit them; some beyond a string bound's 16 characters.
WORDS = ("", "a", "ab", "ab\uffff", "abc", "b", "ü", "\U0001f50b full", "abcdefghijklmnopq", "abcdefghijklmnopqr")
LONG_WORDS = ("l" * 300 + "a", "l" * 300 + "b", "l" * 256, "\U0010ffff" * 70, "\U0010ffff" * 64 + "z")
VALUES: dict[str, list[Any]] = {
    "flag": [True, False],
    "small": [-5, -1, 0, 1, 7, 100, 2**31 - 1],
    "large": [-(2**40), -1, 0, 3, 74, 2**40],
    "real": [-1.5, -0.0, 0.0, 0.1, 2.5, math.inf, math.nan],
    "number": [-1.5, -0.0, 0.0, 0.1, 2.5, -math.inf, math.nan],
    "amount": [Decimal("-1.25"), Decimal("0.00"), Decimal("0.01"), Decimal("123456789012345678.90")],
    "wide": [Decimal(f"{sign}{'9' * 35}.{end}") for sign in ("", "-") for end in ("999", "998")] + [Decimal("0.000")],
    "day": [dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2026, 9, 1), dt.date(2026, 9, 2), dt.date(1901, 2, 3)],
    "moment": [dt.time(0), dt.time(12, 30), dt.time(23, 59, 59, 999_999)],
    "at": [
        *(EPOCH - dt.timedelta(microseconds=1), EPOCH, dt.datetime(2026, 9, 1, 10), dt.datetime(2026, 9, 2)),
        *(dt.datetime(1968, 12, 31, 23, 59, 59, 999_999), dt.datetime(1901, 1, 1)),
    ],
    "name": list(WORDS),
    "token": [word.encode() for word in WORDS] + [b"\xff", b"\xff\xff"],
    "code": [b"abcd", b"abce", b"\xff\xff\xff\xff", b"\x00\x00\x00\x00"],
    "key": [bytes(16), b"\x7f" + bytes(15), b"\x80" + bytes(15), b"\xff" * 16, (b"\x80" + bytes(7)) * 2, b"\x7f" * 16],
}
VALUES["at_zone"] = [value.replace(tzinfo=dt.UTC) for value in VALUES["at"]]
PARTITIONS = [
    ("day", IdentityTransform()),
    ("name", TruncateTransform(2)),
    ("large", BucketTransform(4)),
    ("large", TruncateTransform(10)),
    ("at", DayTransform()),
    ("at_zone", HourTransform()),
    ("at", MonthTransform()),
    ("day", YearTransform()),
    ("name", IdentityTransform()),
    ("amount", TruncateTransform(50)),
    ("small", IdentityTransform()),
]


def build_rows(chance: random.Random, names: list[str], count: int, schema: pa.Schema) -> pa.Table:
    columns = {}
    for name in names:
        # Runs of few values, so that files differ in their bounds; some columns are all null or all NaN.
        fate = chance.random()
        pool = [None] if fate < 0.1 else chance.sample(VALUES[name], k=min(len(VALUES[name]), chance.choice((1, 2, 4))))
        nulls = 0.3 if 0.1 <= fate < 0.5 else 0.0
        columns[name] = [None if chance.random() < nulls else chance.choice(pool) for _ in range(count)]
    columns["place"] = [
        None if chance.random() < 0.2 else {"floor": chance.choice([None, 1, 5, 9])} for _ in range(count)
    ]
    fields = [field for field in schema if field.name in columns]
    return pa.table({field.name: pa.array(columns[field.name], field.type) for field in fields}, pa.schema(fields))


def build_table(folder: Path, seed: int) -> tuple[Any, Any]:
    chance = random.Random(seed)
    folder.mkdir()
    catalog = SqlCatalog("catalog", uri=f"sqlite:///{folder / 'c.db'}", warehouse=f"file://{folder}")
    catalog.create_namespace("db")
    fields = [NestedField(i, name, kind, required=False) for i, (name, kind) in enumerate(FIELDS.items(), 1)]
    fields.append(
        NestedField(90, "place", StructType(NestedField(91, "floor", IntegerType(), required=False)), required=False)
    )
    late = chance.choice(["number", "small", "token"])
    table = catalog.create_table("db.t", schema=Schema(*[f for f in fields if f.name != late]))
    for commit in range(6):
        if commit == 2:
            with table.update_schema() as update:
                update.add_column(late, FIELDS[late])
        if commit in (1, 4):
            evolve(table, chance)
        schema = table.schema().as_arrow()
        needed = {name for name, _ in PARTITIONS}
        names = [name for name in FIELDS if name in schema.names and (name in needed or chance.random() < 0.8)]
        table.append(build_rows(chance, names, chance.choice((1, 3, 12)), schema))
    if seed % 2:
        with table.update_schema() as update:
            update.rename_column("name", "title")
    table.delete(e.Or(e.EqualTo("small", 7), e.EqualTo("large", 74)))
    location = str(local_path(table.metadata_location))
    catalog.close()
    return icestats.load(location), table


def evolve(table: Any, chance: random.Random) -> None:
    # PyIceberg writes no spec that has two fields of one column.
    schema = table.schema()
    usable = [pair for pair in chance.sample(PARTITIONS, k=len(PARTITIONS)) if pair[0] in schema.as_arrow().names]
    kept = [field for field in table.spec().fields if chance.random() < 0.5]
    taken = {schema.find_column_name(field.source_id) for field in kept}
    with table.update_spec() as update:
        for old in table.spec().fields:
            if old not in kept:
                update.remove_field(old.name)
        for number, (name, transform) in enumerate(usable):
            if name not in taken and number < 3:
                taken.add(name)
                update.add_field(name, transform, f"p{len(table.specs())}_{number}")
