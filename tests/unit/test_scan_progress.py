"""A scan says what it reads and how long it still takes; columns are named by patterns."""

from __future__ import annotations

import pyarrow as pa
import pytest

import icestats
from icestats.scan.scan_plan import prepare_scan, select_columns
from icestats.scan.scan_progress import SaidProgress
from icestats.table.metadata_statistics import expand_columns

NAMES = ("id", "measure_1", "measure_2", "m*", "[ab]", "a")


@pytest.fixture
def table(catalog, catalog_properties):
    made = catalog.create_table("db.t", pa.schema([(name, pa.int64()) for name in NAMES]))
    for start in (0, 10):
        made.append(pa.table({name: range(start, start + 10) for name in NAMES}))
    return icestats.load("db.t", catalog=catalog_properties)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (["measure_*"], ["measure_1", "measure_2"]),
        (["measure_2", "id"], ["id", "measure_2"]),
        (["measure_?", "i*", "id"], ["id", "measure_1", "measure_2"]),
        (["m*"], ["m*"]),
        (["m[*]"], ["m*"]),
        (["m**"], ["measure_1", "measure_2", "m*"]),
        (["[ab]"], ["[ab]"]),
        (["[abc]"], ["a"]),
        (["*"], list(NAMES)),
        ([], []),
    ],
)
def test_columns_are_named_by_patterns_and_a_name_stands_for_itself(table, asked, expected):
    assert [field.name for field in select_columns(table.schema.top_level, asked)[0]] == expected
    assert [field.name for field in expand_columns(table.schema, asked)] == expected


@pytest.mark.parametrize("call", ["compute", "refresh_statistics"])
@pytest.mark.parametrize(
    ("wrong", "said"),
    [("measured_*", "no column matches 'measured_*'"), ("ID", "no column 'ID'"), ("", "no column ''")],
)
def test_a_pattern_that_matches_nothing_is_one_line(table, call, wrong, said):
    with pytest.raises(icestats.ColumnNotFoundError) as caught:
        getattr(table, call)(columns=["id", wrong])
    assert str(caught.value) == f"{said}: the table has {', '.join(NAMES)}"
    with pytest.raises(icestats.CallError, match="expected names in a list"):
        getattr(table, call)(columns="measure_*")


def test_a_scan_says_what_it_reads(table):
    plan = prepare_scan(table._source, table.snapshot, table.schema, ["measure_*"])
    size = sum(table.files()["file_size_in_bytes"].to_pylist())
    assert plan.table_size_bytes == size
    assert plan.describe() == (
        f"db.t: reads 2 of 6 columns of 2 data files ({size / 1000:.3g} kB in all); an interrupt (Ctrl-C) stops it"
    )


def test_how_far_it_is_is_said_a_few_times_only(capsys):
    """After 4 s, and then each time that as much has gone by again; not where nothing is known, or left."""
    now = [100.0]
    said = SaidProgress(lambda: now[0])
    for second in range(1_000):
        now[0] = 100.0 + second
        said(second // 10, 100)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "1 of 100 tasks, about 16 minutes to go"
    assert lines[-1] == "64 of 100 tasks, about 6 minutes to go"
    assert len(lines) == 7
    now[0] = 5_000.0
    said(100, 100)
    assert capsys.readouterr().err == ""
