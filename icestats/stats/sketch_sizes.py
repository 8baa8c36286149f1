"""The size of sketches by partition, estimated from metadata before any data is read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from icestats.answers.text import counted, render_bytes
from icestats.iceberg.metadata import Field
from icestats.iceberg.types import parse_type
from icestats.stats.kll_items import item_type_of
from icestats.stats.kll_layout import total_capacity

_SMALLER_SIZES = ((200, 10), (100, 9), (64, 8), (32, 6))
"""The sizes (k of KLL, lg_k of Theta) to suggest if the sketches would be too large."""

_TEXT_BYTES = 32
_DECIMAL_BYTES = 20
_ENTRY_BYTES = 120
_THETA_HEAD_BYTES = 28
_KLL_HEAD_BYTES = 64
"""Bytes of a stored sketch, including a checksum of 4 bytes."""


@dataclass(frozen=True, slots=True)
class SketchSize:
    """The size of the sketches of some columns by partition."""

    partition_count: int
    column_count: int
    size_bytes: int
    """An upper bound, but for strings, which count as 32 bytes each."""
    k: int
    lg_k: int

    def __str__(self) -> str:
        return (
            f"sketches of {counted(self.partition_count, 'partition')} x {counted(self.column_count, 'column')} "
            f"(lg_k {self.lg_k}, k {self.k}) will take up to {render_bytes(self.size_bytes)}"
        )


def estimate_size(fields: Sequence[Field], row_counts: Iterable[int], *, k: int, lg_k: int) -> SketchSize:
    """Return the size of the sketches of some columns by partition.

    Parameters
    ----------
    fields : sequence of Field
        The columns.
    row_counts : iterable of int
        The rows of each partition, from its data files. A sketch cannot hold more values.
    k, lg_k : int
        The sizes of KLL and Theta sketches.

    Examples
    --------
    >>> field = Field(1, "id", "long", required=False, top_level=True)
    >>> estimate_size([field], [1_000_000] * 100, k=200, lg_k=12).size_bytes // 100
    37984
    """
    counts = list(row_counts)
    size = sum(_column_bytes(field, rows, k, lg_k) for field in fields for rows in counts)
    return SketchSize(len(counts), len(fields), size, k, lg_k)


def offer_smaller(fields: Sequence[Field], row_counts: Sequence[int], size: SketchSize) -> str:
    """Return smaller sizes of sketches and the bytes that these take, for a message.

    Parameters
    ----------
    fields, row_counts
        As for `estimate_size`.
    size : SketchSize
        The size that was asked for.
    """
    asked = (size.k, size.lg_k)
    smaller = [pair for pair in _SMALLER_SIZES if pair[0] <= size.k and pair[1] <= size.lg_k and pair != asked]
    texts = [
        f"partition_lg_k={lg_k}, partition_k={k}: "
        f"{render_bytes(estimate_size(fields, row_counts, k=k, lg_k=lg_k).size_bytes)}"
        for k, lg_k in smaller
    ]
    return "; ".join(texts) or "none are smaller"


def _column_bytes(field: Field, row_count: int, k: int, lg_k: int) -> int:
    most = 2 if parse_type(field.type).name == "boolean" else row_count
    theta = _THETA_HEAD_BYTES + 8 * min(most, 1 << lg_k)
    item_type = item_type_of(field.type)
    if item_type is None:
        return _ENTRY_BYTES + theta
    levels = max(1, (row_count // k).bit_length())
    items = min(row_count, total_capacity(k, levels)) + 2
    item_bytes = {"string": _TEXT_BYTES + 4, "decimal": _DECIMAL_BYTES}.get(item_type, 8)
    return _ENTRY_BYTES + theta + _KLL_HEAD_BYTES + 4 * levels + items * item_bytes
