"""The columns and the distribution are of what is asked, whether it was typed or marked, and say so truly."""

from __future__ import annotations

import datetime as dt
import threading
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import NestedField, StringType

import icestats
from icestats.errors import CallError, FilterError
from icestats_widgets import Explorer, FieldRange, Selection, read_part
from tests.computed_statistics import compute_here
from tests.widgets.asked import Asked, find_blocks
from tests.widgets.conftest import build_rows

DAY = "at >= '2025-09-02T00:00:00+00:00' and at < '2025-09-03T00:00:00+00:00'"
MARKED = Selection(0, (FieldRange("at_day", 2, "day", "date", dt.date(2025, 9, 2), dt.date(2025, 9, 2)),))
NAMES = {"FieldRange": FieldRange, "Selection": Selection, "read_part": read_part, "datetime": dt}


@pytest.fixture
def sketched(catalog: SqlCatalog, hostile_table: icestats.Table, catalog_properties: dict[str, str]) -> icestats.Table:
    """120 rows, an hour each, in days of two partitions, with sketches by partition."""
    compute_here(hostile_table, by_partition=True).commit()
    return icestats.load("db.hostile", catalog=catalog_properties)


@pytest.fixture
def explorer(sketched: icestats.Table) -> Explorer:
    found = Explorer(sketched, column="price")
    assert found.wait()
    return found


def ask(explorer: Explorer, row_filter: str = "", selection: Selection | None = None) -> tuple[str, str]:
    with explorer.state.hold_trait_notifications():
        explorer.state.row_filter, explorer.state.selection = row_filter, selection
    assert explorer.wait()
    captions = [explorer.parts[name].caption().partition("\n")[0] for name in ("columns", "histogram")]
    return captions[0], captions[1]


def figures(explorer: Explorer) -> list[Any]:
    """Rows, nulls, bounds, NDV and shape of each column, and the rows of the distribution."""
    table = explorer.parts["columns"].to_arrow()
    assert table is not None
    names = ["value_count", "null_value_count", "lower_bound", "upper_bound", "ndv"]
    explorer.parts["columns"].document()
    shapes = [row["cells"][1]["h"] for row in explorer.parts["columns"].grids["list"].first_rows(9)]
    return [*table.select(names).to_pylist(), shapes, explorer.state.histogram.histogram.n]


@pytest.mark.parametrize("asked", [("price < 3", None), (DAY, None), ("", MARKED), ("price < 3", MARKED)])
def test_what_is_asked_is_read_again_of_a_table_that_has_the_same_manifests(explorer: Explorer, asked: Any) -> None:
    """After `Reload`, or a commit of statistics, the columns wait for nothing."""
    before = ask(explorer, *asked)
    shown = figures(explorer)
    explorer.state.table = explorer.state.table.refresh()
    assert explorer.wait()
    assert ask(explorer, *asked) == before
    assert figures(explorer) == shown
    assert "reading" not in before[0]


def test_a_filter_on_whole_partitions_changes_the_columns_as_a_mark_does(explorer: Explorer) -> None:
    ask(explorer, selection=MARKED)
    marked = figures(explorer)
    columns, drawn = ask(explorer, DAY)
    assert columns == "4 columns, of exactly the 2 partitions that the filter selects."
    assert drawn == f"price, double: the partitions where {DAY}."
    assert figures(explorer) == marked
    assert [row["value_count"] for row in marked[:4]] == [24] * 4
    assert marked[0]["ndv"] == 24
    assert "median" in marked[4][0]


def test_of_a_filter_that_cuts_into_partitions_no_figure_claims_to_be(explorer: Explorer) -> None:
    whole = figures(explorer)
    columns, drawn = ask(explorer, "at <= '2025-09-02T05:00:00+00:00'")
    assert columns == "4 columns, of the 4 partitions that the filter touches, not only the rows that it selects."
    assert drawn.endswith("'2025-09-02T05:00:00+00:00' touches, not only the rows that it selects.")
    touched = figures(explorer)
    assert [row["value_count"] for row in touched[:4]] == [48] * 4
    assert touched[0]["ndv"] == touched[0]["value_count"]
    columns, drawn = ask(explorer, "price > 3")
    assert columns == "4 columns of the whole table, not only of the rows that the filter selects."
    assert drawn == "price, double: the whole table, not only of the rows that the filter selects."
    assert figures(explorer) == whole
    columns, drawn = ask(explorer, "price > 3", MARKED)
    assert columns == "4 columns of partitions: at_day 2025-09-02, not only of the rows that the filter selects."
    assert [row["value_count"] for row in figures(explorer)[:4]] == [24] * 4


def test_a_filter_that_selects_all_or_nothing_says_so(explorer: Explorer) -> None:
    columns, drawn = ask(explorer, "at > '2000-01-01T00:00:00+00:00'")
    assert columns == "4 columns of the whole table, all of which the filter selects."
    assert drawn == "price, double: the whole table, all of which the filter selects."
    assert (
        ask(explorer, "at < '2000-01-01T00:00:00+00:00'")[0] == "4 columns of nothing: the filter selects no partition."
    )
    assert ask(explorer) == ("4 columns.", "price, double: the whole table.")


