"""Draws questions from the data, with literals of rows and of the most common values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.estimates.data_sets import DataSet
from benchmarks.estimates.questions import Condition, Question, Side, Value

COMMON, OTHER, IN, RANGE = "= one of the 100 most common", "= another value", "IN", "range"
PREFIX, NULL, UNEQUAL = "LIKE 'prefix%'", "null or not null", "!="
PAIR, SEVERAL = "AND of two dependent columns", "AND of 2 to 4 columns"
JOIN, FILTERED_JOIN = "join", "join of filtered tables"
GROUPS = ("GROUP BY 1 column", "GROUP BY 2 columns", "GROUP BY 3 columns")
FILTERS = {COMMON: 15, OTHER: 12, IN: 10, RANGE: 15, PREFIX: 8, NULL: 4, UNEQUAL: 4, PAIR: 14, SEVERAL: 18}
"""Filters by kind, in percent."""
KINDS = (*FILTERS, JOIN, FILTERED_JOIN, *GROUPS)
MOST_COMMON = 100
_TRIES = 60
_REPEATED = 5
"""Rows that a column has for each of its values, at least, for its common values to be common."""
_IN_PATTERNS = frozenset("%_\\'")


@dataclass(slots=True)
class Workload:
    """Questions about a set, and their answers."""

    questions: list[Question]
    actual: list[int]
    empty_count: int = 0
    """Questions that were drawn and left out, as their answer is empty."""


class TableSampler:
    """Draws conditions from the rows of one table.

    Parameters
    ----------
    name : str
        The table's name.
    rows : pyarrow.Table
        Its rows.
    random : numpy.random.Generator
        What is drawn from.
    """

    def __init__(self, name: str, rows: pa.Table, random: np.random.Generator) -> None:
        self.name, self.rows, self.random = name, rows.combine_chunks(), random
        self.common = {column: find_common(rows[column]) for column in rows.column_names}
        types = {field.name: field.type for field in rows.schema}
        self.texts = [name for name, kind in types.items() if pa.types.is_string(kind)]
        self.numbers = [name for name in types if name not in self.texts]
        self.nullable = [name for name in types if 0 < rows[name].null_count < len(rows)]
        self.rare = [name for name, values in self.common.items() if len(values) == MOST_COMMON]
        self.plain = [name for name in types if not _has_nan(rows[name])]
        self.repeated = [name for name in types if pc.count_distinct(rows[name]).as_py() * _REPEATED <= len(rows)]

    def draw(self, kind: str, column: str | None = None, row: int | None = None) -> Condition | None:
        """Return a condition of a kind, of any column or of one, on a row's value if one is given."""
        choices = {COMMON: self.repeated, OTHER: self.rare, RANGE: self.numbers, PREFIX: self.texts}
        choices |= {NULL: self.nullable, UNEQUAL: self.plain}
        among = choices.get(kind, self.rows.column_names)
        if not among or (column and column not in among):
            return None
        name = column or self.pick(among)
        values = self._draw_values(kind, name, row)
        if kind == NULL:
            return Condition(name, self.pick(["is null", "is not null"]))
        return _build_condition(kind, name, values, self.random) if values else None

    def _draw_values(self, kind: str, column: str, row: int | None) -> list[Value]:
        count = {IN: int(self.random.integers(2, 9)), RANGE: 2}.get(kind, 1)
        common, values = self.common[column], self.rows[column]
        if row is not None and kind != RANGE:
            drawn = [values[row].as_py()]
        elif kind == COMMON or (kind in (IN, UNEQUAL) and self.random.random() < 0.5):
            drawn = [self.pick(common) for _ in range(count)]
        else:
            drawn = [values[int(place)].as_py() for place in self.random.integers(0, len(self.rows), count)]
        known = [value for value in dict.fromkeys(drawn) if value is not None and value == value]
        if kind == RANGE and len(known) < 2:
            return []
        return [value for value in known if value not in common] if kind == OTHER else known

    def draw_several(self, columns: tuple[str, ...]) -> tuple[Condition, ...] | None:
        """Return a condition on each column: half of the time on the values of one row."""
        row = int(self.random.integers(len(self.rows))) if self.random.random() < 0.5 else None
        found = []
        for column in columns:
            plain = COMMON if column in self.repeated else RANGE if column in self.numbers else IN
            kinds = (plain, plain, plain, IN if plain == COMMON else plain, RANGE, PREFIX)
            found.append(self.draw(self.pick(kinds), column, row) or self.draw(plain, column, row))
        return None if None in found else tuple(one for one in found if one)

    def pick(self, among: Any) -> Any:
        """Return one of some things."""
        return among[int(self.random.integers(len(among)))]

    def pick_columns(self, count: int) -> tuple[str, ...]:
        """Return different columns, in the table's order."""
        places = self.random.choice(self.rows.num_columns, min(count, self.rows.num_columns), replace=False)
        return tuple(self.rows.column_names[place] for place in sorted(places))


