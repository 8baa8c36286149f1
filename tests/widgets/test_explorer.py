"""The explorer shows what the table has: every figure, what is unknown, and what could not be read."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import BinaryType, LongType, NestedField

import icestats
from icestats.iceberg.storage import Storage, local_path
from icestats.read.puffin.statistics_files import KLL, THETA
from icestats_widgets import Explorer
from icestats_widgets.page.part import Part
from icestats_widgets.parts import columns
from icestats_widgets.state import TABS

from .blocks_of_parts import find_blocks, find_rows, find_texts

HOSTILE = "<img src=x onerror=alert(1)>"
HALF = "\ud83d"


@pytest.fixture(scope="module")
def events(demo_home: Path) -> icestats.Table:
    return icestats.load("demo.events")


@pytest.fixture(scope="module")
def explorer(events: icestats.Table) -> Explorer:
    explorer = events.explore()
    assert explorer.wait()
    return explorer


def act(explorer: Explorer, action: str, value: Any) -> None:
    """Do what the page does when a person acts."""
    explorer._receive({"kind": "act", "action": action, "value": value, "view": "v", "number": 1})
    assert explorer.wait()


def marks(part: Part) -> list[ElementTree.Element]:
    """The marks of a part's picture that can be clicked."""
    picture = ElementTree.fromstring(next(find_blocks(part, "figure"))["svg"])
    return [mark for mark in picture.iter() if mark.get("data-key") is not None]


def titles(part: Part) -> str:
    """What the marks of a part's picture say."""
    return "\n".join(title.text or "" for mark in marks(part) for title in mark.iter() if title.tag.endswith("title"))


def columns_of(explorer: Explorer) -> dict[str, dict[str, dict[str, Any]]]:
    explorer.parts["columns"].document()
    grid = explorer.parts["columns"].grids["list"]
    names = [column["name"] for column in grid.columns]
    return {row["cells"][0]["t"]: dict(zip(names, row["cells"], strict=True)) for row in grid.first_rows(1000)}


@pytest.mark.spark
def test_the_head_has_the_totals_before_all_else(events: icestats.Table) -> None:
    explorer = Explorer(events)
    facts = {fact["label"]: fact["value"] for fact in explorer.head["facts"]}
    assert facts["records in data files"] == f"{events.overview().record_count:,}"
    assert facts["manifests"] == "31"
    assert explorer.head["title"] == "demo.events"
    assert explorer.wait()


@pytest.mark.spark
def test_only_the_parts_of_the_open_tab_are_sent(events: icestats.Table) -> None:
    explorer = events.explore()
    assert explorer.wait()
    sent = {name for name in explorer.parts if getattr(explorer, f"part_{name}")}
    assert sent == {name for name, part in explorer.parts.items() if part.tab == TABS[0]}
    act(explorer, "page.tab", {"name": "history"})
    assert explorer.tab == "history"
    assert explorer.part_snapshots["blocks"]
    assert explorer.heard == {"view": "v", "number": 1}


@pytest.mark.parametrize(
    "message",
    [
        "tab", {}, {"kind": "act"}, {"kind": "act", "action": "page.tab", "value": {"name": "nope"}},
        {"kind": "act", "action": "columns.nothing", "value": 7}, {"kind": "act", "action": "nobody.act"},
        {"kind": "act", "action": "columns.__init__", "value": {}},
        {"kind": "act", "action": "page.width", "value": []},
        {"kind": "act", "action": "histogram.bars.mark", "value": {"x": ["a"]}},
        {"kind": "act", "action": "partitions.map.mark", "value": {"plot": "no such plot", "x": [0, 1], "y": [0, 1]}},
        {"kind": "act", "action": "sizes.sizes.choose", "value": {"key": "x"}},
    ],
)  # fmt: skip
def test_acts_that_make_no_sense_change_nothing(hostile_table: icestats.Table, message: Any) -> None:
    explorer = hostile_table.explore()
    assert explorer.wait()
    before = (explorer.tab, explorer.state.column, explorer.state.selection, dict(explorer.state.clauses))
    explorer._receive(message)
    assert (explorer.tab, explorer.state.column, explorer.state.selection, dict(explorer.state.clauses)) == before


