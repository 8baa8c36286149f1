"""The explorer shows what the table has: every figure, what is unknown, and what could not be read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ipywidgets
import pytest

import icestats
from icestats_widgets import Explorer

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def events(demo_home: Path) -> icestats.Table:
    return icestats.load("demo.events")


@pytest.fixture(scope="module")
def explorer(events: icestats.Table) -> Explorer:
    explorer = events.explore()
    assert explorer.wait()
    return explorer


def trace(view, name: str):
    return next(trace for trace in view.figure.data if trace.name == name)


def heat_texts(explorer: Explorer) -> list[str]:
    return [cell for line in explorer.partitions.figure.data[0].text for cell in line if cell]


def cards(explorer: Explorer) -> dict[str, dict[str, dict[str, Any]]]:
    names = [column["name"] for column in explorer.columns.grid.columns]
    rows = explorer.columns.grid._rows.window(0, 1000)
    return {row["cells"][0]["t"]: dict(zip(names, row["cells"], strict=True)) for row in rows}


def html_of(widget: ipywidgets.Widget) -> Iterator[str]:
    if isinstance(widget, ipywidgets.HTML):
        yield widget.value
    for child in getattr(widget, "children", ()):
        yield from html_of(child)


@pytest.mark.spark
def test_the_manifests_are_drawn_a_bar_each(events: icestats.Table) -> None:
    """Data and deletes apart, with the records of the manifest list, which the summary has before all else."""
    explorer = Explorer(events)
    assert f"{events.overview().record_count:,}" in explorer.summary.body.children[0].value
    assert explorer.wait()
    drawn = {name: len(trace(explorer.manifests, name).y) for name in ("data", "deletes")}
    assert drawn == {"data": events.overview().data_manifest_count, "deletes": events.overview().delete_manifest_count}
    assert trace(explorer.manifests, "data").marker.color != trace(explorer.manifests, "deletes").marker.color
    records = sum(trace(explorer.manifests, "data records").x)
    assert records == events.overview().record_count


@pytest.mark.spark
def test_each_partition_is_a_cell(explorer: Explorer, events: icestats.Table) -> None:
    """The heat map of two partition fields holds each partition once, with its records, files and bytes."""
    (heat,) = explorer.partitions.figure.data
    cells = [cell for line in heat.text for cell in line if cell]
    assert len(cells) == events.partitions().num_rows
    records = [int(cell.split("<br>")[1].split(" records")[0].replace(",", "")) for cell in cells]
    assert sum(records) == events.overview().record_count
    assert any("event_time_day = 2026-09-01" in cell for cell in cells)


@pytest.mark.spark
def test_partitions_can_show_files_instead_of_records(explorer: Explorer, events: icestats.Table) -> None:
    """Choosing another value changes the cells in place."""
    before = explorer.partitions.figure
    explorer.state.partition_value = "files"
    assert explorer.partitions.figure is before
    shown = [figure for line in before.data[0].z for figure in line if figure is not None]
    assert before.data[0].name == "files"
    assert sum(shown) == events.overview().data_file_count
    explorer.state.partition_value = "records"


@pytest.mark.spark
def test_columns_say_unknown_where_a_figure_is_unknown(explorer: Explorer, events: icestats.Table) -> None:
    """Every column has a line; of the one that was added half way, files lack what committed statistics know."""
    rows = cards(explorer)
    assert list(rows) == [field.name for field in events.schema.columns]
    assert rows["app_version"]["size"]["t"] == "unknown"
    assert "data files lack it" in rows["app_version"]["size"]["h"]
    assert 0 < rows["app_version"]["shape"]["n"] < 1
    assert rows["app_version"]["ndv"]["t"] == "4"
    assert rows["price"]["ndv"]["t"].startswith("≈ ")
    assert rows["price"]["shape"]["n"] > rows["price"]["shape"]["a"] > 0
    assert "exact: over the live rows, this snapshot" in rows["app_version"]["bounds"]["h"]


@pytest.mark.spark
def test_a_click_on_a_column_draws_its_histogram(explorer: Explorer, events: icestats.Table) -> None:
    """Selecting a column, as the list does, changes title, bars and axis; the figure stays the same widget."""
    figure = explorer.histogram.figure
    for column in ("event_time", "event_type", "price"):
        number = [field.name for field in events.schema.columns].index(column)
        explorer.columns.grid.receive({"kind": "select", "key": f"c{number}"})
        assert explorer.wait()
        assert explorer.histogram.heading.value == f"<h4>Distribution of {column}</h4>"
        assert explorer.histogram.figure is figure
        assert column in figure.layout.xaxis.title.text
        part = explorer.state.histogram
        whole = events.histogram(column)
        assert sum(trace(explorer.histogram, "values").y) + part.below + part.above == pytest.approx(whole.n)
        assert part.histogram.n == whole.n
        assert json.loads(figure.picture)["layout"]["xaxis"]["title"]["text"] == figure.layout.xaxis.title.text


@pytest.mark.spark
def test_each_count_lies_in_its_band(explorer: Explorer) -> None:
    """The band reaches as far as the sketch's error from each bar, and not below 0."""
    explorer.state.column = "price"
    assert explorer.wait()
    error = explorer.state.histogram.histogram.count_error
    bars = trace(explorer.histogram, "values").y
    low, high = trace(explorer.histogram, "at least").y, trace(explorer.histogram, "at most").y
    assert error > 0
    assert [at_most - count for at_most, count in zip(high, bars, strict=False)] == pytest.approx([error] * len(bars))
    assert list(low[:-1]) == pytest.approx([max(0, count - error) for count in bars])
    assert f"± {error:,.0f}" in explorer.histogram.caption.value


