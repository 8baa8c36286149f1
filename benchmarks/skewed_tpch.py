"""TPC-H's rows made uneven, always in the same way: a few keys have most rows, a few prices are very high.

Foreign keys follow Zipf's law with exponent 1, prices and balances are lognormal, an order's date is the later the more
orders there are, and a line's dates follow its order's date by a lognormal number of days. The price of a line is its
quantity times its part's price. Other columns are TPC-H's, and each foreign key still has its row.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_SEED = 17
_FIRST_DAY, _DAYS = 8035, 2406
"""1992-01-01, and the days until 1998-08-02, as in TPC-H."""
_MONEY = pa.decimal128(15, 2)

Values = npt.NDArray[np.float64] | npt.NDArray[np.int64]


class SkewedTpch:
    """Draws the uneven columns of TPC-H's tables at one scale factor."""

    def __init__(self, scale_factor: float) -> None:
        self._rows = {
            name: round(count * scale_factor)
            for name, count in (("customer", 150_000), ("part", 200_000), ("supplier", 10_000), ("orders", 1_500_000))
        }
        random = np.random.default_rng(_SEED)
        self._order_dates = _FIRST_DAY + (_DAYS * np.sqrt(random.random(self._rows["orders"] + 1))).astype(np.int64)
        self._part_prices = random.lognormal(log(1000), 0.8, self._rows["part"] + 1).round(2)
        self._ranked = {name: random.permutation(self._rows[name]) + 1 for name in ("customer", "part")}

    def skew(self, name: str, part: int, rows: pa.Table) -> pa.Table:
        """Return the rows of one file of a table with the uneven columns in place of TPC-H's."""
        random = np.random.default_rng([_SEED, part, *name.encode()])
        columns: Mapping[str, Values] = getattr(self, f"_draw_{name}", lambda *_: {})(rows, random)
        for column, values in columns.items():
            place = rows.schema.get_field_index(column)
            field = rows.schema.field(place)
            array = pa.array(values.astype(np.int32) if pa.types.is_date(field.type) else values)
            rows = rows.set_column(place, field, array.cast(field.type))
        return rows

    def _draw_customer(self, rows: pa.Table, random: np.random.Generator) -> dict[str, Values]:
        return {"c_acctbal": (random.lognormal(log(3000), 1.2, len(rows)) - 1000).round(2)}

    def _draw_supplier(self, rows: pa.Table, random: np.random.Generator) -> dict[str, Values]:
        return {"s_acctbal": (random.lognormal(log(3000), 1.2, len(rows)) - 1000).round(2)}

    def _draw_part(self, rows: pa.Table, random: np.random.Generator) -> dict[str, Values]:  # noqa: ARG002 - a price for each part
        return {"p_retailprice": self._part_prices[rows["p_partkey"].to_numpy()]}

    def _draw_partsupp(self, rows: pa.Table, random: np.random.Generator) -> dict[str, Values]:
        return {"ps_supplycost": random.lognormal(log(300), 1, len(rows)).round(2)}

    def _draw_orders(self, rows: pa.Table, random: np.random.Generator) -> dict[str, Values]:
        return {
            "o_custkey": self._draw_keys("customer", len(rows), random),
            "o_totalprice": random.lognormal(log(100_000), 1, len(rows)).round(2),
            "o_orderdate": self._dates_of(rows["o_orderkey"]),
        }

    def _draw_lineitem(self, rows: pa.Table, random: np.random.Generator) -> dict[str, Values]:
        count, suppliers = len(rows), self._rows["supplier"]
        ordered = self._dates_of(rows["l_orderkey"])
        shipped = ordered + 1 + random.lognormal(3, 0.6, count).astype(np.int64)
        parts = self._draw_keys("part", count, random)
        # TPC-H's rule for the four suppliers that partsupp has of each part.
        step = suppliers // 4 + (parts - 1) // suppliers
        return {
            "l_partkey": parts,
            "l_suppkey": (parts + random.integers(0, 4, count) * step) % suppliers + 1,
            "l_extendedprice": (rows["l_quantity"].cast(pa.float64()).to_numpy() * self._part_prices[parts]).round(2),
            "l_shipdate": shipped,
            "l_commitdate": ordered + random.integers(20, 61, count),
            "l_receiptdate": shipped + 1 + random.lognormal(1.5, 0.6, count).astype(np.int64),
        }

    def _draw_keys(self, name: str, count: int, random: np.random.Generator) -> npt.NDArray[np.int64]:
        ranked = self._ranked[name]
        shares = np.cumsum(1 / np.arange(1, len(ranked) + 1))
        keys: npt.NDArray[np.int64] = ranked[np.searchsorted(shares, random.random(count) * shares[-1])]
        return keys

    def _dates_of(self, order_keys: pa.ChunkedArray) -> npt.NDArray[np.int64]:
        # Of each 32 order keys TPC-H uses the first 8.
        keys = order_keys.to_numpy()
        dates: npt.NDArray[np.int64] = self._order_dates[keys >> 5 << 3 | keys & 7]
        return dates