def test_the_python_gives_what_the_columns_and_the_distribution_show(explorer: Explorer) -> None:
    asked = [(DAY, None), ("id > 3", MARKED), ("at <= '2025-09-02T05:00:00+00:00'", None), ("price > 3", None)]
    for row_filter, selection in asked:
        ask(explorer, row_filter, selection)
        names = {**NAMES, "table": explorer.state.table}
        columns = explorer.parts["columns"]
        found = eval(columns.code(), names)
        untold = ["name", "value_count", "null_value_count", "lower_bound", "upper_bound"]
        assert found.select(untold).equals(columns.to_arrow().select(untold))
        assert eval(explorer.parts["histogram"].code(), names).n == explorer.state.histogram.histogram.n


def test_figures_of_sketches_say_their_age_and_what_they_leave_out(
    catalog: SqlCatalog, catalog_properties: dict[str, str]
) -> None:
    """Theta counts no empty text, and a median of yesterday's rows is not today's."""
    fields = [
        NestedField(1, "region", StringType(), required=False),
        NestedField(2, "tag", StringType(), required=False),
    ]
    by_region = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "region"))
    made = catalog.create_table("db.tags", IcebergSchema(*fields), partition_spec=by_region)
    made.append(pa.table({"region": ["eu", "us", "jp"] * 10, "tag": ["", "a", "b"] * 3 + ["a"] * 21}))
    table = icestats.load("db.tags", catalog=catalog_properties)
    compute_here(table, by_partition=True).commit()
    for age, is_sure in (("this snapshot", True), ("1 commit behind", False)):
        found = Explorer(icestats.load("db.tags", catalog=catalog_properties))
        assert found.wait()
        for row_filter in ("", "region in ('eu', 'us')"):
            found.state.row_filter = row_filter
            assert found.wait()
            found.parts["columns"].document()
            region, tag = (row["cells"] for row in found.parts["columns"].grids["list"].first_rows(9))
            assert region[3]["t"] == f"{'' if is_sure else '≈ '}{2 if row_filter else 3}"
            # Of "", "a" and "b" the first is left out.
            assert tag[3]["t"] == f"≈ {1 if row_filter else 2}"
            assert "the empty value, if there is one, is not counted" in tag[3]["h"]
            for cells in (region, tag):
                assert f"{age}; without far tails" in cells[1]["h"]
                assert cells[1]["h"].startswith(cells[7]["h"])
        made.append(pa.table({"region": ["us"] * 3, "tag": ["c"] * 3}))


def test_of_a_partition_that_is_newer_than_the_sketches_nothing_is_said_to_be_none(
    catalog: SqlCatalog, sketched: icestats.Table
) -> None:
    """Its number of distinct values is unknown; that the sketches have no values is told with their age."""
    catalog.load_table("db.hostile").append(build_rows(10))
    explorer = Explorer(sketched.refresh(), column="price")
    assert explorer.wait()
    ask(explorer, "at >= '2025-09-20T00:00:00+00:00'")
    columns = {row["name"]: row for row in explorer.parts["columns"].to_arrow().to_pylist()}
    assert (columns["price"]["value_count"], columns["price"]["ndv"]) == (60, None)
    none, about = (block["text"] for block in find_blocks(explorer.parts["histogram"].document()["blocks"], "text"))
    assert none == "No values: every row was null or NaN, or there were none."
    assert "1 commit behind" in about
    ask(explorer, "at < '2025-01-01T00:00:00+00:00'")
    assert [row["ndv"] for row in explorer.parts["columns"].to_arrow().to_pylist()] == [0] * 4


def test_sketches_by_partition_of_the_table_as_it_was_are_not_shown_with_rows_of_today(
    catalog: SqlCatalog, explorer: Explorer
) -> None:
    """Others append, and the sketches are read after the figures of the manifests."""
    ask(explorer, DAY)
    catalog.load_table("db.hostile").append(build_rows(0))
    table, is_read = LateSketches(explorer.state.table.refresh()), threading.Event()
    explorer.state.observe(lambda change: is_read.set() if change.new is not None else None, "asked_part")
    explorer.state.table = table
    assert is_read.wait(60)
    (row, *_) = explorer.parts["columns"].to_arrow().to_pylist()
    assert (row["name"], row["value_count"], row["ndv"]) == ("id", 48, None)
    table.gate.set()
    assert explorer.wait()
    (row, *_) = explorer.parts["columns"].to_arrow().to_pylist()
    assert row["ndv"] == 24
    assert "1 commit behind" in dict(row["provenance"])["ndv"]


class LateSketches:
    """A table whose sketches by partition are told once a gate is open."""

    def __init__(self, table: icestats.Table) -> None:
        self._table, self.gate = table, threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    def merge_partition_sketches(self, *arguments: Any, **options: Any) -> Any:
        assert self.gate.wait(60)
        return self._table.merge_partition_sketches(*arguments, **options)