@pytest.mark.spark
def test_far_tails_are_left_out_and_counted(explorer: Explorer) -> None:
    """Skewed prices fill more than one bar; how many values lie outside is said, and they can be drawn."""
    explorer.state.column = "price"
    assert explorer.wait()
    part = explorer.state.histogram
    assert part.is_cut
    assert f"{part.above:,.0f} values above" in explorer.histogram.caption.value
    assert part.histogram.edges[-1] < part.histogram.quantiles[1.0]
    explorer.state.whole_range = True
    assert explorer.wait()
    assert not explorer.state.histogram.is_cut
    assert explorer.state.histogram.histogram.edges[-1] == part.histogram.quantiles[1.0]
    explorer.state.whole_range = False
    assert explorer.wait()


@pytest.mark.spark
def test_nulls_and_nan_stand_beside_the_bars(explorer: Explorer, events: icestats.Table) -> None:
    """Nulls and NaN have bars of their own, with the sketch's exact counts."""
    explorer.state.column = "price"
    assert explorer.wait()
    whole = events.histogram("price")
    assert list(trace(explorer.histogram, "missing").y) == [whole.null_count, whole.nan_count]
    assert list(explorer.histogram.figure.layout.xaxis2.ticktext) == ["null", "NaN"]


@pytest.mark.spark
def test_a_part_gives_its_data_and_the_line_that_makes_it(explorer: Explorer, events: icestats.Table) -> None:
    """Each part gives Arrow, and Python that gives the same."""
    explorer.state.column = "quantity"
    assert explorer.wait()
    explorer.state.row_filter = "quantity = 2"
    assert explorer.wait()
    views = (explorer.manifests, explorer.partitions, explorer.tree, explorer.columns, explorer.statistics)
    for view in (*views, explorer.snapshots):
        assert view.to_arrow().equals(eval(view.code(), {"table": events}))
    for view in (explorer.plan, explorer.estimates):
        same = [name for name in view.to_arrow().column_names if name != "duration_ms"]
        again = eval(view.code(), {"table": events}).to_arrow()
        assert view.to_arrow().select(same).equals(again.select(same))
    assert explorer.partitions.to_pandas().shape[0] == events.partitions().num_rows
    lines: dict[str, Any] = {}
    exec(explorer.code().replace("compute = ", "# compute = "), lines)
    assert lines["columns"].equals(events.columns())
    assert eval(explorer.histogram.code(), {"table": events}).column == "quantity"
    assert explorer.summary.to_arrow().num_rows == 8


@pytest.mark.spark
def test_flights_are_drawn_by_month_and_carrier(demo_home: Path) -> None:
    """Months look like months, on a time axis for the manifests."""
    flights = icestats.load("demo.flights")
    explorer = flights.explore()
    assert explorer.wait()
    assert explorer.partitions.figure.layout.xaxis.ticktext[0] == "2013-01"
    assert any("carrier = UA" in text for text in heat_texts(explorer))
    assert explorer.manifests.figure.layout.xaxis.type == "date"
    assert explorer.state.column == "dep_time"


@pytest.mark.spark
def test_a_column_that_does_not_exist(events: icestats.Table) -> None:
    """In the call it is an error; in the state it becomes a note under the histogram."""
    with pytest.raises(icestats.ColumnNotFoundError, match="no column 'nope'"):
        Explorer(events, column="nope")
    explorer = Explorer(events)
    assert explorer.wait()
    assert explorer.state.histogram is not None
    explorer.state.column = "nope"
    assert explorer.wait()
    assert explorer.state.histogram is None
    assert "no column &#x27;nope&#x27;" in explorer.histogram.body.children[0].value


def test_a_table_without_snapshots_shows_zeros_and_empties(empty_table: icestats.Table) -> None:
    """Nothing raises, nothing is unknown: there is nothing."""
    explorer = empty_table.explore()
    assert explorer.wait()
    assert "<b>0</b>" in explorer.summary.body.children[0].value
    assert "nothing has been written" in explorer.manifests.body.children[0].value
    assert "nothing has been written" in explorer.partitions.body.children[0].value
    assert "no KLL sketch" in explorer.histogram.body.children[0].value
    assert [card["nulls"]["t"] for card in cards(explorer).values()] == ["0 %"] * 4
    assert "Nothing has been written" in explorer.tree.grid.note
    assert "nothing has been written" in explorer.snapshots.grid.note
    explorer.compute.compute.click()
    assert explorer.wait()
    assert "has no snapshot yet" in explorer.compute.status.value
    assert not explorer.compute.compute.disabled


