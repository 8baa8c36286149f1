"""Histograms of a column from its KLL sketch, in the column's own values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, Literal

import pyarrow as pa

from icestats.errors import CallError, check_choice, check_whole
from icestats.iceberg.types import PrimitiveType, json_value, parse_type, to_arrow_type, to_integer
from icestats.stats.kll import KllSketch
from icestats.stats.kll_items import item_value, to_item
from icestats.stats.kll_layout import TEXT_LENGTH

QUANTILE_RANKS: Final = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
"""The ranks whose values every histogram has. They show where the data is, even if a long tail fills the width."""

Kind = Literal["equi-width", "equi-height"]
_NARROW: Final = 10
"""Bins of fewer whole numbers than this all have the same number of them, but for the last."""
UPPER_IS_CUT: Final = f"values may be longer than the last edge: sketches keep {TEXT_LENGTH} characters"


@dataclass(frozen=True)
class Histogram:
    """How many values of a column lie in each bin.

    Bin i has the values from `edges[i]` on and below `edges[i + 1]`. The last bin also has its upper edge.
    """

    column: str
    type: str
    """The Iceberg type."""
    source: str
    """Where the figures come from: `kll`."""
    snapshot_id: int | None
    """The snapshot whose live rows these figures are about; rows that were added or removed since are not in them."""
    n: int
    """Values that are neither null nor NaN; exact."""
    null_count: int | None
    """None: unknown."""
    nan_count: int | None
    rank_error: float
    """The error of a rank, as a share of n, at 99 % confidence."""
    edges: tuple[Any, ...]
    """One more than there are bins, in the column's Python type. The first is exactly the smallest value and the last
    exactly the largest, of strings their first 256 characters (see `upper_is_cut`), unless a part of the range was
    asked for. Nanosecond timestamps, and dates and times that Python cannot hold, are integers. Empty if n is 0, or if
    no value can lie in the part."""
    counts: tuple[float, ...]
    """The estimated number of values in each bin. With `below` and `above` they add up to n."""
    quantiles: Mapping[float, Any] = field(hash=False)
    """The values at `QUANTILE_RANKS`; empty if n is 0."""
    kind: Kind
    """The kind of bins: for strings always `equi-height`."""
    below: float = 0.0
    """The estimated number of values below the part of the range that was asked for; 0 for the whole range."""
    above: float = 0.0
    """The estimated number of values above that part."""
    commits_behind: int | None = None
    """How many commits later than `snapshot_id` the snapshot is that was asked for."""

    @property
    def upper_is_cut(self) -> bool:
        """Whether values that begin like the last edge may be longer: sketches keep 256 characters of a string."""
        return self.type == "string" and bool(self.edges) and len(self.edges[-1]) >= TEXT_LENGTH

    @property
    def count_error(self) -> float:
        """The error of a count, in values: the rank errors of both edges, each at 99 % confidence."""
        return 2.0 * self.rank_error * self.n

    def to_arrow(self) -> pa.Table:
        """Return the bins as a table.

        Returns
        -------
        pyarrow.Table
            One row per bin: `lower_edge` and `upper_edge` in the Arrow type of the column (double for float), `count`
            (double, values, estimated), `count_error` (double, values); and `commits_behind` (int64), the same in each
            row: how old these figures are, null where that is not known.
        """
        kind = _edge_type(self.type)
        columns = {
            "lower_edge": _edge_array(self.edges[:-1], self.type, kind),
            "upper_edge": _edge_array(self.edges[1:], self.type, kind),
            "count": pa.array(self.counts, pa.float64()),
            "count_error": pa.array([self.count_error] * len(self.counts), pa.float64()),
            "commits_behind": pa.array([self.commits_behind] * len(self.counts), pa.int64()),
        }
        return pa.table(columns, schema=histogram_schema(self.type))

    def to_json(self) -> dict[str, Any]:
        """Return the histogram as the command line prints it: ids as text, values as `types.json_value` gives them."""
        part: dict[str, Any] = {"below": self.below, "above": self.above} if self.below or self.above else {}
        if self.upper_is_cut:
            part["upper_is_cut"] = True
        if self.commits_behind is not None:
            part["commits_behind"] = self.commits_behind
        return part | {
            "column": self.column,
            "source": self.source,
            "snapshot_id": None if self.snapshot_id is None else str(self.snapshot_id),
            "n": self.n,
            "null_count": self.null_count,
            "nan_count": self.nan_count,
            "rank_error": self.rank_error,
            "edges": [json_value(self.type, edge) for edge in self.edges],
            "counts": list(self.counts),
            "quantiles": {f"{rank:g}": json_value(self.type, value) for rank, value in self.quantiles.items()},
        }


def histogram_schema(type_text: str) -> pa.Schema:
    """Return the schema of `Histogram.to_arrow` for a column of an Iceberg type."""
    kind = _edge_type(type_text)
    edges = [pa.field(name, kind, nullable=False) for name in ("lower_edge", "upper_edge")]
    counts = [pa.field(name, pa.float64(), nullable=False) for name in ("count", "count_error")]
    return pa.schema([*edges, *counts, pa.field("commits_behind", pa.int64())])


def build_histogram(
    sketch: KllSketch,
    *,
    column: str,
    type_text: str,
    bins: int = 20,
    kind: Kind = "equi-width",
    lower: Any = None,
    upper: Any = None,
) -> Histogram:
    """Build the histogram of a column from its KLL sketch.

    Parameters
    ----------
    sketch : KllSketch
        The sketch of the column's values, stored as `kll_items.item_type_of` says.
    column : str
        The name of the column.
    type_text : str
        The Iceberg type of the column.
    bins : int
        The maximum number of bins. There are fewer if edges would coincide: with few whole numbers or distinct values,
        or floats close together. A constant column has one bin from its value to its value. A boolean column has one
        bin for False and one for True, and a column of few strings or whole numbers a bin for each, the last from its
        value to its value. Infinities get a bin of their own at each end.
    kind : {'equi-width', 'equi-height'}
        Bins of the same width, or of about the same count. Strings have no width: their bins are always equi-height.
    lower, upper : object, optional
        Show only the part from `lower` to `upper` (both included), so that a long tail does not fill the width. Values
        of the column, or their text; of strings the first 256 characters count. Values outside the part are counted in
        `below` and `above`.

    Raises
    ------
    CallError
        `bins` is below 1 or above 100,000, `kind` is neither of the two, `lower` or `upper` is not a value of the type,
        `lower` is above `upper`, or the sketch's items cannot be of the type.

    Notes
    -----
    The sketch does not know its snapshot, nulls and NaNs: they are None, and the caller fills them in with `replace`.
    Each count is within `count_error` of the truth. n, the smallest and the largest value are exact, of strings their
    first 256 characters. So are the counts as long as the sketch holds every value (`rank_error` is 0.0).

    Examples
    --------
    >>> sketch = KllSketch("long")
    >>> sketch.update(pa.array(range(100)))
    >>> histogram = build_histogram(sketch, column="id", type_text="long", bins=2)
    >>> histogram.edges, histogram.counts
    ((0, 49, 99), (49.0, 51.0))
    """
    bins = check_whole("bins", bins, 1, 100_000)
    check_choice("kind", kind, ("equi-width", "equi-height"))
    kind = "equi-height" if sketch.item_type == "string" else kind
    primitive = parse_type(type_text)
    limits: tuple[Any, ...] = tuple(None if limit is None else to_item(type_text, limit) for limit in (lower, upper))
    if sketch.item_type == "string":
        limits = tuple(None if limit is None else limit[:TEXT_LENGTH] for limit in limits)
    if None not in limits and limits[0] > limits[1]:
        raise CallError(
            f"lower is {lower!r}, above upper, which is {upper!r}: expected a lower end up to the upper one"
        )
    items, counts, outside = _bins(sketch, primitive, bins, kind, limits)
    quantiles = [item_value(type_text, item) for item in sketch.quantiles(QUANTILE_RANKS)] if sketch.n else []
    return Histogram(
        column=column,
        type=type_text,
        source="kll",
        snapshot_id=None,
        n=sketch.n,
        null_count=None,
        nan_count=None,
        rank_error=sketch.rank_error,
        edges=tuple(item_value(type_text, item) for item in items),
        counts=counts,
        quantiles=dict(zip(QUANTILE_RANKS, quantiles, strict=False)),
        kind=kind,
        below=outside[0],
        above=outside[1],
    )


_Binned = tuple[list[Any], tuple[float, ...], tuple[float, float]]


def _bins(sketch: KllSketch, kind: PrimitiveType, bins: int, how: Kind, limits: tuple[Any, ...]) -> _Binned:
    if sketch.n == 0:
        return [], (), (0.0, 0.0)
    low, high = sketch.min_value, sketch.max_value
    low = low if limits[0] is None else max(low, limits[0])
    high = high if limits[1] is None else min(high, limits[1])
    if low > high:
        # The part lies beyond one end, so all values are on the other side of it.
        return [], (), ((0.0, float(sketch.n)) if high < sketch.min_value else (float(sketch.n), 0.0))
    begin = 0 if low == sketch.min_value else round(sketch.ranks([low], inclusive=False)[0] * sketch.n)
    end = sketch.n if high == sketch.max_value else round(sketch.ranks([high])[0] * sketch.n)
    outside = float(begin), float(sketch.n - end)
    if low == high:
        return [low, high], (float(end - begin),), outside
    edges = _edges(sketch, kind, bins, how, (low, high), (begin, end))
    below = [round(rank * sketch.n) for rank in sketch.ranks(edges[1:-1], inclusive=False)]
    return edges, tuple(float(after - before) for before, after in pairwise([begin, *below, end])), outside


def _edges(
    sketch: KllSketch, kind: PrimitiveType, bins: int, how: Kind, ends: tuple[Any, Any], counts: tuple[int, int]
) -> list[Any]:
    (low, high), (begin, end) = ends, counts
    if kind.name == "boolean":
        return [0, 1, 1]
    if sketch.item_type == "string" and len(values := _values(sketch, low, high)) <= bins:
        return [*values, values[-1]]
    if how == "equi-height":
        ranks = [(begin + (end - begin) * i / bins) / sketch.n for i in range(1, bins)]
        return _rising([low, *sketch.quantiles(ranks), high])
    if sketch.item_type == "double":
        return _float_edges(sketch, low, high, bins)
    if high - low < _NARROW * bins:
        return [*range(low, high + 1, -(-(high - low + 1) // bins)), high]
    return [low + (high - low) * step // bins for step in range(bins + 1)]


def _values(sketch: KllSketch, low: str, high: str) -> list[str]:
    ends = {end for end in (sketch.min_value, sketch.max_value) if low <= end <= high}
    return sorted(ends.union(item for item, _ in sketch.items() if low <= item <= high)) or [low, high]


def _float_edges(sketch: KllSketch, low: float, high: float, bins: int) -> list[float]:
    if math.isfinite(low) and math.isfinite(high):
        return _rising([low, *_between(low, high, bins), high])
    finite = [item for item, _ in sketch.items() if math.isfinite(item) and low <= item <= high]
    if not finite:
        return [low, high]
    return _rising([low, finite[0], *_between(finite[0], finite[-1], bins), finite[-1], high])


def _between(low: float, high: float, bins: int) -> Iterable[float]:
    # Weighted ends instead of low + width * i, as the width of very large numbers is infinite.
    return (low * (1 - i / bins) + high * (i / bins) for i in range(1, bins))


def _rising(edges: Sequence[Any]) -> list[Any]:
    # Keep both ends, and each edge strictly between the one before it and the last.
    kept = [edges[0]]
    for edge in edges[1:-1]:
        if kept[-1] < edge < edges[-1]:
            kept.append(edge)
    return [*kept, edges[-1]]


def _edge_type(type_text: str) -> pa.DataType:
    return pa.float64() if parse_type(type_text).name == "float" else to_arrow_type(type_text)


def _edge_array(edges: Sequence[Any], type_text: str, kind: pa.DataType) -> pa.Array:
    if pa.types.is_temporal(kind):
        storage = pa.int32() if parse_type(type_text).name == "date" else pa.int64()
        return pa.array([to_integer(edge) for edge in edges], storage).view(kind)
    return pa.array(edges, kind)
