"""Filters made up from what a table's statistics say of its values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from icestats.errors import StatisticsMissingError
from icestats.estimation.evidence import Evidence
from icestats.iceberg.filters.filter_text import write_column, write_value
from icestats.iceberg.metadata import Field
from icestats.stats.kll_items import item_value

Random = np.random.Generator

_KINDS = ("range", "between", "equality", "in", "null", "and", "or")
_PARTS = ("range", "between", "equality")
_MOST_CHARACTERS = 40


def generate_filters(evidence: Evidence, count: int, seed: int, columns: Sequence[str] | None = None) -> list[str]:
    """Generate filters: ranges, equalities, IN, null tests, and two of them joined by AND and OR.

    Parameters
    ----------
    evidence : Evidence
        The snapshot; values are taken from its committed KLL sketches.
    count : int
        How many filters.
    seed : int
        The same seed gives the same filters for the same committed sketches.
    columns : sequence of str, optional
        Top-level columns to choose from; by default all that have a sketch.

    Raises
    ------
    StatisticsMissingError
        No column has a committed sketch to take values from.
    """
    schema = evidence.reader.schema
    wanted = [schema.find(name) for name in columns] if columns is not None else list(schema.top_level)
    values = {field.name: _values(evidence, field) for field in wanted if field.is_primitive}
    known = [field for field in wanted if values.get(field.name) and write_column(field.name) is not None]
    if not known:
        raise StatisticsMissingError(
            f"no column of {evidence.reader.source.name} has a committed KLL sketch to take filters from: "
            "give a list of filters, or run table.compute().commit()"
        )
    random = np.random.default_rng(seed)
    made: dict[str, None] = {}
    # A table of few values has few different filters.
    for attempt in range(50 * count):
        if len(made) == count:
            break
        kind = _KINDS[attempt % len(_KINDS)]
        made[_generate(kind, known, values, random)] = None
    return list(made)


def _generate(kind: str, known: Sequence[Field], values: dict[str, list[str]], random: Random) -> str:
    if kind in ("and", "or"):
        parts = [_generate(_PARTS[random.integers(len(_PARTS))], known, values, random) for _ in range(2)]
        return f" {kind} ".join(f"({part})" if " and " in part and kind == "or" else part for part in parts)
    field = known[int(random.integers(len(known)))]
    name, choices = write_column(field.name), values[field.name]
    if kind == "null":
        return f"{name} is {'not ' if random.integers(2) else ''}null"
    if kind == "between":
        low, high = sorted(random.integers(len(choices), size=2).tolist())
        return f"{name} >= {choices[low]} and {name} <= {choices[high]}"
    if kind == "in":
        places = sorted(random.integers(len(choices), size=3).tolist())
        return f"{name} in ({', '.join(dict.fromkeys(choices[place] for place in places))})"
    sign = ("<", "<=", ">", ">=")[random.integers(4)] if kind == "range" else "="
    return f"{name} {sign} {choices[random.integers(len(choices))]}"


def _values(evidence: Evidence, field: Field) -> list[str]:
    """The values at 101 evenly spread ranks, ascending, as a filter has them; frequent values are there often."""
    distribution = evidence.spare(evidence.read_distribution, field)
    if distribution is None or not distribution.sketch.n:
        return []
    items = distribution.sketch.quantiles([i / 100 for i in range(101)])
    return [shown for item in items if (shown := _show(field.type, item)) is not None]


def _show(type_text: str, item: Any) -> str | None:
    if isinstance(item, str) and (len(item) > _MOST_CHARACTERS or not item):
        return None
    return write_value(type_text, item_value(type_text, item))
