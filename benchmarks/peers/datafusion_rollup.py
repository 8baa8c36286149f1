"""DataFusion: Arrow batches of all six maps from the data manifests; NumPy sums, least lower and greatest upper bounds.

Over the whole table only: DataFusion does not say which manifest a row is of.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.peers.datafusion_sums import add_sums, link_data_manifests, new_totals, read_maps, sums
from benchmarks.peers.reporting import BOUNDS, MAPS, Sums, argument, report
from benchmarks.peers.table_location import column_types

_WIDTHS = {
    "int": "<i4", "date": "<i4", "float": "<f4", "long": "<i8", "double": "<f8", "timestamp": "<i8",
    "timestamptz": "<i8", "boolean": "|u1",
}  # fmt: skip
Best = dict[tuple[str, int], tuple[Any, int]]
"""Map, field id -> the extreme as it compares, and the number of files that have a bound."""


def read(location: str, folder: str) -> tuple[np.ndarray, Best]:
    types = column_types(location)
    totals, best = new_totals(location), Best()
    for columns in read_maps((*MAPS, *BOUNDS), folder):
        add_sums(totals, columns[: len(MAPS)])
        for name, column, pick in zip(BOUNDS, columns[len(MAPS) :], (min, max), strict=True):
            entries = column.flatten()
            for field_id, values in split_by_field(entries.field(0).to_numpy(), entries.field(1)):
                add_extreme(best, (name, field_id), types[field_id], values, pick)
    return totals, best


def split_by_field(field_ids: np.ndarray, values: pa.BinaryArray) -> Iterator[tuple[int, pa.BinaryArray]]:
    order = np.argsort(field_ids.astype(np.int16), kind="stable")
    ordered, taken = field_ids[order], values.take(pa.array(order))
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)])
    for start, end in zip(starts, [*starts[1:], len(ordered)], strict=True):
        yield int(ordered[start]), taken.slice(start, end - start)


def add_extreme(best: Best, key: tuple[str, int], kind: str, values: pa.BinaryArray, pick: Callable[..., Any]) -> None:
    if kind in _WIDTHS:
        _, offsets, data = values.buffers()
        ends = np.frombuffer(offsets, np.int32)[values.offset :]
        numbers = np.frombuffer(data, np.uint8)[ends[0] : ends[len(values)]].view(_WIDTHS[kind])
        found = (np.min if pick is min else np.max)(numbers)
    else:
        ordered = widen_decimals(values) if kind.startswith("decimal") else values
        found = pc.min_max(ordered)["min" if pick is min else "max"].as_py()
    known, count = best.get(key, (found, 0))
    best[key] = (pick(known, found), count + len(values))


def widen_decimals(values: pa.BinaryArray) -> pa.FixedSizeBinaryArray:
    """Return big-endian numbers of any length as 16 bytes that order like them."""
    _, offsets, data = values.buffers()
    ends = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1].astype(np.int64)
    found, lengths = np.frombuffer(data, np.uint8), np.diff(ends)
    places = ends[1:, None] - 16 + np.arange(16)
    fill = np.where(found[ends[:-1]] >= 128, 255, 0).astype(np.uint8)
    wide = np.where(np.arange(16) >= 16 - lengths[:, None], found[np.maximum(places, 0)], fill[:, None])
    wide[:, 0] ^= 0x80
    return pa.Array.from_buffers(pa.binary(16), len(values), [None, pa.py_buffer(np.ascontiguousarray(wide))])


def all_figures(location: str, result: tuple[np.ndarray, Best]) -> Sums:
    types = column_types(location)
    figures: dict[str, Any] = {**sums(result[0]), **{name: {} for name in BOUNDS}}
    for (name, field_id), (value, count) in result[1].items():
        figures[name][field_id] = (encode(types[field_id], value).hex(), count)
    return figures


def encode(kind: str, value: Any) -> bytes:
    """Return a value as Iceberg's single-value serialization has it."""
    if kind in _WIDTHS:
        return np.array([value], _WIDTHS[kind]).tobytes()
    if kind.startswith("decimal"):
        number = int.from_bytes(value, "big") - (1 << 127)
        return number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True)
    return bytes(value)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        link_data_manifests(argument(), folder)
        report(lambda: read(argument(), folder), lambda result: all_figures(argument(), result))


if __name__ == "__main__":
    main()