def find_common(values: pa.ChunkedArray) -> list[Value]:
    """Return the most common values of a column, the smaller first where two are as common; neither null nor NaN."""
    counts = pc.drop_null(values).value_counts()
    pairs = zip(counts.field(0).to_pylist(), counts.field(1).to_pylist(), strict=True)
    known = [(value, count) for value, count in pairs if value == value]
    return [value for value, _ in sorted(known, key=lambda one: (-one[1], one[0]))[:MOST_COMMON]]


def _has_nan(values: pa.ChunkedArray) -> bool:
    return pa.types.is_floating(values.type) and bool(pc.any(pc.is_nan(values)).as_py())


def _build_condition(kind: str, name: str, values: list[Value], random: np.random.Generator) -> Condition | None:
    if kind == PREFIX:
        text = str(values[0])
        prefix = text[: int(random.integers(1, max(len(text), 2)))]
        return None if not prefix or _IN_PATTERNS & set(prefix) else Condition(name, "prefix", (prefix,))
    if kind == RANGE:
        # Engines take NaN for greater than every number, Iceberg leaves it out: only ranges with an upper end agree.
        low, high = min(values), max(values)
        return Condition(name, "<=", (low,)) if random.random() < 0.3 else Condition(name, "between", (low, high))
    if kind == IN and len(values) > 1:
        return Condition(name, "in", tuple(values))
    return Condition(name, "!=" if kind == UNEQUAL else "=", (values[0],))


def draw_workload(
    data: DataSet, filters: int, joins: int, groups: int, seed: int, count: Callable[[Question], int]
) -> Workload:
    """Draw questions about a set.

    Parameters
    ----------
    data : DataSet
        The set.
    filters, joins, groups : int
        How many of each.
    seed : int
        What they are drawn from: the same questions for the same rows.
    count : callable
        Counts the rows of a question's answer; questions without any are drawn again.
    """
    random = np.random.default_rng([seed, *data.name.encode()])
    samplers = {name: TableSampler(name, rows, random) for name, rows in data.tables.items()}
    drawn = [kind for kind, share in FILTERS.items() for _ in range(round(filters * share / 100))][:filters]
    if not any(samplers[name].nullable for name in data.pairs):
        drawn = [SEVERAL if kind == NULL else kind for kind in drawn]
    asks: list[Callable[[], Question | None]] = [partial(_draw_filter, data, samplers, kind) for kind in drawn]
    asks += [partial(_join, one) for one in data.joins[:joins]]
    asks += [partial(_draw_join, data, samplers)] * (joins - len(data.joins))
    asks += [partial(_draw_groups, data, samplers, place % 3 + 1) for place in range(groups)]
    found = Workload([], [])
    for ask in asks:
        for question in filter(None, (ask() for _ in range(_TRIES))):
            rows = count(question)
            if rows:
                found.questions.append(question)
                found.actual.append(rows)
                break
            found.empty_count += 1
    return found


def _draw_filter(data: DataSet, samplers: dict[str, TableSampler], kind: str) -> Question | None:
    first = next(iter(samplers.values()))
    sampler = samplers[first.pick(list(data.pairs))]
    if kind in (PAIR, SEVERAL):
        count = int(sampler.random.integers(2, 5))
        columns = sampler.pick(data.pairs[sampler.name]) if kind == PAIR else sampler.pick_columns(count)
        conditions = sampler.draw_several(columns)
    else:
        one = sampler.draw(kind)
        conditions = None if one is None else (one,)
    return Question(kind, (Side(sampler.name, conditions),)) if conditions else None


def _join(join: tuple[str, str, str, str]) -> Question:
    return Question(JOIN, (Side(join[0]), Side(join[2])), (join[1], join[3]))


def _draw_join(data: DataSet, samplers: dict[str, TableSampler]) -> Question | None:
    first = next(iter(samplers.values()))
    join = first.pick(data.joins)
    filtered = first.pick([(True, False), (False, True), (True, True)])
    sides = []
    for name, is_filtered in zip((join[0], join[2]), filtered, strict=True):
        sampler = samplers[name]
        count = int(sampler.random.integers(1, 3))
        conditions = sampler.draw_several(sampler.pick_columns(count)) if is_filtered else ()
        if conditions is None:
            return None
        sides.append(Side(name, conditions))
    return Question(FILTERED_JOIN, tuple(sides), (join[1], join[3]))


def _draw_groups(data: DataSet, samplers: dict[str, TableSampler], count: int) -> Question:
    first = next(iter(samplers.values()))
    sampler = samplers[first.pick(list(data.pairs))]
    columns = sampler.pick_columns(count)
    if count == 2 and sampler.random.random() < 0.5:
        columns = sampler.pick(data.pairs[sampler.name])
    return Question(GROUPS[len(columns) - 1], (Side(sampler.name),), groups=columns)
