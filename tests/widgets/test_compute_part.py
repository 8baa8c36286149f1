"""The panel that computes, previews, commits and undoes: sketches with Spark, statistics of metadata without."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import icestats
from icestats_widgets import Explorer
from icestats_widgets.page.part import Part
from icestats_widgets.parts.commit_preview import build_accuracy_rows, build_found_rows
from icestats_widgets.reading.compute_request import ComputeRequest, describe_cost, find_blob_ages, match_columns
from tests.committed_statistics import THETA, blob, commit, remove
from tests.computed_statistics import compute_here
from tests.widgets.blocks_of_parts import click, find_blocks, find_button, find_rows, find_texts
from tests.widgets.conftest import HOSTILE, build_rows

FOLLOWING = ("start", "cancel", "preview", "commit", "undo")


@pytest.fixture
def explorer(hostile_table: icestats.Table) -> Explorer:
    explorer = hostile_table.explore()
    assert explorer.wait()
    return explorer


def press(part: Part, verb: str) -> None:
    click(part, find_button(part, f"compute.{verb}"))


def is_disabled(part: Part, *verbs: str) -> tuple[bool, ...]:
    return tuple(find_button(part, f"compute.{verb}")["disabled"] for verb in verbs)


def choose_manifests(part: Part) -> None:
    part.act("kind_table", False)
    part.act("kind_manifests", True)


def commit_and_ask_to_undo(explorer: Explorer) -> Part:
    """Commit statistics of manifests, and show what undoing that would bring."""
    panel = explorer.parts["compute"]
    choose_manifests(panel)
    for verb in ("start", "commit", "undo"):
        press(panel, verb)
        assert explorer.wait()
    return panel


@pytest.mark.spark
def test_compute_preview_commit(explorer: Explorer, hostile_table: icestats.Table, spark: Any) -> None:
    """A preview follows a scan and changes nothing; after the commit everything shows it."""
    panel = explorer.parts["compute"]
    assert is_disabled(panel, "preview", "commit", "undo") == (True, True, True)
    press(panel, "start")
    assert explorer.wait(120)
    assert explorer.state.notes.get("compute") is None
    assert explorer.state.phase == "previewed"
    assert not explorer.state.report.committed
    assert str(explorer.state.report) in find_texts(panel)
    assert {row["column"]: row["ndv_before"] for row in find_rows(panel, "accuracy")}[HOSTILE] == "none"
    assert {row["column"]: row["ndv_after"] for row in find_rows(panel, "accuracy")}["id"] == "120"
    assert "Trino plans with the NDV of id" in find_texts(panel)
    facts = [one for block in find_blocks(panel, "facts") for one in block["facts"]]
    assert {"to write", "of the table", "table"} <= {one["label"] for one in facts}
    assert hostile_table.refresh().metadata.statistics == ()
    press(panel, "commit")
    assert explorer.wait()
    assert explorer.state.report.committed
    assert sum(explorer.state.histogram.histogram.counts) == 100
    assert next(r for r in explorer.state.columns.to_pylist() if r["name"] == "id")["ndv"] == 120
    matrix = {row["column"]: row for row in find_rows(explorer.parts["statistics"], "matrix")}
    assert {row["ndv"] for row in matrix.values()} == {"fresh"}
    assert {row["frequent_items"] for row in matrix.values()} == {"fresh"}
    assert len(hostile_table.refresh().metadata.statistics) == 1
    columns = explorer.state.columns
    for name, said in (("still holds every value", "120"), ("within 3.1%", "≈ 120")):
        told = [[("ndv", f"estimate: Theta sketch, {name}, this snapshot")]] * columns.num_rows
        provenance = pa.array(told, columns.schema.field("provenance").type)
        changed = columns.set_column(columns.column_names.index("provenance"), "provenance", provenance)
        rows = build_accuracy_rows(explorer.state.statistics, find_blob_ages(explorer.state.sketches), changed)
        assert [row["cells"][1]["t"] for row in rows if row["cells"][0]["t"] == "id"] == [said]


def test_the_error_of_distinct_values_is_that_of_the_answer(
    catalog: SqlCatalog, catalog_properties: dict[str, str]
) -> None:
    """At 95 % confidence, as `columns()` says it once it is committed."""
    rows = pa.table({"id": list(range(20_000))})
    catalog.create_table("db.numbers", rows.schema).append(rows)
    statistics = compute_here(icestats.load("db.numbers", catalog=catalog_properties))
    (known,) = statistics.to_arrow().to_pylist()
    told = f"≈ {known['ndv']:,} ± {known['ndv_relative_error']:.1%}"
    (found,), (accuracy,) = build_found_rows(statistics), build_accuracy_rows(statistics, {}, None)
    assert [found["cells"][4]["t"], accuracy["cells"][2]["t"]] == [told, told]


def test_what_was_estimated_before_a_commit_is_of_the_filter_that_is_shown(hostile_table: icestats.Table) -> None:
    """Another filter is asked while it is committed, and estimated after it."""
    table, is_shown = SlowlyEstimated(hostile_table), threading.Event()
    explorer = Explorer(table)  # type: ignore[arg-type]
    assert explorer.wait()
    explorer.state.row_filter = "id < 3"
    assert explorer.wait()
    panel, estimates = explorer.parts["compute"], explorer.parts["estimates"]
    choose_manifests(panel)
    press(panel, "start")
    assert explorer.wait()
    explorer.state.row_filter = "id < 90"
    explorer.state.observe(lambda _: is_shown.set(), "table")
    press(panel, "commit")
    assert is_shown.wait(60)
    table.gate.set()
    assert explorer.wait()
    assert explorer.state.report.committed
    assert explorer.state.estimates.row_filter == "id < 90"
    assert {row["before"] for row in find_rows(estimates, "sources")} == {"–"}
    panel.act("kind_partitions", True)
    press(panel, "start")
    assert explorer.wait()
    press(panel, "commit")
    assert explorer.wait()
    assert {row["before"] for row in find_rows(estimates, "sources")} == {"90", "unknown"}


class SlowlyEstimated:
    """A table in which the rows of one filter are estimated, and told once a gate is open."""

    def __init__(self, table: icestats.Table) -> None:
        self._table, self.gate = table, threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    def estimate(self, row_filter: str, **options: Any) -> Any:
        found = self._table.estimate(row_filter, **options)
        assert row_filter != "id < 90" or self.gate.wait(60)
        return found


def test_there_is_no_code_where_there_is_nothing_to_compute(explorer: Explorer, empty_table: icestats.Table) -> None:
    """`table.compute()` would scan all columns where nothing is chosen, and fail on an empty table."""
    panel = explorer.parts["compute"]
    panel.act("kind_table", False)
    assert panel.request.is_empty
    assert panel.code() == ""
    empty = empty_table.explore()
    assert empty.wait()
    names: dict[str, Any] = {"table": empty_table}
    for part in empty.parts.values():
        exec(part.code(), names)


@pytest.mark.spark
def test_only_the_chosen_columns_are_scanned(explorer: Explorer, spark: Any) -> None:
    """Columns are chosen in the panel; all are by default."""
    panel = explorer.parts["compute"]
    assert panel.request.columns is None
    panel.act("columns", ["price", "no such column"])
    assert panel.code() == "table.compute(columns=['price']).commit(dry_run=True)"
    press(panel, "start")
    assert explorer.wait(120)
    assert panel.to_arrow()["name"].to_pylist() == ["price"]
    finished, total = explorer.state.progress
    assert finished == total > 0
    panel.act("values.open", {"open": True})
    assert [row["column"] for row in find_rows(panel, "found")] == ["price"]


@pytest.mark.spark
def test_a_scan_can_be_cancelled(explorer: Explorer, spark: Any) -> None:
    """After a cancel nothing is found, the panel says so, and a new scan can start."""
    panel = explorer.parts["compute"]
    press(panel, "start")
    press(panel, "cancel")
    assert explorer.state.phase in ("cancelling", "idle")
    assert explorer.wait(120)
    assert (explorer.state.phase, explorer.state.statistics) == ("idle", None)
    assert "Cancelled: nothing has been changed." in find_texts(panel)
    press(panel, "start")
    assert explorer.wait(120)
    assert explorer.state.phase == "previewed"


@pytest.mark.spark
def test_a_scan_goes_on_where_that_of_another_explorer_is_cancelled(
    explorer: Explorer, hostile_table: icestats.Table, spark: Any
) -> None:
    """Of the same table: the jobs of both are told by one name."""
    other = hostile_table.explore()
    assert other.wait()

    def cancel(change: Any) -> None:
        finished, total = change["new"]
        if finished < total:
            other.parts["compute"].act("cancel", {})

    explorer.state.observe(cancel, "progress")
    press(explorer.parts["compute"], "start")
    press(other.parts["compute"], "start")
    assert explorer.wait(120)
    assert (explorer.state.phase, explorer.state.notes.get("compute")) == ("previewed", None)
    assert other.wait(120)


@pytest.mark.spark
def test_a_cancel_in_the_last_moment_counts(explorer: Explorer, spark: Any) -> None:
    """Where all tasks have finished and nothing is left to stop, what was found is dropped."""
    panel = explorer.parts["compute"]

    def cancel(change: Any) -> None:
        finished, total = change["new"]
        if finished == total > 0:
            panel.act("cancel", {})

    explorer.state.observe(cancel, "progress")
    press(panel, "start")
    assert explorer.wait(120)
    assert (explorer.state.phase, explorer.state.statistics) == ("idle", None)
    assert "Cancelled: nothing has been changed." in find_texts(panel)


def test_statistics_of_metadata_are_committed_and_undone(explorer: Explorer, hostile_table: icestats.Table) -> None:
    """Without Spark: the state's table is that of each step, and undoing waits for a second word."""
    panel, state = explorer.parts["compute"], explorer.state
    choose_manifests(panel)
    press(panel, "start")
    assert explorer.wait()
    assert (state.phase, state.statistics is None) == ("previewed", False)
    assert "icestats-manifest-stats-v1" in find_texts(panel)
    assert hostile_table.refresh().metadata.statistics == ()
    press(panel, "commit")
    assert explorer.wait()
    assert (state.phase, len(state.table.metadata.statistics)) == ("committed", 1)
    assert is_disabled(panel, "commit", "undo") == (True, False)
    press(panel, "start")
    assert explorer.wait()
    assert "nothing to commit" in find_texts(panel)
    assert (state.phase, is_disabled(panel, "commit")) == ("previewed", (True,))
    press(panel, "undo")
    assert explorer.wait()
    assert (state.phase, len(hostile_table.refresh().metadata.statistics)) == ("checked", 1)
    card = next(one for one in find_blocks(panel, "card") if one["id"] == "removal")
    figures = {one["label"]: one["value"] for one in card["blocks"][0]["facts"]}
    assert (figures["taken away"], figures["statistics afterwards"]) == ("1 file", "none")
    assert [one["text"] for one in card["blocks"][1:]] == [
        "Takes away: manifest statistics.",
        "Brings back nothing.",
        "• no engine loses an NDV",
        "Note: these statistics have replaced none that the metadata log knows",
    ]
    assert "would take" in find_texts(panel)
    press(panel, "keep")
    assert state.phase == "previewed"
    panel.act("undo_now", {})
    assert (explorer.wait(), state.phase) == (True, "previewed")
    press(panel, "undo")
    assert explorer.wait()
    press(panel, "undo_now")
    assert explorer.wait()
    assert (state.phase, state.table.metadata.statistics) == ("undone", ())
    assert hostile_table.refresh().metadata.statistics == ()
    assert is_disabled(panel, "preview", "undo") == (False, True)


