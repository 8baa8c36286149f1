"""Rows that tests add to `small_table`, whose own have the ids 0 to 199."""

from __future__ import annotations

import pyarrow as pa


def more_rows() -> pa.Table:
    at = pa.array([1_756_684_800_000_000], pa.timestamp("us", tz="UTC"))
    return pa.table({"id": pa.array([900], pa.int64()), "at": at, "price": [2.5], "name": ["zz"]})


def numbers(ids: list[int]) -> pa.Table:
    at = pa.array([1_756_684_800_000_000 + i * 3_600_000_000 for i in ids], pa.timestamp("us", tz="UTC"))
    prices = pa.array([None if i % 7 == 0 else i / 4 for i in ids], pa.float64())
    return pa.table({"id": pa.array(ids, pa.int64()), "at": at, "price": prices, "name": [f"n{i}" for i in ids]})
