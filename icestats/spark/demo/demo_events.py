"""The demo table `events`: messages of devices, streamed in by the hour, some of them days late."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from icestats.spark.demo.demo_recipe import DemoRecipe

if TYPE_CHECKING:
    import pyarrow as pa

    Floats = np.ndarray[Any, np.dtype[np.float64]]
    Longs = np.ndarray[Any, np.dtype[np.int64]]

DAY_COUNT = 10
COMMITS_A_DAY = 3
ROWS_BY_WINDOW = (25_000, 42_000, 40_000)
DEVICE_COUNT = 100_000

_FIRST_DAY_US = int(datetime(2026, 9, 1, tzinfo=UTC).timestamp()) * 1_000_000
_HOUR_US = 3_600_000_000
_SEED = 20_260_901
_LATE_ROWS = 220
_LATE_DEVICES = 5
# Devices of bucket 1, the bucket of device 74: their late files are in its partitions and hold none of its rows.
_NEIGHBOURS_OF_74 = (641, 1864, 20_049, 3390, 20_232)
_DAY_WEIGHTS = (1.0, 0.9, 1.0, 1.1, 0.8, 0.7, 1.2, 1.3, 1.0, 1.1)

_EVENT_TYPES = {"heartbeat": 0.55, "view": 0.25, "click": 0.12, "purchase": 0.05, "error": 0.03}
_COUNTRIES = {"US": 0.32, "IN": 0.18, "DE": 0.12, "BR": 0.1, "JP": 0.08, "FR": 0.07, "GB": 0.06, "MX": 0.04, "KE": 0.03}
_VERSIONS = {"4.1.0": 0.5, "4.1.2": 0.3, "4.2.0": 0.15, "4.2.0-rc1": 0.05}
_PHRASES = (
    "battery low", "door opened", "door closed", "temperature above the limit", "signal lost", "signal found",
    "firmware updated", "restarted after a power cut", "payment accepted", "payment refused", "cart abandoned",
    "Akku fast leer", "Tür geöffnet", "Übertragung gestört", "température élevée", "réseau indisponible",
    "batería baja", "señal perdida", "sinal recuperado após a falha", "電池残量が少ない", "温度センサーの異常",
    "низкий заряд", "दरवाज़ा खुला", "🔋 12 %", "⚠ sensor", "☔ moisture", "Straße gesperrt, Umleitung über die Brücke",
)  # fmt: skip

_DDL = """
CREATE TABLE {table} (
  event_id BIGINT NOT NULL COMMENT 'Counts up in the order in which events came in',
  event_time TIMESTAMP COMMENT 'When the device says that it happened',
  device_id BIGINT COMMENT 'The device, 1 to 100,000: small numbers send far more',
  event_type STRING COMMENT 'heartbeat, view, click, purchase or error',
  price DOUBLE COMMENT 'Price in dollars, lognormal: a long tail, some NaN (a broken sensor) and some nulls',
  quantity INT COMMENT 'Pieces, 1 and up',
  amount DECIMAL(9, 2) COMMENT 'Price times quantity in dollars; null where there is no price',
  country STRING COMMENT 'Two-letter country code; a few nulls',
  message STRING COMMENT 'What the device reports: free text in several languages, sometimes empty or null')
USING iceberg
PARTITIONED BY (days(event_time), bucket(64, device_id))
COMMENT 'Made-up events of devices: 30 commits of 8 hours each, with events that came in up to 3 days late'
TBLPROPERTIES (
  'format-version' = '2',
  'write.format.default' = 'parquet',
  'write.parquet.compression-codec' = 'zstd',
  'write.delete.mode' = 'merge-on-read')