def test_undoing_says_what_comes_back(catalog: SqlCatalog, hostile_table: icestats.Table) -> None:
    """Kinds and columns of what goes and of what returns, in words; other snapshots' files stay."""
    table = catalog.load_table("db.hostile")
    first = table.snapshots()[0]
    commit(table, blob(table, THETA, 1, b"theta", snapshot=first, ndv="7"), snapshot_id=first.snapshot_id)
    commit(catalog.load_table("db.hostile"), blob(table, THETA, 3, b"theta", ndv="7"), keep_earlier=False)
    explorer = hostile_table.refresh().explore()
    assert explorer.wait()
    panel = commit_and_ask_to_undo(explorer)
    card = next(one for one in find_blocks(panel, "card") if one["id"] == "removal")
    figures = {one["label"]: one["value"] for one in card["blocks"][0]["facts"]}
    assert figures["statistics afterwards"] == "1 file from before, 1 file of other snapshots"
    said = [one["text"] for one in card["blocks"][1:]]
    assert said[1] == "Brings back: distinct values (Theta) of price."
    assert "manifest statistics" in said[0]
    press(panel, "undo_now")
    assert explorer.wait()
    card = next(one for one in find_blocks(panel, "card") if one["id"] == "removal")
    assert (card["title"], card["actions"]) == ("What undoing has brought", [])
    assert card["blocks"][0]["facts"][2]["value"] == "1 file from before, 1 file of other snapshots"