def test_without_statistics_the_histogram_says_what_to_do(hostile_table: icestats.Table) -> None:
    """Statistics that nobody has computed are no error."""
    explorer = Explorer(hostile_table, column="price")
    assert explorer.wait()
    note = explorer.histogram.body.children[0].value
    assert "no KLL sketch of column" in note
    assert "generate it below" in note
    assert "icestats-empty" in note


def test_strings_of_the_table_are_shown_as_text(hostile_table: icestats.Table) -> None:
    """HTML in names, values and partitions is escaped wherever HTML is read."""
    explorer = Explorer(hostile_table, column=HOSTILE)
    assert explorer.wait()
    html = "".join(html_of(explorer))
    assert "&lt;img" in html
    assert "<img" not in html
    figures = [explorer.manifests.figure, explorer.partitions.figure]
    drawn = "".join(str(json.loads(figure.picture)) for figure in figures)
    assert "&lt;b&gt;bold" in drawn
    assert "<img" not in drawn
    assert "<b>bold" not in drawn
    assert list(cards(explorer))[3] == HOSTILE


def test_a_damaged_manifest_is_a_note_and_the_rest_stands(hostile_table: icestats.Table) -> None:
    """A manifest that cannot be read leaves the first picture standing and says which file it was."""
    path = hostile_table.manifest_files()["manifest_path"][0].as_py()
    Path(path.removeprefix("file://")).write_bytes(b"Obj\x01 cut")
    explorer = hostile_table.refresh().explore()
    assert explorer.wait()
    assert explorer.manifests.figure is not None
    assert path.rsplit("/", 1)[1] in explorer.partitions.body.children[0].value
    assert path.rsplit("/", 1)[1] in explorer.columns.caption.value
    assert {card["ndv"]["t"] for card in cards(explorer).values()} == {"unknown"}
    explorer.tree.toggle(
        next(row["key"] for row in explorer.tree.grid._rows.window(0, 9) if path in row["cells"][0]["h"])
    )
    assert explorer.wait()
    assert any(path.rsplit("/", 1)[1] in row["cells"][0]["t"] for row in explorer.tree.grid._rows.window(0, 9)[1:])


def test_a_missing_manifest_list_is_a_note(hostile_table: icestats.Table) -> None:
    """Nothing can be drawn, and that is said."""
    path = hostile_table.snapshot.manifest_list
    Path(path.removeprefix("file://")).unlink()
    explorer = hostile_table.refresh().explore()
    assert explorer.wait()
    assert path.rsplit("/", 1)[1] in explorer.manifests.body.children[0].value
    assert path.rsplit("/", 1)[1] in explorer.summary.body.children[0].value
    assert path.rsplit("/", 1)[1] in explorer.tree.grid.note


def test_the_matrix_says_of_each_column_what_each_engine_has(hostile_table: icestats.Table) -> None:
    """Columns are text; words filter the rows; a chosen row shows commands and evidence."""
    explorer = hostile_table.explore()
    assert explorer.wait()
    matrix = explorer.coverage
    names = [column["name"] for column in matrix.grid.columns]

    def shown() -> list[dict[str, str]]:
        rows = matrix.grid._rows.window(0, 1000)
        return [dict(zip(names, (cell["t"] for cell in row["cells"]), strict=True)) for row in rows]

    price = next(row for row in shown() if (row["column"], row["statistic"]) == ("price", "min value"))
    assert price == {
        "column": "price",
        "statistic": "min value",
        "Spark": "ignored",
        "Trino": "fresh",
        "Presto": "ignored",
        "Hive": "ignored",
        "Impala": "ignored",
        "DuckDB": "ignored",
        "icestats": "fresh",
    }
    assert HOSTILE in {row["column"] for row in shown()}
    assert "num partitions" in {row["statistic"] for row in shown()}
    matrix.grid.on_filter("price missing")
    assert {row["column"] for row in shown()} == {"price", "price, by partition"}
    assert all("missing" in row.values() for row in shown())
    matrix.grid.on_filter("no such row")
    assert (shown(), matrix.grid.note) == ([], "No rows match: shorten the filter.")
    matrix.grid.on_filter("")
    key = next(key for key in matrix._groups if key.startswith("table-column:4:NDV"))
    matrix.grid.on_select(key, None)
    assert "icestats compute db.hostile --table --commit" in matrix.about.value
    assert not any("<img" in html for html in html_of(matrix))
    assert matrix.to_arrow().schema == icestats.schemas.COVERAGE
    assert matrix.code() == "table.coverage()"
