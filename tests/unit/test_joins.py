from __future__ import annotations

import re

import pyarrow as pa
import pytest
from pyiceberg.table import Table as IcebergTable

import icestats
from icestats.estimation.joins import JoinSide, estimate_join_by_ndv, estimate_join_by_theta
from icestats.stats.hashing import hash_values
from icestats.stats.theta import ThetaSketch, estimate_common_values


def theta(values: range, type_text: str = "long") -> ThetaSketch:
    sketch = ThetaSketch()
    sketch.update(hash_values(pa.array(values, pa.int64() if type_text == "long" else pa.int32()), type_text))
    return sketch


def side(values: range, *, rows_a_key: int = 1, type_text: str = "long") -> JoinSide:
    return JoinSide("t.id", type_text, float(len(values) * rows_a_key), theta(values, type_text))


def test_the_intersection_knows_that_few_keys_are_common() -> None:
    """Where a tenth of the keys is on both sides, the classic estimate is tenfold off and the intersection is not."""
    left, right = side(range(100_000), rows_a_key=2), side(range(90_000, 190_000), rows_a_key=3)
    actual = 10_000 * 2 * 3
    classic, better = estimate_join_by_ndv(left, right), estimate_join_by_theta(left, right)
    assert classic.with_actual(actual).q_error == pytest.approx(10, rel=0.1)
    assert better.with_actual(actual).q_error < 1.2
    # How many rows a key has is assumed: what a sketch promises of the keys is no promise of the rows.
    assert (better.rows_lower, better.rows_upper) == (None, None)
    low, high = re.search(r"\(([\d,]+) to ([\d,]+) at 95.4 % confidence\)", better.assumes).groups()
    slack = int(high.replace(",", "")) - int(low.replace(",", ""))
    assert int(low.replace(",", "")) - slack <= 10_000 <= int(high.replace(",", "")) + slack


@pytest.mark.parametrize(("one", "other", "common"), [((0, 50), (25, 75), 25), ((0, 50), (60, 70), 0)])
def test_small_sets_are_counted_exactly(one: tuple[int, int], other: tuple[int, int], common: int) -> None:
    """While both sketches hold every value, the number of common values is exact."""
    found = estimate_common_values(theta(range(*one)), theta(range(*other)))
    assert (found.estimate, found.lower, found.upper) == (common, common, common)


def test_keys_of_different_types_are_not_compared() -> None:
    """An int and a long of the same value have different hashes: unknown, not an empty join."""
    found = estimate_join_by_theta(side(range(100)), side(range(100), type_text="int"))
    assert found.rows is None
    assert "Theta hashes values of each type its own way" in found.reason


def test_a_join_of_a_table_without_sketches_is_unknown_but_can_be_counted(
    small_table: IcebergTable, catalog_properties: dict[str, str]
) -> None:
    """No Theta sketch is no estimate; the truth is the product of how often each key is on each side, without nulls."""
    table = icestats.load("db.small", catalog=catalog_properties)
    estimates = table.estimate_join(table, "name", row_filter="id < 100", actual=True)
    assert estimates["join-ndv"].rows is None
    assert estimates["join-theta"].reason == "no Theta sketch of db.small.name is committed"
    # 16 of 20 names are not null, 5 rows each on the left, 10 on the right.
    assert estimates.actual == 16 * 5 * 10