def test_what_others_have_committed_alike_is_not_said_to_be_committed(
    explorer: Explorer, hostile_table: icestats.Table
) -> None:
    panel, state = explorer.parts["compute"], explorer.state
    choose_manifests(panel)
    press(panel, "start")
    assert explorer.wait()
    hostile_table.compute(table=False, manifests=True).commit()
    press(panel, "commit")
    assert explorer.wait()
    assert (state.phase, state.report.committed, len(state.table.metadata.statistics)) == ("present", False, 1)
    assert "Nothing was written: others have committed the same." in find_texts(panel)
    assert "Committed." not in find_texts(panel)


def test_what_others_committed_meanwhile_is_not_undone(
    explorer: Explorer, catalog: SqlCatalog, hostile_table: icestats.Table
) -> None:
    """Only what was shown is taken out: where the snapshot has other statistics by then, one has to look again."""
    panel, state = commit_and_ask_to_undo(explorer), explorer.state
    table = catalog.load_table("db.hostile")
    remove(table)
    commit(catalog.load_table("db.hostile"), blob(table, THETA, 3, b"theta", ndv="7"))
    press(panel, "undo_now")
    assert explorer.wait()
    assert "others have changed these statistics since" in find_texts(panel)
    assert len(hostile_table.refresh().metadata.statistics) == 1
    assert state.phase != "undone"


