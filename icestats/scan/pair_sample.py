"""Which columns go together: how far values of one say something of the other, seen in a sample of the rows.

Source: Ilyas et al., "CORDS: automatic discovery of correlations and soft functional dependencies", SIGMOD 2004.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, islice
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icestats.errors import CallError
from icestats.scan.scan_job import FileReading, read_live_rows
from icestats.scan.scan_plan import ScanPlan
from icestats.stats.column_values import unify
from icestats.stats.joint_statistics import encode_column, list_trees

if TYPE_CHECKING:
    from pyiceberg.table import FileScanTask

MOST_PAIRS = 64
"""Pairs that one scan makes statistics of."""
_KEPT_PAIRS = 24
_SAMPLED_COLUMNS = 64
_SAMPLED_FILES = 8
_ROWS_A_FILE = 8_192
_LEAST_CELL = 5
_LEAST_FACTOR = 1.2
_DECIDES = 0.8
_BINS = 64
"""Of as many sampled rows each, as far as values allow."""
_UNSAMPLED = "together='auto' samples rows with PyIceberg, which cannot: {}; name the pairs"

_Longs = npt.NDArray[np.int64]


def choose_pairs(
    plan: ScanPlan, together: Sequence[tuple[str, str]] | str | None, committed: Sequence[tuple[int, int]]
) -> tuple[tuple[int, int], ...]:
    """Return the pairs of columns that get statistics together, by their places in the plan's fields.

    Parameters
    ----------
    plan : ScanPlan
        What is going to be read.
    together : sequence of tuple of str, "auto" or None
        Names of columns, two each; "auto": those that a sample shows to go together; None: those that are committed,
        up to `MOST_PAIRS`.
    committed : sequence of tuple of int
        Field ids of the pairs that have statistics, those of the nearest snapshot first.

    Raises
    ------
    ColumnNotFoundError, CallError
        It is no sequence of pairs of columns of this scan, or there are too many.
    """
    places = {field.name: place for place, field in enumerate(plan.fields)}
    if together is None:
        ids = {field.field_id: place for place, field in enumerate(plan.fields)}
        known = ((ids[one], ids[other]) for one, other in committed if one in ids and other in ids)
        return tuple(islice(known, MOST_PAIRS))
    if isinstance(together, str):
        if together != "auto":
            raise CallError(f"together is {together!r:.80}: expected pairs of columns, or 'auto'")
        return tuple(find_pairs(plan))
    found: dict[tuple[int, int], None] = {}
    for pair in together if isinstance(together, Sequence) else (together,):
        one, other = (_find_place(name, plan, places) for name in _check_pair(pair))
        found[min(one, other), max(one, other)] = None
    if len(found) > MOST_PAIRS:
        raise CallError(
            f"together has {len(found):,} pairs of columns: expected {MOST_PAIRS} at most, as each takes about 0.4 s "
            "of a core for a million rows, and up to 300 kB in the file"
        )
    return tuple(found)


def _check_pair(pair: object) -> tuple[str, str]:
    if isinstance(pair, tuple | list) and len(pair) == 2 and all(isinstance(name, str) for name in pair):
        if pair[0] == pair[1]:
            raise CallError(f"together has {pair[0]!r} twice in a pair: expected two columns")
        return pair[0], pair[1]
    raise CallError(f"together has {pair!r:.80}: expected pairs of columns, such as [('country', 'city')]")


def _find_place(name: str, plan: ScanPlan, places: Mapping[str, int]) -> int:
    if name in places:
        return places[name]
    if name in plan.skipped:
        raise CallError(f"together names column {name!r}, which has no statistics: {plan.skipped[name]}")
    if plan.read_schema.find(name).top_level:
        raise CallError(f"together names column {name!r}, which is not among the columns that are computed")
    raise CallError(f"together names column {name!r}, which is nested: only top-level columns have statistics")


def find_pairs(plan: ScanPlan) -> list[tuple[int, int]]:
    """Look for pairs of columns that go together, in up to 65,536 rows of 8 files.

    Parameters
    ----------
    plan : ScanPlan
        What is going to be read. Of more than 64 columns, those with the fewest distinct values are looked at.

    Returns
    -------
    list of tuple of int
        Their places in the plan's fields: of the pairs whose statistics would make estimates clearly better 24 at
        most, strongest first, those that no chain of stronger ones joins (Chow and Liu) before the others, so that a
        few columns that all depend on each other leave room for the rest.

    Raises
    ------
    CallError
        PyIceberg cannot read the table.
    """
    from icestats.scan.arrow_files import UnreadFileError

    if plan.fallback is not None:
        raise CallError(_UNSAMPLED.format(plan.fallback))
    try:
        rows = _sample(plan.reading, plan.tasks)
    except UnreadFileError as error:
        raise CallError(_UNSAMPLED.format(error)) from error
    columns = [_encode(rows, place, plan) for place in range(len(plan.fields))]
    counts = [len(np.unique(codes)) for codes, _ in columns]
    order = sorted((place for place, count in enumerate(counts) if count > 1), key=lambda place: counts[place])
    chosen = sorted(order[:_SAMPLED_COLUMNS])
    factors = {(one, other): _measure(columns[one], columns[other]) for one, other in combinations(chosen, 2)}
    worthwhile = {pair: factor for pair, factor in factors.items() if factor >= _LEAST_FACTOR}
    in_trees = {pair for tree in list_trees(worthwhile) for pair in tree}
    return sorted(worthwhile, key=lambda pair: (pair not in in_trees, -worthwhile[pair]))[:_KEPT_PAIRS]


def _sample(reading: FileReading, tasks: Sequence[FileScanTask]) -> pa.Table:
    step = max(1, len(tasks) // _SAMPLED_FILES)
    found = []
    for task in tasks[::step][:_SAMPLED_FILES]:
        batch = next(iter(read_live_rows(reading, [task])), None)
        if batch is not None and batch.num_rows:
            places = np.linspace(0, batch.num_rows - 1, min(batch.num_rows, _ROWS_A_FILE)).astype(np.int64)
            taken = batch.take(pa.array(places))
            found.append(pa.table({name: unify(taken[name]) for name in taken.schema.names}))
    if not found:
        return pa.table({field.name: pa.nulls(0) for field in reading.schema.fields})
    return pa.concat_tables(found, promote_options="permissive")


def _encode(rows: pa.Table, place: int, plan: ScanPlan) -> tuple[_Longs, _Longs | None]:
    """Return the values of a column as codes, and its rows in bins of neighbours; None: most values are there once."""
    field = plan.fields[place]
    encoded = encode_column(rows.column(field.name), field.type)
    codes, count = encoded.codes, len(encoded.values)
    if count <= _BINS or 2 * count > len(codes):
        return codes, codes if count <= _BINS else None
    ranks = np.append(np.argsort(pc.sort_indices(encoded.values)), count)[codes]
    return codes, np.cumsum(np.bincount(ranks))[ranks] * _BINS // (len(codes) + 1)


def _measure(first: tuple[_Longs, _Longs | None], second: tuple[_Longs, _Longs | None]) -> float:
    """Measure two columns by their values, and by bins: values that are rare in a sample show nothing one by one."""
    found = _compare(first[0], second[0])
    return found if first[1] is None or second[1] is None else max(found, _compare(first[1], second[1]))


def _compare(first: _Longs, second: _Longs) -> float:
    """Return by how much an estimate that takes two columns for independent is off, as far as the sample shows it.

    In the geometric mean over rows.
    """
    width = int(second.max(initial=0)) + 1
    cells, rows = np.unique(first * width + second, return_counts=True)
    one, other = np.divmod(cells, width)
    of_one, of_other = np.bincount(one, rows), np.bincount(other, rows)
    total = len(first)
    # What is there a few times only may be there by chance: half of the error of a count is 1 / sqrt(count).
    off = np.abs(np.log(rows * total / (of_one[one] * of_other[other]))) - 2.0 / np.sqrt(rows)
    gain = float((rows * np.where(rows >= _LEAST_CELL, np.maximum(off, 0.0), 0.0)).sum()) / max(total, 1)
    decided = _decide(one, rows, of_one, of_other), _decide(other, rows, of_other, of_one)
    return float(np.exp(max(gain, *decided)))


def _decide(sides: _Longs, rows: _Longs, of_side: _Longs, of_partner: _Longs) -> float:
    """Return the gain of how far one column decides the other, of the rows that have another row of their value."""
    total, others = int(of_side.sum()), np.maximum(of_side - 1, 0)
    strength = float(np.maximum(_most(sides, rows) - 1, 0).sum() / max(int(others.sum()), 1))
    if strength < _DECIDES:
        return 0.0
    share = float(of_side[of_side > 1].sum()) / total
    return strength * share * float(np.log(total / of_partner.max()))


def _most(sides: _Longs, rows: _Longs) -> _Longs:
    most = np.zeros(int(sides.max(initial=-1)) + 1, np.int64)
    np.maximum.at(most, sides, rows)
    return most