def test_without_sketches_by_partition_the_columns_have_what_the_manifests_say(hostile_table: icestats.Table) -> None:
    explorer = Explorer(hostile_table, column="price")
    assert explorer.wait()
    assert ask(explorer, DAY)[0] == "4 columns, of exactly the 2 partitions that the filter selects."
    rows = explorer.parts["columns"].to_arrow().to_pylist()
    assert [(row["value_count"], row["ndv"]) for row in rows] == [(24, None)] * 4


def test_parts_of_partitions_are_refused_or_counted_whole(sketched: icestats.Table) -> None:
    where = "at <= '2025-09-02T05:00:00+00:00'"
    with pytest.raises(FilterError, match="selects parts of 2 partitions"):
        sketched.merge_partition_sketches("id", where)
    with pytest.raises(FilterError, match="selects parts of 2 partitions"):
        sketched.histogram("id", where=where)
    assert sketched.merge_partition_sketches("id", where, partial="include").value_count == 48
    assert sketched.histogram("id", where=where, partial="include").n == 48
    with pytest.raises(CallError, match="partial is 'all': expected one of refuse, include"):
        sketched.histogram("id", where=where, partial="all")  # type: ignore[arg-type]


HOURS = st.integers(-30, 150).map(lambda i: dt.datetime(2025, 9, 1, tzinfo=dt.UTC) + dt.timedelta(hours=i))
MOMENTS = HOURS | st.integers(0, 5).map(lambda i: dt.datetime(2025, 9, 1 + i, tzinfo=dt.UTC))
FILTERS = st.lists(st.tuples(st.sampled_from(["<", "<=", ">", ">=", "=", "!="]), MOMENTS), min_size=1, max_size=3)


def test_what_is_said_to_be_of_exactly_the_filter_has_its_rows(hostile_table: icestats.Table) -> None:
    """Whatever is compared with: exact parts have as many rows as a scan counts, others at least as many."""

    @settings(max_examples=60, deadline=None)
    @given(FILTERS, st.sampled_from([" and ", " or "]))
    def check(comparisons: list[tuple[str, dt.datetime]], joiner: str) -> None:
        row_filter = joiner.join(f"at {sign} '{moment.isoformat()}'" for sign, moment in comparisons)
        part = read_part(hostile_table, None, row_filter)
        counted = hostile_table.estimate(row_filter, actual=True).actual
        assert part.record_count == counted if not part.holds_more else part.record_count >= counted

    check()


class Counting:
    """A table that counts how often its partitions are read."""

    def __init__(self, table: icestats.Table) -> None:
        self._table = table
        self.count = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    def partitions(self) -> Any:
        self.count += 1
        return self._table.partitions()


def test_columns_sketches_and_distribution_share_the_partitions_of_a_filter(sketched: icestats.Table) -> None:
    """Partitions with their statistics take much memory: they are read once a filter, and once more for the columns."""
    table: Any = Counting(sketched)
    found = Asked(table).read()
    found.state.column = "price"
    found.wait()
    before = table.count
    found.type(DAY)
    assert found.state.part_sketches.part is found.state.asked_part
    assert found.state.histogram.where == DAY
    assert table.count == before + 1
    assert found.state.asked_part.columns["value_count"].to_pylist() == [24] * 4
    assert table.count == before + 2


def test_a_nested_column_leaves_the_others_their_sketches(catalog, catalog_properties) -> None:
    """What sketches by partition say of a part is said of each column that can have one."""
    schema = pa.schema([("key", pa.string()), ("value", pa.int64()), ("tags", pa.list_(pa.string()))])
    table = catalog.create_table("db.nested", schema)
    with table.update_spec() as update:
        update.add_identity("key")
    table.append(pa.table({"key": ["a", "b"] * 5, "value": range(10), "tags": [["x"]] * 10}, schema))
    opened = icestats.load("db.nested", catalog=catalog_properties)
    compute_here(opened, by_partition=True).commit()
    explorer = Explorer(icestats.load("db.nested", catalog=catalog_properties))
    assert explorer.wait()
    ask(explorer, "key = 'a'")
    assert "part_sketches" not in explorer.state.notes
    rows = {row["name"]: row["ndv"] for row in explorer.parts["columns"].to_arrow().to_pylist()}
    assert rows == {"key": 1, "value": 5, "tags.element": None}


def test_nothing_is_selected_of_manifests_that_cannot_be_read_any_more(hostile_table: icestats.Table) -> None:
    """What the selection held is of the table before."""
    asked = Asked(hostile_table).read()
    assert asked.state.manifests is not None
    asked.state.selection = Selection(manifest_paths=(asked.state.manifests["manifest_path"][0].as_py(),))
    asked.wait()
    assert asked.state.part is not None
    asked.state.manifests = None
    assert (asked.state.part, asked.state.asked_part) == (None, None)
