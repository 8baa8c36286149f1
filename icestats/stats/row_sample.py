"""A uniform sample of rows, a column at a time: samples of columns that were scanned together are of the same rows.

Each row of a scan gets a number as if by chance, one for all of its columns, and the same in each scan of the same
files; kept are the rows with the smallest. In the payload of frequent items a sample is

    {"row-count": 10, "seed": 7, "values": ["<hex>", null, ...]}

`row-count` counts all rows. `values` are in the order of their numbers, single-value serialised (Iceberg spec,
Appendix D), texts, binaries and fixed cut to `SAMPLED_LENGTH` bytes; null is null. The numbers are not written: to
merge two samples, they are drawn anew from the seeds, which all columns of a scan have in common.

Source: Cohen, Kaplan, "Summarizing data using bottom-k sketches", PODC 2007.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

SAMPLED_ROWS: Final = 4_096
"""How many rows a sample has, where its column's values are not too long."""
SAMPLED_LENGTH: Final = 64
"""Longer texts, binaries and fixed are cut to so many bytes."""
_MOST_BYTES = 128 << 10

_Numbers = npt.NDArray[np.float64]


def draw_numbers(row_count: int, seed: int) -> _Numbers:
    """Return a number for each row of a batch, between 0 and 1: the same for the same seed."""
    return np.random.default_rng(seed).random(row_count)


class RowSample:
    """The values of one column in the rows that are kept.

    Parameters
    ----------
    limit : float
        Rows with larger numbers are left out; of what has left some out, they are not known.

    Examples
    --------
    >>> sample = RowSample()
    >>> numbers = draw_numbers(10_000, seed=7)
    >>> places = sample.choose(numbers)
    >>> sample.update(10_000, numbers[places], pa.array([b"x"] * len(places), pa.binary()))
    >>> sample.row_count, len(sample.values)
    (10000, 4096)
    """

    __slots__ = ("_limit", "_numbers", "_values", "row_count")

    def __init__(self, limit: float = 1.0) -> None:
        self.row_count = 0
        self._limit = limit
        self._numbers: _Numbers = np.zeros(0)
        self._values = pa.array([], pa.binary())

    @property
    def values(self) -> list[bytes | None]:
        """Single-value bytes; None: null."""
        found: list[bytes | None] = self._values.to_pylist()
        return found

    @property
    def seed(self) -> int:
        """What samples of the same rows have in common: the bits of the smallest number; 0: there is no row."""
        return int(self._numbers[:1].view(np.int64).sum())

    @property
    def limit(self) -> float:
        """Rows with larger numbers are not kept."""
        return float(self._numbers[-1]) if len(self._numbers) == SAMPLED_ROWS else self._limit

    def choose(self, numbers: _Numbers) -> npt.NDArray[np.int64]:
        """Return the places of the rows of a batch that are small enough to be kept."""
        places = np.flatnonzero(numbers < self.limit)
        if len(places) > SAMPLED_ROWS:
            places = places[np.argpartition(numbers[places], SAMPLED_ROWS)[:SAMPLED_ROWS]]
        return places

    def update(self, row_count: int, numbers: _Numbers, values: pa.Array) -> None:
        """Add a batch: how many rows it has; of those that `choose` gives, numbers and values, as of `cut_values`."""
        self.row_count += row_count
        joined = np.append(self._numbers, numbers)
        order = np.argsort(joined, kind="stable")[:SAMPLED_ROWS]
        self._numbers, self._values = joined[order], pa.concat_arrays([self._values, values]).take(pa.array(order))

    def merge(self, other: RowSample) -> None:
        """Add the sample of other rows, which does not change."""
        self._limit = min(self._limit, other._limit)
        self.update(other.row_count, other._numbers, other._values)
        kept = int(np.searchsorted(self._numbers, self._limit, side="right"))
        self._numbers, self._values = self._numbers[:kept], self._values[:kept]

    def to_document(self) -> dict[str, Any]:
        """Return it as JSON has it, cut to the first rows where values are long."""
        texts = [None if value is None else value.hex() for value in self.values]
        sizes = np.cumsum([len(text or "") + 4 for text in texts])
        kept = int(np.searchsorted(sizes, _MOST_BYTES))
        return {"row-count": self.row_count, "seed": self.seed, "values": texts[:kept]}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> RowSample:
        """Return what `to_document` has made of a sample, whose values are not checked.

        Raises
        ------
        ValueError, KeyError, TypeError, AttributeError
            It is none.
        """
        made, seed = cls(), int(document["seed"])
        made.row_count = int(document["row-count"])
        values = [None if text is None else bytes.fromhex(text) for text in document["values"]]
        made._values = pa.array(values, pa.binary())
        whole = min(made.row_count, SAMPLED_ROWS)
        if not 0 <= len(values) <= whole or not made.row_count < 1 << 63 or not 0 <= seed < 1 << 63:
            raise ValueError(f"a sample of {len(values)} of {made.row_count} rows, from seed {seed}")
        # The smallest of so many numbers by chance, each from the one before it.
        steps = np.random.default_rng(seed).standard_exponential(len(values))
        left = made.row_count - np.arange(len(steps), dtype=np.float64)
        made._numbers = -np.expm1(-np.cumsum(steps / left))
        if len(values) < whole:
            made._limit = float(made._numbers[-1]) if values else 0.0
        return made


def cut_values(values: pa.Array, type_text: str) -> pa.Array:
    """Return single-value bytes, `large_binary`, as a sample keeps them: `binary`."""
    if type_text == "string" and (pc.max(pc.binary_length(values)).as_py() or 0) > SAMPLED_LENGTH:
        return pa.array([cut_value(value, type_text) for value in values.to_pylist()], pa.binary())
    return pc.binary_slice(values, 0, SAMPLED_LENGTH).cast(pa.binary())


def cut_value(value: bytes | None, type_text: str) -> bytes | None:
    """Return single-value bytes as a sample keeps them.

    Examples
    --------
    >>> cut_value("é".encode() * 40, "string") == "é".encode() * 32
    True
    """
    short = None if value is None else value[:SAMPLED_LENGTH]
    # A character may be cut in two.
    return short.decode(errors="ignore").encode() if short and type_text == "string" else short
