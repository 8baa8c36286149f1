"""Roll-ups of the parts of a table, merged in any order, are the roll-up of the table."""

from __future__ import annotations

import struct
from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icestats.errors import UnsupportedError
from icestats.read.manifests.manifests import RollUps
from icestats.read.rollups.rollup_merge import merge_rollups
from tests.mergeable_tables import COLUMNS, SPECS, are_same, roll_up, write_table


def differing(first: RollUps, second: RollUps) -> list[str]:
    return [f.name for f in fields(RollUps) if not are_same(getattr(first, f.name), getattr(second, f.name))]


@settings(max_examples=80)
@given(st.integers(0, 2**32 - 1), st.integers(1, 7), st.data())
def test_parts_in_any_split_and_order_are_the_whole(seed: int, count: int, data: st.DataObject) -> None:
    """Every table of the merged roll-ups equals that of the whole, to the type and the bit."""
    table = write_table(seed, count)
    order = data.draw(st.permutations(table.manifests))
    numbers = data.draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    groups = [[m for m, number in zip(order, numbers, strict=True) if number == part] for part in range(4)]
    parts = [roll_up(table, group) for group in groups if group]
    paths = [manifest.path for manifest in table.manifests]
    whole = roll_up(table, table.manifests)
    assert differing(merge_rollups(parts, COLUMNS, paths), whole) == []


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_what_was_merged_can_be_merged_again(seed: int) -> None:
    """Adding one manifest after the other, as commits do, gives the whole too."""
    table = write_table(seed, 5)
    merged = roll_up(table, table.manifests[:1])
    for done in range(1, 5):
        paths = [manifest.path for manifest in table.manifests[: done + 1]]
        merged = merge_rollups([merged, roll_up(table, table.manifests[done : done + 1])], COLUMNS, paths)
    assert differing(merged, roll_up(table, table.manifests)) == []


def test_these_tables_have_what_is_hard_to_merge() -> None:
    """The generated tables do have partitions and bounds that several parts dispute."""
    table = write_table(1, 60)
    parts = [roll_up(table, [manifest]) for manifest in table.manifests]
    whole = roll_up(table, table.manifests)
    assert sum(len(part.partitions) for part in parts) > 2 * len(whole.partitions)
    values = {repr(row["a_double"]) for row in whole.partitions["partition"].to_pylist()}
    assert values >= {"0.0", "-0.0", "inf", "-inf", "nan", "None"}
    assert {spec_id.as_py() for spec_id in whole.partitions["spec_id"]} == set(SPECS)
    lower = whole.partition_cells["lower_bound"].to_pylist()
    assert struct.pack("<d", -0.0) in lower
    assert None in lower


def test_a_sum_beyond_64_bits_is_an_error_and_no_number() -> None:
    table = write_table(3, 6)
    parts = [roll_up(table, [manifest]) for manifest in table.manifests]
    index = parts[0].table_cells.column_names.index("column_size")
    for i, part in enumerate(parts):
        cells = part.table_cells
        huge = cells.column(index).to_pylist()
        huge[0] = 2**62
        cells = cells.set_column(index, cells.schema.field(index), [huge])
        parts[i] = RollUps(part.manifests, part.manifest_cells, part.partitions, part.partition_cells, cells)
    with pytest.raises(UnsupportedError, match="64 bits"):
        merge_rollups(parts, COLUMNS, [manifest.path for manifest in table.manifests])
