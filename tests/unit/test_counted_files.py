"""Rows are counted by reading files: one that is gone, or of another type than the schema says, is named in a line."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import Table as IcebergTable

import icestats
from icestats.iceberg.storage import local_path
from tests.written_deletes import list_data_files

ASK = {
    "plan": lambda table: table.plan("id >= 100 and id < 150", rows=True),
    "workload": lambda table: table.estimate_workload(["id >= 100 and id < 150"]),
    "estimate": lambda table: table.estimate("id >= 100 and id < 150", actual=True),
    "join": lambda table: table.estimate_join(table, "id", actual=True),
}


@pytest.mark.parametrize("ask", ASK.values(), ids=ASK)
def test_a_data_file_that_is_gone_is_named_without_asking_spark(
    small_table: IcebergTable,
    load: Callable[..., icestats.Table],
    ask: Callable[[icestats.Table], object],
) -> None:
    """Spark could not read it either, and takes seconds to start."""
    for file in list_data_files(small_table):
        local_path(file.file_path).unlink()
    with pytest.raises(icestats.MetadataError, match=r"^/[^ ]+\.parquet: no such file$"):
        ask(load())


def test_a_data_file_whose_type_does_not_fit_is_refused_in_one_line(
    small_table: IcebergTable, load: Callable[..., icestats.Table]
) -> None:
    for file in list_data_files(small_table):
        path = local_path(file.file_path)
        rows = pq.read_table(path)
        place = rows.schema.get_field_index("id")
        text = rows.schema.field(place).with_type(pa.string())
        pq.write_table(rows.set_column(place, text, rows["id"].cast(pa.string())), path)
    table = load()
    with pytest.raises(icestats.UnsupportedError, match="cannot be counted by PyIceberg: Cannot promote") as caught:
        table.estimate_join(table, "id", actual=True)
    assert "\n" not in str(caught.value)
