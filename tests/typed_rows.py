"""Rows of a table that has a column of every type: values at the edges of each, NaN and zeros of both signs."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
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
    StringType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)

ROWS = 12_000
TYPES = {
    "boolean": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "wide_long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "zeros": DoubleType(),
    "short_decimal": DecimalType(9, 2),
    "long_decimal": DecimalType(18, 3),
    "wide_decimal": DecimalType(38, 5),
    "date": DateType(),
    "timestamp": TimestampType(),
    "timestamptz": TimestamptzType(),
    "string": StringType(),
    "fixed": FixedType(6),
    "binary": BinaryType(),
    "uuid": UUIDType(),
}


def floats(values: np.ndarray) -> np.ndarray:
    """Some NaN, and zeros of both signs."""
    values[::17], values[1::17], values[2::17] = np.nan, -0.0, 0.0
    return values


def build_values() -> dict[str, Any]:
    random = np.random.default_rng(11)
    seconds = random.integers(-(10**9), 2 * 10**9, ROWS)
    moments = [dt.datetime(1970, 1, 1) + dt.timedelta(seconds=int(s), microseconds=int(s) % 999_983) for s in seconds]
    longs = random.integers(-(2**53) + 1, 2**53, ROWS)
    words = ["", "na\u00efve", "\u65e5\u672c", "\U0001f600 smile", "plain", "z" * 300]
    return {
        "boolean": (longs % 3 == 0).tolist(),
        "int": random.integers(-(2**31), 2**31, ROWS),
        "long": longs,
        "wide_long": 2**53 + 1 + 2 * random.integers(0, 2**40, ROWS),
        "float": floats(random.normal(0, 1e3, ROWS)).astype(np.float32),
        "double": floats(random.lognormal(3, 2, ROWS) - 5),
        "zeros": np.resize([0.0, -0.0, np.nan], ROWS),
        "short_decimal": [Decimal(int(v)).scaleb(-2) for v in random.integers(-(10**9) + 1, 10**9, ROWS)],
        "long_decimal": [Decimal(int(v)).scaleb(-3) for v in random.integers(-(10**18) + 1, 10**18, ROWS)],
        "wide_decimal": [Decimal(int(v) * 10**17 + 7).scaleb(-5) for v in random.integers(-(2**62), 2**62, ROWS)],
        "date": [moment.date() for moment in moments],
        "timestamp": moments,
        "timestamptz": [moment.replace(tzinfo=dt.UTC) for moment in moments],
        "string": [words[i % 6] if i % 2 else f"{words[i % 6]}{int(v)}" for i, v in enumerate(longs)],
        "fixed": [int(v).to_bytes(6, "big") for v in random.integers(0, 2**47, ROWS)],
        "binary": [b"" if i % 9 == 0 else bytes([i % 256]) * (i % 50) for i in range(ROWS)],
        "uuid": [uuid.UUID(int=int(v) << 64 | int(v)).bytes for v in random.integers(0, 2**62, ROWS)],
    }
