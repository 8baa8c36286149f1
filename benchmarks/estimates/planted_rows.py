"""Rows with planted dependencies: what determines what, with how much noise, and what is independent, is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Longs = npt.NDArray[np.int64]
_SYLLABLES = (
    "ba", "cor", "den", "fal", "gri", "hol", "jun", "kar", "lim", "mor", "nes", "pol", "ros", "tam", "vel", "zur",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Dependency:
    """Two columns, of which the first determines the second but for a share of the rows."""

    columns: tuple[str, str]
    noise: float


DEPENDENCIES = (
    Dependency(("city", "country"), 0.0),
    Dependency(("country", "continent"), 0.0),
    Dependency(("city", "continent"), 0.0),
    Dependency(("country", "currency"), 0.01),
    Dependency(("customer", "segment"), 0.02),
    Dependency(("country", "phone_code"), 0.05),
    Dependency(("product", "brand"), 0.0),
    Dependency(("brand", "category"), 0.0),
    Dependency(("product", "category"), 0.0),
    Dependency(("product", "supplier"), 0.03),
)
CORRELATED = (("ordered", "shipped"), ("grade", "grade_before"), ("segment", "discount"))
INDEPENDENT = (
    ("shift", "machine"),
    ("shift", "city"),
    ("machine", "product"),
    ("country", "brand"),
    ("customer", "city"),
)


def build_planted_rows(row_count: int, seed: int) -> pa.Table:
    """Draw the rows: Zipf's law for customers, cities and products, and for the rest what `DEPENDENCIES` says.

    Parameters
    ----------
    row_count : int
        How many.
    seed : int
        What they are drawn from.
    """
    random = np.random.default_rng([seed, row_count])
    customer, city, product = (
        _draw_zipf(random, row_count, count, s) for count, s in ((40_000, 1.0), (1_000, 1.1), (5_000, 1.0))
    )
    country = _map(random, city, 1_000, 60)
    segment = _blur(random, _map(random, customer, 40_000, 8), 8, 0.02)
    brand = _map(random, product, 5_000, 200)
    grade = _draw_zipf(random, row_count, 100, 0.8)
    ordered = np.sort(random.integers(19_000, 20_000, row_count))
    discount = np.round(random.integers(0, 40, row_count) / 2 + segment, 2)
    columns = {
        "customer": pa.array(customer),
        "segment": _name(segment, "segment"),
        "city": _name(city, ""),
        "country": _name(country, ""),
        "continent": _name(_map(random, country, 60, 6), "continent"),
        "currency": _name(_blur(random, _map(random, country, 60, 30), 30, 0.01), ""),
        "phone_code": pa.array(_blur(random, country, 60, 0.05)),
        "product": pa.array(product),
        "brand": _name(brand, "brand"),
        "category": _name(_map(random, brand, 200, 20), "category"),
        "supplier": pa.array(_blur(random, _map(random, product, 5_000, 300), 300, 0.03)),
        "price": pa.array(np.round(random.lognormal(3, 1, row_count), 2)),
        "ordered": pa.array(ordered.astype(np.int32), pa.date32()),
        "shipped": pa.array((ordered + random.integers(1, 15, row_count)).astype(np.int32), pa.date32()),
        "grade": pa.array(grade),
        "grade_before": pa.array(_blur(random, grade, 100, 0.4)),
        "shift": pa.array(_draw_zipf(random, row_count, 30, 1.0)),
        "machine": pa.array(random.integers(0, 40, row_count)),
        "discount": pa.array(discount, mask=segment < 2),
    }
    return pa.table(columns)


def build_cities(rows: pa.Table, seed: int) -> pa.Table:
    """Draw a row for each city but some, which a join of the planted rows loses."""
    cities = sorted(set(rows["city"].to_pylist()))
    random = np.random.default_rng([seed, len(cities)])
    kept = [city for city in cities if random.random() < 0.8]
    return pa.table({"name": kept, "inhabitants": random.lognormal(11, 1, len(kept)).astype(np.int64)})


def _draw_zipf(random: np.random.Generator, row_count: int, count: int, exponent: float) -> Longs:
    shares = np.cumsum(np.arange(1, count + 1) ** -exponent)
    ranks = np.searchsorted(shares, random.random(row_count) * shares[-1])
    drawn: Longs = random.permutation(count)[ranks]
    return drawn


def _map(random: np.random.Generator, values: Longs, count: int, images: int) -> Longs:
    return random.integers(0, images, count)[values]


def _blur(random: np.random.Generator, values: Longs, count: int, noise: float) -> Longs:
    return np.where(random.random(len(values)) < noise, random.integers(0, count, len(values)), values)


def _name(values: Longs, stem: str) -> pa.Array:
    """Give each number a name: syllables by its digits, so that prefixes select very different shares."""
    size = int(values.max()) + 1
    words = ["".join(_SYLLABLES[number // 16**place % 16] for place in range(3)) for number in range(size)]
    return pa.array([f"{stem} {word}".strip() for word in words]).take(pa.array(values))