def test_what_others_commit_right_behind_the_last_look_is_not_undone(
    explorer: Explorer, catalog: SqlCatalog, hostile_table: icestats.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a second explorer in which the same button is pressed at once."""
    panel, look = commit_and_ask_to_undo(explorer), icestats.Table.remove_statistics

    def look_first(table: icestats.Table, *args: Any, **options: Any) -> Any:
        found = look(table, *args, **options)
        monkeypatch.undo()
        theirs = catalog.load_table("db.hostile")
        commit(theirs, blob(theirs, THETA, 3, b"theta", ndv="7"))
        return found

    monkeypatch.setattr(icestats.Table, "remove_statistics", look_first)
    press(panel, "undo_now")
    assert explorer.wait()
    assert "others changed these statistics" in find_texts(panel)
    [entry] = catalog.load_table("db.hostile").metadata.statistics
    assert [one.type for one in entry.blob_metadata] == [THETA]
    assert explorer.state.phase != "undone"


def compute_before_an_append(explorer: Explorer, catalog: SqlCatalog) -> Part:
    """Make statistics of manifests, to which others append then."""
    panel = explorer.parts["compute"]
    choose_manifests(panel)
    press(panel, "start")
    assert explorer.wait()
    catalog.load_table("db.hostile").append(build_rows(2))
    return panel


def test_a_commit_can_be_undone_though_others_have_appended_before_it(
    explorer: Explorer, catalog: SqlCatalog, hostile_table: icestats.Table
) -> None:
    """The panel then shows their snapshot; what it has committed itself is of the one before."""
    panel, state = compute_before_an_append(explorer, catalog), explorer.state
    press(panel, "commit")
    assert explorer.wait()
    assert is_disabled(panel, "undo") == (False,)
    for verb in ("undo", "undo_now"):
        press(panel, verb)
        assert explorer.wait()
    assert (state.phase, hostile_table.refresh().metadata.statistics) == ("undone", ())
    assert is_disabled(panel, "undo") == (True,)


def test_what_is_undone_is_the_own_commit_though_others_have_statistics_of_a_later_snapshot(
    explorer: Explorer, catalog: SqlCatalog, hostile_table: icestats.Table
) -> None:
    """As an INSERT of Trino's leaves them, which the panel shows once it has committed."""
    panel, state = compute_before_an_append(explorer, catalog), explorer.state
    theirs = catalog.load_table("db.hostile")
    commit(theirs, blob(theirs, THETA, 3, b"theta", ndv="7"))
    for verb in ("commit", "undo", "undo_now"):
        press(panel, verb)
        assert explorer.wait()
    left = [entry.snapshot_id for entry in hostile_table.refresh().metadata.statistics]
    assert (state.phase, left) == ("undone", [theirs.current_snapshot().snapshot_id])


def test_a_commit_that_is_refused_loses_nothing(hostile_location: str) -> None:
    """A table that was opened by its metadata is read-only: the reason stands in the panel, beside what was found."""
    explorer = icestats.load(hostile_location).explore()
    assert explorer.wait()
    panel = explorer.parts["compute"]
    choose_manifests(panel)
    press(panel, "start")
    assert explorer.wait()
    said = [block["text"] for block in find_blocks(panel, "text") if block.get("tone") == "bad"]
    assert len(said) == 1
    assert "read-only" in said[0]
    assert "\n" not in said[0]
    assert is_disabled(panel, "preview", "commit") == (False, True)
    assert explorer.state.statistics is not None


def test_why_a_commit_was_refused_is_gone_once_it_is_made(explorer: Explorer, catalog: SqlCatalog) -> None:
    panel = explorer.parts["compute"]
    choose_manifests(panel)
    press(panel, "start")
    assert explorer.wait()
    catalog.rename_table("db.hostile", "db.away")
    press(panel, "commit")
    assert explorer.wait()
    assert [block for block in find_blocks(panel, "text") if block.get("tone") == "bad"] != []
    assert explorer.state.phase == "previewed"
    catalog.rename_table("db.away", "db.hostile")
    press(panel, "commit")
    assert explorer.wait()
    assert explorer.state.phase == "committed"
    assert [block for block in find_blocks(panel, "text") if block.get("tone") == "bad"] == []


def test_what_is_done_is_said_where_the_table_cannot_be_read_anew(explorer: Explorer, catalog: SqlCatalog) -> None:
    """The storage fails right behind the commit, and behind the undoing: neither can be done a second time."""
    panel, state = explorer.parts["compute"], explorer.state
    folder = Path(catalog.load_table("db.hostile").location().removeprefix("file://"))
    away = folder.with_name("away")
    choose_manifests(panel)
    press(panel, "start")
    assert explorer.wait()
    state.observe(lambda change: folder.rename(away) if change["new"][-1:] == ["committed"] else None, "steps")
    press(panel, "commit")
    assert explorer.wait()
    away.rename(folder)
    assert len(catalog.load_table("db.hostile").metadata.statistics) == 1
    assert (state.phase, state.report.committed, is_disabled(panel, "commit")) == ("committed", True, (True,))
    assert "Committed, but the tabs show the table as it was before" in find_texts(panel)


def test_what_is_undone_is_said_where_the_branch_that_is_shown_is_gone(
    catalog: SqlCatalog, catalog_properties: dict[str, str], hostile_table: icestats.Table
) -> None:
    table = catalog.load_table("db.hostile")
    table.manage_snapshots().create_branch(table.snapshots()[0].snapshot_id, "audit").commit()
    explorer = icestats.load("db.hostile", ref="audit", catalog=catalog_properties).explore()
    assert explorer.wait()
    panel, state = commit_and_ask_to_undo(explorer), explorer.state
    catalog.load_table("db.hostile").manage_snapshots().remove_branch("audit").commit()
    press(panel, "undo_now")
    assert explorer.wait()
    assert catalog.load_table("db.hostile").metadata.statistics == []
    assert (state.phase, state.removal.removed) == ("undone", True)
    assert "Undone, but the tabs show the table as it was before" in find_texts(panel)
    assert "no branch or tag 'audit'" in find_texts(panel)


def test_without_pyspark_the_panel_names_the_extra(explorer: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was computed before is still there."""
    panel = explorer.parts["compute"]
    choose_manifests(panel)
    press(panel, "start")
    assert explorer.wait()
    monkeypatch.setitem(sys.modules, "pyspark", None)
    panel.act("kind_table", True)
    press(panel, "start")
    assert explorer.wait()
    assert explorer.state.notes["compute"] == "PySpark is not installed: pip install 'icestats[spark]'"
    assert (explorer.state.phase, explorer.state.statistics is None) == ("found", False)


def test_the_cost_is_said_before_anything_runs(explorer: Explorer) -> None:
    """Files, bytes and columns; the cost follows what is chosen."""
    panel, state = explorer.parts["compute"], explorer.state
    assert "Reads 4 columns (" in find_texts(panel)
    assert f"of {state.overview.data_file_count} data files once, with PySpark" in find_texts(panel)
    panel.act("kind_by_partition", True)
    assert f"{state.partitions.num_rows} partitions" in find_texts(panel)
    panel.act("kind_by_partition", False)
    panel.act("kind_together", True)
    assert panel.code() == "table.compute(together='auto').commit(dry_run=True)"
    panel.act("kind_together", False)
    panel.act("kind_table", False)
    assert "Nothing to compute" in find_texts(panel)
    assert is_disabled(panel, "start") == (True,)
    panel.act("kind_partitions", True)
    assert "Makes statistics of partitions from the manifests, without Spark." in find_texts(panel)
    assert "Nothing" in describe_cost(ComputeRequest(columns=()), state)


def test_the_cost_is_of_columns_that_can_have_statistics(
    catalog: SqlCatalog, catalog_properties: dict[str, str]
) -> None:
    """A struct is read for none."""
    rows = pa.table({"id": [1, 2], "person": [{"name": "Ada"}, {"name": "Bo"}]})
    catalog.create_table("db.nested", rows.schema).append(rows)
    explorer = icestats.load("db.nested", catalog=catalog_properties).explore()
    assert explorer.wait()
    assert describe_cost(ComputeRequest(), explorer.state).startswith("Reads 1 column (")


def test_columns_are_found_by_name_and_pattern(explorer: Explorer) -> None:
    panel, schema = explorer.parts["compute"], explorer.state.table.schema
    assert match_columns(schema, " ") is None
    assert match_columns(schema, "pri, AT") == ("at", "price")
    assert match_columns(schema, "*i*") == ("id", "price", HOSTILE)
    assert match_columns(schema, "[x]") == ()
    panel.act("pattern", "<img*")
    assert panel.request.columns == (HOSTILE,)
    panel.act("pattern", "nothing")
    assert is_disabled(panel, "start") == (True,)
    panel.act("pattern", "")
    assert panel.request.columns is None


def test_a_scan_says_how_long_it_takes_from_now_on(explorer: Explorer) -> None:
    panel, state = explorer.parts["compute"], explorer.state
    state.phase, state.progress, state.seconds_to_go = "scanning", (3, 12), 200.0
    bar = next(find_blocks(panel, "progress"))
    assert (bar["value"], bar["most"], bar["label"]) == (3, 12, "3 of 12 tasks, about 3 minutes to go")
    assert is_disabled(panel, *FOLLOWING) == (True, False, True, True, True)


@pytest.mark.parametrize("value", [None, 7, "x", ["price", 3, None], {"columns": "price"}])
def test_what_a_page_may_not_say_changes_nothing(explorer: Explorer, value: object) -> None:
    panel = explorer.parts["compute"]
    for verb in ("columns", "kind_table", "values.open", "updates", "request", "build", "commit", "undo_now", "keep"):
        panel.act(verb, value)
    assert panel.document()["blocks"]
    assert (explorer.state.phase, explorer.state.statistics) == ("idle", None)
