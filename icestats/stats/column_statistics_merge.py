"""Statistics of a column that stand on storage and those of rows that came later -> those of all of them."""

from __future__ import annotations

import math
import struct
from typing import Any

from icestats.iceberg.types import parse_type
from icestats.stats.column_accumulator import ColumnStatistics
from icestats.stats.kll import KllSketch
from icestats.stats.theta import ThetaSketch

_BYTES = frozenset({"string", "binary", "fixed", "uuid", "boolean"})
_DEFAULT_LG_K = 12


def merge_column_statistics(base: ColumnStatistics, added: ColumnStatistics, *, lg_k: int) -> ColumnStatistics:
    """Merge the statistics of two sets of rows that have no row in common.

    Parameters
    ----------
    base : ColumnStatistics
        Of the rows that were there.
    added : ColumnStatistics
        Of the rows that came later, of the same field and type, with a KLL sketch of the same k.
    lg_k : int
        Base-2 logarithm of the merged Theta sketch's entries.

    Returns
    -------
    ColumnStatistics
        Counts, smallest and largest value and the longest value are exact; the average length is exact as long as all
        lengths together stay below 2^53 bytes; the sketches are within their own error.

    Raises
    ------
    ValueError
        The two cannot be merged.
    """
    if (base.field_id, base.type, base.item_type) != (added.field_id, added.type, added.item_type):
        raise ValueError(f"statistics of field {added.field_id} ({added.type}) and of {base.field_id} ({base.type})")
    return ColumnStatistics(
        field_id=base.field_id,
        type=base.type,
        value_count=base.value_count + added.value_count,
        null_value_count=base.null_value_count + added.null_value_count,
        nan_value_count=base.nan_value_count + added.nan_value_count,
        min_value=_extreme(base.type, base.min_value, added.min_value, smallest=True),
        max_value=_extreme(base.type, base.max_value, added.max_value, smallest=False),
        avg_length=_average_length(base, added),
        max_length=max((n for n in (base.max_length, added.max_length) if n is not None), default=None),
        theta=_merge_theta(base.theta, added.theta, lg_k),
        kll=_merge_kll(base, added),
        item_type=base.item_type,
    )


def find_kll_k(column: ColumnStatistics) -> int | None:
    """Return the size of a column's KLL sketch, None where its type has none."""
    if column.kll is None or column.item_type is None:
        return None
    return KllSketch.from_bytes(column.item_type, column.kll).k


def find_theta_lg_k(column: ColumnStatistics) -> int:
    """Return a size at which a Theta sketch of more rows is as good as this one: 12, or as large as this one is.

    A compact Theta sketch does not say its size; one that is not exact any more holds about 2^lg_k hashes.
    """
    sketch = ThetaSketch.from_bytes(column.theta)
    if len(sketch.hashes) == 0:
        return _DEFAULT_LG_K
    size = math.log2(len(sketch.hashes))
    return max(_DEFAULT_LG_K, math.ceil(size) if sketch.is_exact else round(size))


def _merge_theta(base: bytes, added: bytes, lg_k: int) -> bytes:
    merged = ThetaSketch(lg_k)
    for data in (base, added):
        merged.merge(ThetaSketch.from_bytes(data))
    return merged.to_bytes()


def _merge_kll(base: ColumnStatistics, added: ColumnStatistics) -> bytes | None:
    if base.kll is None or added.kll is None or base.item_type is None:
        return None
    merged, addition = (KllSketch.from_bytes(base.item_type, kll) for kll in (base.kll, added.kll))
    if merged.k != addition.k:
        raise ValueError(f"KLL sketches of field {base.field_id} of k {merged.k} and {addition.k}")
    merged.merge(addition)
    return merged.to_bytes()


def _average_length(base: ColumnStatistics, added: ColumnStatistics) -> float | None:
    total = filled = 0
    for column in (base, added):
        if column.avg_length is not None:
            values = column.value_count - column.null_value_count
            total += round(column.avg_length * values)
            filled += values
    return total / filled if filled else None


def _extreme(type_text: str, first: bytes | None, second: bytes | None, *, smallest: bool) -> bytes | None:
    values = [value for value in (first, second) if value is not None]
    if len(values) < 2:
        return values[0] if values else None
    return (min if smallest else max)(values, key=lambda value: _order(type_text, value))


def _order(type_text: str, value: bytes) -> Any:
    # The order of Iceberg's bounds, on single-value bytes (spec, Appendix D).
    name = parse_type(type_text).name
    if name in _BYTES:
        return value
    if name in ("float", "double"):
        number = struct.unpack("<f" if len(value) == 4 else "<d", value)[0]
        return number, math.copysign(1.0, number)
    return int.from_bytes(value, "big" if name == "decimal" else "little", signed=True)
