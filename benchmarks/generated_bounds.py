"""Lower and upper bounds of all types, drawn at random, as single values behind their lengths."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.avro_rows import Bytes, Longs, Piece, beside, padded, varint

LONGEST_BOUND = 16
"""In bytes; bounds of strings are cut there."""
FIXED_WIDTH = {
    "boolean": "u1",
    "int": "<i4",
    "date": "<i4",
    "float": "<f4",
    "double": "<f8",
    "long": "<i8",
    "timestamp": "<i8",
    "timestamptz": "<i8",
}
"""How single values of a type are laid out (spec, Appendix D)."""


def draw_bounds(type_text: str, rng: np.random.Generator, rows: int, epoch_day: int) -> tuple[Piece, Piece]:
    if type_text == "string":
        letters = rng.integers(97, 123, (2, rows, LONGEST_BOUND)).astype(np.uint8)
        letters[np.arange(LONGEST_BOUND) >= rng.integers(4, 40, (2, rows, 1))] = 0
        low, high = np.sort(letters.view(f"S{LONGEST_BOUND}")[..., 0], axis=0)
        return build_single_values(type_text, low), build_single_values(type_text, high)
    if type_text in ("float", "double"):
        low = rng.normal(0, 1000, rows)
        return build_single_values(type_text, low), build_single_values(type_text, low + rng.exponential(1000, rows))
    first, spread = {
        "boolean": (0, 2),
        "date": (epoch_day - 400, 400),
        "int": (-(10**9), 10**9),
        "decimal(9, 2)": (-(10**8), 10**8),
    }.get(
        type_text, ((epoch_day * 86_400_000_000, 10**10) if type_text.startswith("timestamp") else (-(10**12), 10**12))
    )
    low = rng.integers(first, first + spread, rows)
    high = np.maximum(low, rng.integers(first, first + spread, rows) + (spread if spread > 2 else 0))
    return build_single_values(type_text, low), build_single_values(type_text, high)


def build_single_values(type_text: str, values: Any) -> Piece:
    """Single values as bytes behind their length (spec, Appendix D), all of the same width."""
    rows = len(values)
    if type_text in FIXED_WIDTH:
        data: Bytes = values.astype(FIXED_WIDTH[type_text]).view(np.uint8).reshape(rows, -1)
        lengths = np.full(rows, data.shape[1])
    elif type_text == "string":
        data, lengths = values.view(np.uint8).reshape(rows, -1), np.char.str_len(values).astype(np.int64)
    else:
        data, lengths = _unscaled(values, 5 if type_text == "decimal(38, 6)" else 0)
    cells: Bytes = np.zeros((rows, LONGEST_BOUND), np.uint8)
    cells[:, : data.shape[1]] = data
    return beside(varint(lengths), padded(cells, lengths))


def _unscaled(values: Longs, zeros: int) -> tuple[Bytes, Longs]:
    """Decimals: the fewest big-endian bytes, and behind them some zeros, which make the value larger."""
    data = values.astype(">i8").view(np.uint8).reshape(-1, 8)
    limits = 1 << np.arange(7, 63, 8)
    needed = 1 + ((values[:, None] < -limits) | (values[:, None] >= limits)).sum(1)
    places = np.arange(8 + zeros) + (8 - needed)[:, None]
    return np.where(places < 8, np.take_along_axis(data, np.minimum(places, 7), 1), 0).astype(np.uint8), needed + zeros
