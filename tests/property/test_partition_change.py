"""Another partition spec as a prediction: every row stays, and none is lost for a filter that it meets."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg import expressions as e
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.types import NestedField

from icestats.errors import CallError
from icestats.iceberg.filters.row_filter import FilterSchema, bind_row_filter
from icestats.iceberg.metadata import Field, Schema
from icestats.iceberg.types import encode_value
from icestats.snapshot.evaluation.column_metrics import table_metrics
from icestats.snapshot.layout.file_set import FileSet
from icestats.snapshot.layout.partition_change import change_partitions, project_to
from icestats.snapshot.layout.partition_terms import parse_partition_fields
from icestats.snapshot.layout.what_if import compare, regroup_files
from tests.planned_tables import build_table

File = tuple[int, int, int | None, int, int]
"""Rows, bytes, lower bound or none, how far the upper one is from it, nulls in hundredths of the rows."""
FILES = st.lists(
    st.tuples(
        st.integers(0, 300), st.integers(0, 10**6), st.none() | st.integers(-40, 40), st.integers(0, 30),
        st.sampled_from([0, 0, 1, 50, 100]),
    ),
    min_size=1,
    max_size=12,
)  # fmt: skip
TIME, FAR = ["c", "year(c)", "month(c)", "day(c)"], dt.datetime(1970, 1, 1)
KINDS: dict[str, tuple[Callable[[int], Any], list[str]]] = {
    "int": (lambda number: number, ["c", "bucket(5, c)", "truncate(7, c)"]),
    "long": (lambda number: number * (2**63 // 71), ["bucket(5, c)", f"truncate({2**31 - 1}, c)"]),
    "date": (lambda number: dt.date(1970, 1, 1) + dt.timedelta(number * 20), [*TIME, "bucket(3, c)"]),
    "timestamp": (lambda number: FAR + dt.timedelta(hours=number * 7), [*TIME, "hour(c)", "bucket(3, c)"]),
    "string": (lambda number: f"{number + 40:03d}ä", ["c", "truncate(2, c)", "bucket(4, c)"]),
    "decimal(9, 2)": (lambda number: Decimal(number).scaleb(-1), ["c", "truncate(50, c)", "bucket(4, c)"]),
    "decimal(30, 2)": (lambda number: Decimal(number) * 10**20, ["c", "truncate(50, c)", "bucket(4, c)"]),
    "double": (lambda number: number / 4, ["c"]),
}  # fmt: skip


def build_files(files: list[File], type_text: str) -> FileSet:
    rows, sizes, lower, width, nulls = (list(one) for one in zip(*files, strict=True))
    make = KINDS[type_text][0]
    upper = [
        None if low is None else encode_value(type_text, make(low + far)) for low, far in zip(lower, width, strict=True)
    ]
    table = pa.table(
        {
            "record_count": rows,
            "value_count_1": rows,
            "null_value_count_1": [count * share // 100 for count, share in zip(rows, nulls, strict=True)],
            "nan_value_count_1": pa.nulls(len(files), pa.int64()),
            "lower_bound_1": pa.array(
                [None if low is None else encode_value(type_text, make(low)) for low in lower], pa.binary()
            ),
            "upper_bound_1": pa.array(upper, pa.binary()),
        }
    )
    field = Field(1, "c", type_text, required=False, top_level=True)
    return FileSet(
        manifests=pa.table({"manifest_length": [5000], "partition_spec_id": pa.array([0], pa.int32())}),
        manifest_index=np.zeros(len(files), np.int64),
        spec_ids=np.zeros(len(files), np.int64),
        record_counts=np.array(rows),
        sizes=np.array(sizes),
        sequence_numbers=np.zeros(len(files), np.int64),
        partition_fields=(),
        partition_metrics={},
        column_metrics=table_metrics(table, [field]),
    )


@given(files=FILES, type_text=st.sampled_from(sorted(KINDS)), cut=st.integers(-45, 75), data=st.data())
def test_no_row_is_lost(files: list[File], type_text: str, cut: int, data: st.DataObject) -> None:
    """Of filters that every row meets one of, some file with it is kept by that one; `true` keeps every row."""
    make, terms = KINDS[type_text]
    text = ", ".join(data.draw(st.lists(st.sampled_from(terms), min_size=1, max_size=3, unique=True)))
    schema = Schema(0, (Field(1, "c", type_text, required=False, top_level=True),))
    built, fields = build_files(files, type_text), parse_partition_fields(text, schema)
    found = change_partitions(built, fields, schema, [1])
    then = regroup_files(found.files, 700)
    written = built.record_counts > 0
    assert then.record_counts.sum() == built.record_counts.sum()
    assert then.sizes.sum() == built.sizes[written].sum()
    assert (then.record_counts > 0).all()
    assert found.partition_count <= len(then) <= max(built.record_counts.sum(), 0)
    kind = NestedField(1, "c", type_text, required=False)
    known = FilterSchema(IcebergSchema(kind), {0: UNPARTITIONED_PARTITION_SPEC})
    literal = make(cut)
    covering = [e.LessThan("c", literal), e.GreaterThanOrEqual("c", literal), e.IsNull("c")]
    covering += [e.IsNaN("c")] if type_text == "double" else []
    filters = project_to([bind_row_filter(one, known) for one in [e.AlwaysTrue(), *covering]], fields)
    whole, *parts = compare(filters, built, then)
    assert {step.kept_rows for step in whole.then} == {built.record_counts.sum()}
    assert sum(part.then[-1].kept_rows for part in parts) >= built.record_counts.sum()
    for part in parts:
        kept = [step.kept_rows for step in part.then]
        assert kept == sorted(kept, reverse=True)
        assert kept[0] <= built.record_counts.sum()


@pytest.mark.parametrize("seed", range(4))
def test_every_transform_of_every_type_keeps_every_row(seed: int, tmp_path: Path) -> None:
    """Of tables whose specs and columns changed, with nulls, NaN, files without bounds and rows that were deleted."""
    table, _ = build_table(tmp_path / "table", seed)
    layout, row_count = table.layout(), table.overview().record_count
    count = 0
    for column in table.schema.columns:
        for term in (*TIME, "hour(c)", "bucket(3, c)", "truncate(2, c)"):
            text = term.replace("c)", f"{column.name})") if "(" in term else column.name
            try:
                found = layout.what_if(
                    ["true", f"{column.name} is null", f"{column.name} is not null"], partition_by=text
                )
            except CallError as error:
                if "does not fit" not in str(error):
                    raise
                continue
            count += 1
            whole, *parts = (comparison.then[-1].kept_rows for comparison in found.comparisons)
            assert whole == row_count
            assert sum(parts) >= row_count
            assert max(parts) <= row_count
    assert count > 40