"""
_ORDER = "ALTER TABLE {table} WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY event_time"
_ADD_COLUMN = """
ALTER TABLE {table} ADD COLUMN app_version STRING
COMMENT 'Version of the app on the device: sent from the sixth day on, unknown before'
"""
_WITHDRAW = """
DELETE FROM {table} WHERE device_id = 13
AND event_time >= TIMESTAMP '2026-09-03 00:00:00Z' AND event_time < TIMESTAMP '2026-09-06 00:00:00Z'
"""


def build_commit(index: int) -> pa.Table:
    """Build the rows of one commit of `events`.

    Parameters
    ----------
    index : int
        The commit, from 0: three a day, eight hours each.

    Returns
    -------
    pyarrow.Table
        One row an event, ordered by `event_id`; most of the commit's own eight hours, some of up to three days
        before. The columns are those of the table, `app_version` among them from the sixth day on.
    """
    import pyarrow as pa

    day, window = divmod(index, COMMITS_A_DAY)
    rng = np.random.default_rng((_SEED, index))
    count = _row_count(index)
    device_id, event_time = _place(rng, count, day, window)
    price, price_missing = _prices(rng, count)
    quantity = 1 + np.floor(np.log1p(-rng.random(count)) / np.log(0.55)).astype(np.int32)
    amount = pa.array(np.round(np.minimum(price * quantity, 9_999_999.0), 2), mask=price_missing | np.isnan(price))
    columns = {
        "event_id": pa.array(np.arange(count) + sum(_row_count(earlier) for earlier in range(index)) + 1),
        "event_time": pa.array(event_time, pa.timestamp("us", tz="UTC")),
        "device_id": pa.array(device_id),
        "event_type": _pick(rng, count, _EVENT_TYPES),
        "price": pa.array(price, mask=price_missing),
        "quantity": pa.array(quantity),
        "amount": amount.cast(pa.decimal128(9, 2)),
        "country": _pick(rng, count, _COUNTRIES, null_share=0.004),
        "message": _messages(rng, count),
    }
    if index >= DAY_COUNT * COMMITS_A_DAY // 2:
        columns["app_version"] = _pick(rng, count, _VERSIONS, null_share=0.02)
    schema = [pa.field(name, values.type, nullable=name != "event_id") for name, values in columns.items()]
    return pa.Table.from_arrays(list(columns.values()), schema=pa.schema(schema))


def _row_count(index: int) -> int:
    day, window = divmod(index, COMMITS_A_DAY)
    return round(ROWS_BY_WINDOW[window] * _DAY_WEIGHTS[day])


def _place(rng: np.random.Generator, count: int, day: int, window: int) -> tuple[Longs, Longs]:
    """Give device and time of each event: the late ones are the backlog of devices that were offline."""
    shares = np.cumsum(1 / np.arange(1, DEVICE_COUNT + 1))
    device_id = np.searchsorted(shares, rng.random(count) * shares[-1]) + 1
    length_us = 24 // COMMITS_A_DAY * _HOUR_US
    start_us = _FIRST_DAY_US + day * 24 * _HOUR_US + window * length_us
    event_time = start_us + np.sort((rng.random(count) * length_us).astype(np.int64))
    for nth in range(_LATE_DEVICES):
        days_late = 1 + (nth + window) % 3
        if days_late > day:
            continue
        late = slice(count * (nth + 1) // (_LATE_DEVICES + 1), count * (nth + 1) // (_LATE_DEVICES + 1) + _LATE_ROWS)
        backlog_us = start_us - days_late * 24 * _HOUR_US + (rng.random(_LATE_ROWS) * 3 * _HOUR_US).astype(np.int64)
        device_id[late] = _late_device(rng, nth, day * COMMITS_A_DAY + window)
        event_time[late] = np.sort(backlog_us)
    return device_id, event_time


def _late_device(rng: np.random.Generator, nth: int, index: int) -> int:
    if nth == 0 and index % 4 == 0:
        return 74
    if nth == 1:
        return _NEIGHBOURS_OF_74[index % len(_NEIGHBOURS_OF_74)]
    return 1 + int(rng.random() * DEVICE_COUNT)


def _prices(rng: np.random.Generator, count: int) -> tuple[Floats, np.ndarray[Any, np.dtype[np.bool_]]]:
    price = np.asarray(np.round(np.exp(3.0 + 1.1 * rng.standard_normal(count)), 2), dtype=np.float64)
    fate = rng.random(count)
    price[fate < 0.003] = np.nan
    return price, fate > 0.98


def _pick(rng: np.random.Generator, count: int, shares: dict[str, float], null_share: float = 0.0) -> pa.Array:
    import pyarrow as pa

    chosen = np.searchsorted(np.cumsum(list(shares.values())), rng.random(count)).clip(max=len(shares) - 1)
    return pa.array(list(shares)).take(pa.array(chosen, mask=rng.random(count) < null_share))


def _messages(rng: np.random.Generator, count: int) -> pa.Array:
    """Join one to four phrases and, for some, a number; 1 % are empty and 3 % null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    fate, phrases, nothing = rng.random(count), pa.array(_PHRASES), pa.scalar(None, pa.string())
    parts = []
    for chance in (1.0, 0.4, 0.2, 0.1):
        chosen = (rng.random(count) * len(_PHRASES)).astype(np.int64)
        parts.append(phrases.take(pa.array(chosen, mask=rng.random(count) >= chance)))
    digits = pa.array((rng.random(count) * 100_000).astype(np.int64)).cast("string")
    parts.append(pc.if_else(pa.array(fate > 0.7), pc.binary_join_element_wise("#", digits, ""), nothing))
    joined = pc.binary_join_element_wise(*parts, "; ", null_handling="skip")
    joined = pc.if_else(pa.array(fate < 0.01), "", joined)
    return pc.if_else(pa.array((fate >= 0.01) & (fate < 0.04)), nothing, joined)


def _appends() -> Iterator[pa.Table]:
    return (build_commit(index) for index in range(DAY_COUNT * COMMITS_A_DAY))


EVENTS = DemoRecipe(
    name="events",
    version=1,
    ddl=_DDL,
    append_count=DAY_COUNT * COMMITS_A_DAY,
    appends=_appends,
    cluster_by="{catalog}.system.bucket(64, device_id)",
    statements={
        0: (_ORDER,),
        DAY_COUNT * COMMITS_A_DAY // 2: (_ADD_COLUMN,),
        DAY_COUNT * COMMITS_A_DAY: (_WITHDRAW,),
    },
)