@pytest.mark.parametrize(
    ("action", "value"),
    [
        ("columns.list.search", {"text": f"a{HALF}"}),
        ("query.type", {"text": f"{HALF} = '{HALF}'"}),
        ("histogram.column", HALF),
        ("partitions.list.search", {"text": HALF, HALF: [HALF]}),
        (HALF, HALF),
    ],
)
def test_half_a_character_is_a_mark_from_the_start(hostile_table: icestats.Table, action: str, value: Any) -> None:
    """As a browser sends it of an emoji that was cut: no part fails over it, and what is sent is text."""
    explorer = hostile_table.explore()
    explorer.wait()
    for tab in TABS:
        act(explorer, "page.tab", {"name": tab})
        act(explorer, action, value)
        for part in explorer.parts.values():
            shown = json.dumps(part.document(), ensure_ascii=False).encode()
            assert b"unexpected" not in shown
    json.dumps([explorer.query, explorer.head, explorer.code()], ensure_ascii=False).encode()
    explorer._receive({"kind": "act", "action": "columns.list.search", "value": {}, "view": HALF, "number": 7})
    assert explorer.heard == {"view": "\ufffd", "number": 7}
    explorer.to_html().encode()


@pytest.mark.spark
def test_an_act_is_not_heard_while_another_thread_draws(
    hostile_table: icestats.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is set while a second thread holds the notifications of all traits may never be sent."""
    explorer = Explorer(hostile_table)
    # The other thread begins once the act's own drawing is over.
    monkeypatch.setattr(explorer, "_draw_again", lambda names: None)
    message = {"kind": "act", "action": "page.unknown", "view": "v", "number": 7}
    thread = threading.Thread(target=explorer._receive, args=[message])
    with explorer._drawing:
        thread.start()
        thread.join(0.5)
        assert explorer.heard == {}
    thread.join()
    assert explorer.heard == {"view": "v", "number": 7}


def test_columns_say_unknown_where_a_figure_is_unknown(explorer: Explorer, events: icestats.Table) -> None:
    """Every column has a line; of the one that was added half way, files lack what committed statistics know."""
    rows = columns_of(explorer)
    assert list(rows) == [field.name for field in events.schema.columns]
    assert rows["app_version"]["size"]["t"] == "unknown"
    assert "data files lack it" in rows["app_version"]["size"]["h"]
    assert rows["app_version"]["ndv"]["t"] == "4"
    assert rows["price"]["ndv"]["t"].startswith("≈ ")
    assert "exact: over the live rows, this snapshot" in rows["app_version"]["lower"]["h"]


@pytest.mark.spark
def test_a_click_on_a_column_draws_its_histogram(explorer: Explorer, events: icestats.Table) -> None:
    panel = explorer.parts["histogram"]
    for column in ("event_time", "event_type", "price"):
        number = [field.name for field in events.schema.columns].index(column)
        act(explorer, "columns.list.choose", {"key": f"c{number}"})
        assert panel.caption().startswith(f"{column}, ")
        part = explorer.state.histogram
        whole = events.histogram(column)
        assert sum(part.histogram.counts) + part.below + part.above == pytest.approx(whole.n)
        assert len(marks(panel)) == len(part.histogram.counts)


@pytest.mark.spark
def test_far_tails_are_left_out_and_counted(explorer: Explorer) -> None:
    """Skewed prices fill more than one bar; how many values lie outside is said, and they can be drawn."""
    panel = explorer.parts["histogram"]
    explorer.state.column = "price"
    assert explorer.wait()
    part = explorer.state.histogram
    assert part.is_cut
    assert f"{part.above:,.0f} values above" in find_texts(panel)
    check_code_has_the_bins(explorer)
    assert f"± {part.histogram.count_error:,.0f} at 99% confidence (rank error " in find_texts(panel)
    act(explorer, "histogram.tails", True)
    assert not explorer.state.histogram.is_cut
    assert explorer.state.histogram.histogram.edges[-1] == part.histogram.quantiles[1.0]
    act(explorer, "histogram.tails", False)


@pytest.mark.spark
def test_a_range_is_zoomed_into_and_another_column_has_another(explorer: Explorer) -> None:
    explorer.state.column = "price"
    assert explorer.wait()
    act(explorer, "histogram.bars.range", {"lower": "100", "upper": "200"})
    edges = explorer.state.histogram.histogram.edges
    assert 90 < edges[0] <= 100
    assert 200 <= edges[-1] < 210
    assert next(find_blocks(explorer.parts["histogram"], "figure"))["zoomed"]
    check_code_has_the_bins(explorer)
    explorer.state.column = "quantity"
    assert explorer.wait()
    assert explorer.state.window is None


def check_code_has_the_bins(explorer: Explorer) -> None:
    """Those that are drawn are among those of the code, whatever is cut off."""
    drawn = explorer.state.histogram.histogram
    found = eval(explorer.parts["histogram"].code(), {"table": explorer.state.table})
    first = found.edges.index(drawn.edges[0])
    assert found.edges[first : first + len(drawn.edges)] == drawn.edges
    assert tuple(found.counts[first : first + len(drawn.counts)]) == tuple(drawn.counts)
    assert found.kind == drawn.kind


@pytest.mark.spark
def test_what_is_dragged_over_a_histogram_is_a_clause_of_whole_bins(explorer: Explorer, events: icestats.Table) -> None:
    explorer.state.column = "price"
    assert explorer.wait()
    act(explorer, "histogram.bars.mark", {"plot": "values", "x": [0.1, 0.5], "y": [0, 1]})
    (text,) = explorer.state.clauses.values()
    events.bind(text)
    assert text.startswith("price >= ")
    act(explorer, "histogram.bars.clear", {})
    assert explorer.state.clauses == {}


@pytest.mark.spark
def test_each_partition_is_drawn(explorer: Explorer, events: icestats.Table) -> None:
    """The heat map of two partition fields has all records, and a click selects what it says."""
    part = explorer.parts["partitions"]
    act(explorer, "page.width", {"figures": {"partitions.map": 1180}})
    assert "2026-09-01" in titles(part)
    key = marks(part)[0].get("data-key")
    act(explorer, "partitions.map.choose", {"key": key})
    assert explorer.state.selection is not None
    assert 0 < explorer.state.part.record_count < events.overview().record_count
    act(explorer, "partitions.map.choose", {"key": key})
    assert explorer.state.selection is None


@pytest.mark.spark
def test_a_step_of_the_overlap_selects_the_manifests_that_overlap_there(explorer: Explorer) -> None:
    part = explorer.parts["manifests"]
    key = next(str(mark.get("data-key")) for mark in marks(part) if str(mark.get("data-key")).startswith("over "))
    act(explorer, "manifests.ranges.choose", {"key": key})
    paths = explorer.state.selection.manifest_paths
    assert len(paths) > 1
    listed = find_rows(part, "selected")
    assert {row["path"] for row in listed} == {path.rsplit("/", 1)[-1] for path in paths}
    files = explorer.state.table.manifest_files().filter(pc.field("manifest_path").isin(paths))
    assert sum(row["cells"][2]["v"] for row in part.grids["selected"].first_rows(99)) == sum(
        pc.sum(files[name]).as_py() for name in ("added_files_count", "existing_files_count")
    )
    act(explorer, "manifests.ranges.clear", {})
    assert explorer.state.selection is None
    assert list(find_blocks(part, "grid")) == []


@pytest.mark.spark
def test_the_smallest_partitions_come_first(explorer: Explorer, events: icestats.Table) -> None:
    assert explorer.parts["sizes"].document()["blocks"]
    sizes = [row["cells"][1]["v"] for row in explorer.parts["sizes"].grids["list"].first_rows(1000)]
    assert sizes == sorted(events.partitions()["total_data_file_size_in_bytes"].to_pylist())


def test_a_partition_that_is_far_too_small_stands_out(catalog: SqlCatalog, catalog_properties: dict[str, str]) -> None:
    """Its share of the median is said with two digits, however small it is."""
    values = np.random.default_rng(1).random(400_001)
    rows = pa.table({"part": [0, *[1] * 200_000, *[2] * 200_000], "value": pa.array(values)})
    table = catalog.create_table("db.uneven", rows.schema)
    with table.update_spec() as change:
        change.add_identity("part")
    table.append(rows)
    explorer = icestats.load("db.uneven", catalog=catalog_properties).explore()
    assert explorer.wait()
    smallest = find_rows(explorer.parts["sizes"], "list")[0]
    assert 0 < float(smallest["median"].removesuffix(" ×")) < 0.001
    assert explorer.parts["manifests"].document()["caption"].startswith("1 manifest, by part; none overlap.")


def test_partitions_of_an_earlier_spec_are_named_and_chosen_by_their_own_values(
    renamed_fields: Any, catalog_properties: dict[str, str]
) -> None:
    explorer = icestats.load("db.renamed", catalog=catalog_properties).explore()
    assert explorer.wait()
    found = find_rows(explorer.parts["sizes"], "list")
    assert sorted(row["partition"] for row in found) == ["1", "2", "x"]
    grid = explorer.parts["sizes"].grids["list"]
    key = next(row["key"] for row in grid.first_rows(9) if row["cells"][0]["t"] == "2")
    explorer._receive({"kind": "act", "action": "sizes.list.choose", "value": {"key": key}, "view": "v", "number": 1})
    assert explorer.wait()
    assert explorer.state.selection is not None
    assert explorer.state.selection.text == "partitions: q 2"
    assert explorer.parts["partitions"].to_arrow()["data_record_count"].to_pylist() == [1]
    assert explorer.state.selected_part.record_count == 1


@pytest.mark.spark
def test_a_part_gives_its_data_and_the_line_that_makes_it(explorer: Explorer, events: icestats.Table) -> None:
    """Each part gives Arrow, and Python that gives the same."""
    explorer.state.column = "quantity"
    explorer.state.row_filter = "quantity = 2"
    assert explorer.wait()
    for name in ("manifests", "partitions", "sizes", "outline", "columns"):
        part = explorer.parts[name]
        assert part.to_arrow().num_rows == eval(part.code(), {"table": events}).num_rows
    lines: dict[str, Any] = {}
    exec(explorer.code().replace("compute = ", "# compute = "), lines)
    assert lines["columns"].equals(events.columns())
    explorer.state.column, explorer.state.kind = "device_id", "equi-height"
    assert explorer.wait()
    part = explorer.parts["histogram"]
    assert part.to_arrow().equals(eval(part.code(), {"table": events}).to_arrow())
    explorer.state.row_filter = ""
    assert explorer.wait()


@pytest.mark.spark
def test_no_message_is_large(explorer: Explorer) -> None:
    for part in explorer.parts.values():
        assert len(json.dumps(part.document())) < 500_000, part.name


@pytest.mark.spark
def test_a_column_that_does_not_exist(events: icestats.Table) -> None:
    """In the call it is an error; in the state it becomes a note in place of the histogram."""
    with pytest.raises(icestats.ColumnNotFoundError, match="no column 'nope'"):
        Explorer(events, column="nope")
    explorer = Explorer(events)
    assert explorer.wait()
    assert explorer.state.histogram is not None
    explorer.state.column = "nope"
    assert explorer.wait()
    assert explorer.state.histogram is None
    assert "no column 'nope'" in find_texts(explorer.parts["histogram"])


def test_a_table_whose_rows_are_all_deleted_is_not_said_to_be_one_that_nobody_has_written_to(
    empty_table: icestats.Table, catalog: SqlCatalog
) -> None:
    table = catalog.load_table("db.empty")
    table.append(pa.table({"id": [1, 2]}))
    table.delete("id > 0")
    explorer = empty_table.refresh().explore()
    assert explorer.wait()
    assert len(explorer.state.table.metadata.snapshots) == 2
    assert not [name for name, part in explorer.parts.items() if "been written" in part.document()["caption"]]


def test_a_table_without_snapshots_shows_zeros_and_empties(empty_table: icestats.Table) -> None:
    """Nothing raises, nothing is unknown: there is nothing."""
    explorer = empty_table.explore()
    assert explorer.wait()
    assert "0" in {fact["value"] for fact in explorer.head["facts"]}
    for name in ("manifests", "partitions"):
        document = explorer.parts[name].document()
        assert (document["blocks"], "the table has no files" in document["caption"]) == ([], True)
    assert "has no snapshot yet" in find_texts(explorer.parts["histogram"])
    assert [row["nulls"]["t"] for row in columns_of(explorer).values()] == ["–"] * 4
    explorer.parts["outline"].document()
    assert "Nothing has been written" in explorer.parts["outline"].grids["tree"].note


def test_without_statistics_the_histogram_says_what_to_do(hostile_table: icestats.Table) -> None:
    """Statistics that nobody has computed are no error."""
    explorer = Explorer(hostile_table, column="price")
    assert explorer.wait()
    (block,) = explorer.parts["histogram"].document()["blocks"]
    assert "no KLL sketch of column" in block["text"]
    assert block["live"] == "The tab Statistics can make one."
    assert block["tone"] == "quiet"


def test_a_distribution_that_cannot_be_made_is_not_promised(catalog: SqlCatalog, catalog_properties: Any) -> None:
    """Bytes have no order, and a filter on a column that is not there says nothing of any other."""
    schema = Schema(NestedField(1, "raw", BinaryType()), NestedField(2, "price", LongType()))
    catalog.create_table("db.raw", schema).append(pa.table({"raw": [b"a"], "price": [1]}))
    explorer = Explorer(icestats.load("db.raw", catalog=catalog_properties), column="raw")
    for reason in ("no order that means anything", "names no column 'gone'"):
        assert explorer.wait()
        (block,) = explorer.parts["histogram"].document()["blocks"]
        assert reason in block["text"]
        assert "live" not in block
        explorer.state.column, explorer.state.row_filter = "price", "gone < 3"


def test_strings_of_the_table_are_shown_as_text(hostile_table: icestats.Table) -> None:
    """No picture, report or saved page has markup of the table's making; texts have its very characters."""
    explorer = Explorer(hostile_table, column=HOSTILE)
    assert explorer.wait()
    html = explorer.to_html()
    assert "&lt;img" in html
    assert "<img src=x" not in html
    assert "<b>bold" not in html
    assert "<img src=x" not in explorer._picture()
    pictures = [block["svg"] for part in explorer.parts.values() for block in find_blocks(part, "figure")]
    assert pictures
    for picture in pictures:
        assert not [element for element in ElementTree.fromstring(picture).iter() if element.tag.endswith("}img")]
    assert list(columns_of(explorer))[3] == HOSTILE


@pytest.mark.parametrize(
    ("failure", "act"), [(KeyboardInterrupt, {"tab": "columns"}), (ZeroDivisionError, {"column": "id"})]
)
def test_a_part_whose_drawing_has_failed_is_drawn_whole_the_next_time(
    hostile_table: icestats.Table, monkeypatch: pytest.MonkeyPatch, failure: type[BaseException], act: dict[str, str]
) -> None:
    """An interrupt of the kernel, too: it left a table of columns without a row."""
    explorer = Explorer(hostile_table)
    assert explorer.wait()

    def fail(*_: Any) -> None:
        raise failure

    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr(columns, "build_column_rows", fail)
        explorer.state.tab = "columns"
    assert list(columns_of(explorer)) == [field.name for field in hostile_table.schema.columns]
    ((name, value),) = act.items()
    explorer.state.tab = "overview" if name == "tab" else "columns"
    setattr(explorer.state, name, value)
    (drawn,) = [block for block in explorer.part_columns["blocks"] if block["is"] == "grid"]
    assert drawn["row_count"] == len(hostile_table.schema.columns)


def test_counts_of_any_length_in_statistics_are_unknown(hostile_location: str) -> None:
    """What a blob's properties state of 5,000 digits is no number of Python's: nothing fails over it."""
    path = local_path(hostile_location)
    document = json.loads(path.read_text())
    snapshot = {"snapshot-id": document["current-snapshot-id"]}
    stated = {"properties": {"ndv": "9" * 5_000, "k": "9" * 5_000}, "fields": [1], "sequence-number": 1, **snapshot}
    blobs = [{"type": kind, **stated} for kind in (THETA, KLL)]
    sizes = {"file-size-in-bytes": 9, "file-footer-size-in-bytes": 9}
    entry = {"statistics-path": f"{path.parent}/no.puffin", "blob-metadata": blobs, **sizes, **snapshot}
    path.write_text(json.dumps({**document, "statistics": [entry]}))
    explorer = icestats.load(str(path)).explore()
    assert explorer.wait()
    assert "unexpected" not in json.dumps([part.document() for part in explorer.parts.values()])


def test_a_damaged_manifest_is_a_note_and_the_rest_stands(hostile_table: icestats.Table) -> None:
    """A manifest that cannot be read leaves the first picture standing and says which file it was."""
    path = hostile_table.manifest_files()["manifest_path"][0].as_py()
    name = path.rsplit("/", 1)[1]
    Path(path.removeprefix("file://")).write_bytes(b"Obj\x01 cut")
    explorer = hostile_table.refresh().explore()
    assert explorer.wait()
    assert marks(explorer.parts["manifests"])
    assert name in explorer.parts["partitions"].caption()
    assert name in explorer.parts["columns"].caption()
    assert {row["ndv"]["t"] for row in columns_of(explorer).values()} == {"unknown"}
    explorer.parts["outline"].document()
    tree = explorer.parts["outline"].grids["tree"]
    tree.act(
        "open", {"key": next(row["key"] for row in tree.first_rows(9) if path in row["cells"][0]["h"]), "open": True}
    )
    assert explorer.wait()
    explorer.parts["outline"].document()
    assert any(name in row["cells"][0]["t"] for row in tree.first_rows(9)[1:])


def test_a_missing_manifest_list_is_a_note(hostile_table: icestats.Table) -> None:
    """Nothing can be drawn, and that is said."""
    path = hostile_table.snapshot.manifest_list
    Path(path.removeprefix("file://")).unlink()
    explorer = hostile_table.refresh().explore()
    assert explorer.wait()
    assert path.rsplit("/", 1)[1] in explorer.head["subtitle"]
    assert explorer.head["is_bad"]
    assert path.rsplit("/", 1)[1] in find_texts(explorer.parts["manifests"])


def test_the_table_can_be_read_again(hostile_table: icestats.Table, catalog: Any) -> None:
    """What others have written since is there after Reload."""
    explorer = hostile_table.explore()
    assert explorer.wait()
    table = catalog.load_table("db.hostile")
    table.append(table.scan(limit=1).to_arrow())
    act(explorer, "page.reload", {})
    assert "121" in {fact["value"] for fact in explorer.head["facts"]}
    explorer.state.tab = "history"
    assert len(find_rows(explorer.parts["snapshots"], "snapshots")) == 3


def test_what_was_read_before_a_commit_is_not_shown_behind_it(hostile_table: icestats.Table) -> None:
    """Reload and Commit pressed one after the other: an answer to Reload that is older is read again."""
    explorer = hostile_table.explore()
    assert explorer.wait()
    older = hostile_table.refresh()
    hostile_table.compute(table=False, partitions=False, manifests=True).commit()
    explorer.state.table = hostile_table.refresh()
    explorer._coordinator._reloaded(hostile_table, older)
    assert explorer.wait()
    assert len(explorer.state.table.metadata.statistics) == 1
    assert not explorer.state.loading


def test_an_error_of_a_storages_own_client_is_a_note(
    hostile_table: icestats.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Expired credentials, say, behind a Reload: what is shown next is said to be unknown, and can be read again."""
    explorer = hostile_table.explore()
    assert explorer.wait()
    read = Storage.read

    def fail(self: Storage, location: str, *where: Any) -> bytes:
        if "snap-" in location:
            raise EOFError("the token has expired")
        return read(self, location, *where)

    with monkeypatch.context() as patch:
        patch.setattr(Storage, "read", fail)
        act(explorer, "page.reload", {})
        assert "the token has expired" in explorer.state.notes["overview"]
        assert "the token has expired" in explorer.state.notes["columns"]
        assert not explorer.state.loading
    explorer.state.set_note("layout_report", "the token has expired")
    act(explorer, "page.reload", {})
    assert not {"overview", "layout_report"} & set(explorer.state.notes)
    assert explorer.state.overview.record_count == 120
    assert explorer.state.layout_report is not None


def test_explorers_of_one_table_share_what_is_read(hostile_table: icestats.Table, hostile_location: str) -> None:
    """A second one reads nothing again; of another version, or pinned, it is another table."""
    first = hostile_table.explore()
    assert first.wait()
    assert Explorer(hostile_table.refresh()).state.table is hostile_table
    other = icestats.load(hostile_location)
    assert Explorer(other).state.table is other
    pinned = icestats.load(hostile_location, snapshot=other.snapshot.snapshot_id if other.snapshot else None)
    assert Explorer(pinned).state.table is pinned


def test_a_closed_explorer_leaves_nothing_in_memory(hostile_table: icestats.Table) -> None:
    async def is_gone() -> bool:
        explorer = Explorer(hostile_table)
        assert explorer.wait()
        explorer.close()
        gone = threading.Event()
        weakref.finalize(explorer, gone.set)
        del explorer
        # A thread that has delivered its work ends a moment later; and while another collects, `collect` does nothing.
        for _ in range(100):
            gc.collect()
            if gone.wait(0.1):
                break
        return gone.is_set()

    # In a thread of its own: as in a notebook, a loop runs there, which has something of the explorer's to do later.
    with ThreadPoolExecutor() as pool:
        assert pool.submit(asyncio.run, is_gone()).result()


def test_a_plan_is_asked_first_and_partitions_are_read_once(
    hostile_table: icestats.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person who types a filter waits for its plan; what else follows the filter reads no partitions anew."""
    explorer = Explorer(hostile_table)
    assert explorer.wait()
    explorer.state.row_filter = "id < 5"
    assert explorer.wait()
    started: list[str] = []
    run, partitions = explorer._background.run, hostile_table.partitions
    monkeypatch.setattr(explorer._background, "run", lambda kind, *work: (started.append(kind), run(kind, *work)))
    monkeypatch.setattr(hostile_table, "partitions", lambda: (started.append("partitions"), partitions())[1])
    explorer.state.row_filter = "id < 70"
    assert explorer.wait()
    assert started[:2] == ["outlook", "question"]
    assert {"histogram", "asked_part"} <= set(started)
    assert "partitions" not in started
