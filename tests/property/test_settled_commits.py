"""What has been committed is not committed again, whatever the table has been through."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField

import icestats
from icestats.errors import StatisticsMissingError
from tests.computed_statistics import compute_here

SCHEMA = Schema(*(NestedField(i, name, LongType(), required=False) for i, name in enumerate("pabc", 1)))
BY_P = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "p"))
CHANGES = ("drop", "append", "add", "rename", "forget", "put back")
COMMITS: dict[str, Callable[[icestats.Table, str], Any]] = {
    "table": lambda table, column: compute_here(table).commit(),
    "column": lambda table, column: compute_here(table, columns=[column]).commit(),
    "column alone": lambda table, column: compute_here(table, columns=[column]).commit(keep_earlier=False),
    "unlisted": lambda table, column: compute_here(table, columns=[column]).commit(list_ndv=[]),
    "by partition": lambda table, column: compute_here(table, columns=[column], by_partition=True).commit(),
    "pair": lambda table, column: compute_here(table, together=[("p", column)]).commit(),
    "manifests": lambda table, column: table.compute(manifests=True).commit(),
    "partitions": lambda table, column: table.compute(partitions=True).commit(),
    "refresh": lambda table, column: table.refresh_statistics().commit(),
    "refresh of a column": lambda table, column: table.refresh_statistics(columns=[column]).commit(),
}
ROUNDS = st.tuples(
    st.lists(st.tuples(st.sampled_from(CHANGES), st.integers(0, 2)), max_size=3),
    st.sampled_from(sorted(COMMITS)),
    st.integers(0, 2),
)
NUMBERS = count()


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlCatalog]:
    folder: Path = tmp_path_factory.mktemp("settled")
    made = {"type": "sql", "uri": f"sqlite:///{folder / 'c.db'}", "warehouse": f"file://{folder / 'w'}"}
    with SqlCatalog("catalog", **made) as opened:
        opened.create_namespace("db")
        yield opened


def append(table: Table, first: int) -> None:
    """Append few rows: a KLL sketch of more than its k is another one each time."""
    names = [field.name for field in table.schema().fields]
    table.append(pa.table({name: pa.array(range(first, first + 5), pa.int64()) for name in names}))


def pick(table: Table, number: int) -> str:
    others = [field.name for field in table.schema().fields if field.name != "p"]
    return others[number % len(others)]


def change(table: Table, what: str, number: int) -> None:
    entries, column = table.metadata.statistics, pick(table, number)
    if what == "append":
        append(table, number)
    elif what in ("forget", "put back") and entries:
        with table.update_statistics() as update:
            entry = entries[number % len(entries)]
            update.remove_statistics(entry.snapshot_id)
            if what == "put back":
                update.set_statistics(entry)
    elif what in ("drop", "add", "rename"):
        with table.update_schema() as update:
            if what == "add":
                update.add_column(f"x{len(table.metadata.schemas)}", LongType())
            elif what == "rename":
                update.rename_column(column, f"y{len(table.metadata.schemas)}")
            elif len(table.schema().fields) > 2:
                update.delete_column(column)


@settings(max_examples=30)
@given(st.lists(ROUNDS, min_size=2, max_size=4))
def test_what_is_committed_is_not_committed_again(catalog: SqlCatalog, rounds: list[Any]) -> None:
    name = f"db.t{next(NUMBERS)}"
    append(catalog.create_table(name, SCHEMA, partition_spec=BY_P), 0)
    for changes, kind, number in rounds:
        for what, place in changes:
            change(catalog.load_table(name), what, place)
        append(catalog.load_table(name), number)
        found = []
        for _ in range(2):
            table = icestats.load(name, catalog={**catalog.properties, "name": catalog.name})
            with suppress(StatisticsMissingError):
                COMMITS[kind](table, pick(catalog.load_table(name), number))
            found.append(catalog.load_table(name).metadata_location)
        assert found[0] == found[1], kind
