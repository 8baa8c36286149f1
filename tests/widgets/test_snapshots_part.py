"""The history: snapshots newest first, what each changed, and what changed between two of them."""

from __future__ import annotations

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import EqualTo

import icestats
from icestats_widgets import Explorer
from icestats_widgets.page.part import Part
from icestats_widgets.reading.snapshot_comparison import read_comparison
from tests.committed_statistics import commit, theta
from tests.widgets.blocks_of_parts import find_blocks, find_button, find_rows
from tests.widgets.conftest import HOSTILE, build_rows


@pytest.fixture
def explorer(catalog: SqlCatalog, catalog_properties: dict[str, str], hostile_table: icestats.Table) -> Explorer:
    """Two appends, statistics of the second, a tag on it, then one value deleted."""
    table = catalog.load_table("db.hostile")
    commit(table, theta(table, 3))
    table.refresh().manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "<b>tag").commit()
    table.refresh().delete(EqualTo(HOSTILE, HOSTILE))
    explorer = icestats.load("db.hostile", catalog=catalog_properties).explore()
    assert explorer.wait()
    return explorer


@pytest.fixture
def part(explorer: Explorer) -> Part:
    return explorer.parts["snapshots"]


def choose(part: Part, number: int) -> None:
    row = find_rows(part, "snapshots")[number]
    block = next(block for block in find_blocks(part, "grid") if block["id"] == "snapshots")
    part.act("snapshots.choose", {"key": row["key"], "is_selected": row["key"] in block["selected"]})


def test_the_newest_comes_first_with_what_it_changed(part: Part) -> None:
    rows = find_rows(part, "snapshots")
    assert [row["operation"] for row in rows] == ["overwrite", "append", "append"]
    assert [row["added"] for row in rows] == ["0", "60", "60"]
    assert [row["removed"] for row in rows] == ["60", "0", "0"]
    assert [row["total"] for row in rows] == ["60", "120", "60"]
    assert [row["refs"] for row in rows] == ["branch main", "tag <b>tag", "–"]
    assert [row["statistics"] for row in rows] == ["–", "NDV of 1 column", "–"]
    bars = next(find_blocks(part, "grid"))["rows"][0]["cells"]
    assert (bars[2]["t"], bars[2].get("b", 0.0), bars[3]["b"]) == ("0", 0.0, 1.0)
    assert part.to_arrow()["operation"].to_pylist() == ["overwrite", "append", "append"]


def test_a_change_that_is_not_stated_is_not_0(hostile_table: icestats.Table) -> None:
    from dataclasses import replace

    from icestats_widgets.parts.snapshots import build_snapshot_rows

    metadata = hostile_table.metadata
    silent = {key: replace(one, summary={"operation": "append"}) for key, one in metadata.snapshots.items()}
    row = build_snapshot_rows(replace(metadata, snapshots=silent))[0]["cells"]
    assert [cell["t"] for cell in row[2:9]] == ["–", "–", "–", "–", "–", "unknown", "unknown"]
    # As Iceberg's `add_files` leaves it.
    totals = {"total-records": "9", "total-data-files": "9", "total-files-size": "0"}
    summary = {"added-data-files": "2", "added-records": "7", **totals}
    imported = {key: replace(one, summary=summary) for key, one in silent.items()}
    row = build_snapshot_rows(replace(metadata, snapshots=imported))[0]["cells"]
    assert [cell["t"] for cell in row[2:7]] == ["7", "0", "+2", "–", "0 B"]


def test_two_snapshots_are_compared(explorer: Explorer, part: Part) -> None:
    """Whichever is chosen first; a third takes the place of the one that was chosen first."""
    choose(part, 0)
    choose(part, 1)
    assert explorer.wait()
    card = next(block for block in find_blocks(part, "card") if block["id"] == "comparison")
    shown = {one["label"]: one["value"] for one in card["blocks"][0]["facts"]}
    assert shown["rows"] == "60 (−60)"
    assert shown["between"] == "1 commit"
    touched = find_rows(part, "touched")
    assert shown["partitions touched"] == f"{len(touched)} of {explorer.state.comparison.partition_count}"
    assert {row["partition"].split(" · ")[1] for row in touched} == {HOSTILE}
    assert {row["after"] for row in touched} == {"0"}
    assert sum(int(row["rows"].replace("−", "-")) for row in touched) == -60
    choose(part, 2)
    assert explorer.wait()
    newer, older = explorer.state.compared
    assert (explorer.state.comparison.older.snapshot_id, explorer.state.comparison.newer.snapshot_id) == (older, newer)
    assert explorer.state.comparison.newer.operation == "append"
    choose(part, 2)
    assert len(explorer.state.compared) == 1
    part.act("forget", {})
    assert explorer.state.compared == ()


def test_a_comparison_is_that_of_the_files(
    catalog: SqlCatalog, catalog_properties: dict[str, str], hostile_table: icestats.Table
) -> None:
    """Totals and touched partitions against the lists of files; the other way round the signs are."""
    catalog.load_table("db.hostile").append(build_rows(1))
    table = icestats.load("db.hostile", catalog=catalog_properties)
    older, newer = table.snapshot.parent_snapshot_id, table.snapshot.snapshot_id
    found = read_comparison(table, older, newer)
    files = [icestats.load("db.hostile", catalog=catalog_properties, snapshot=one).files() for one in (older, newer)]
    assert [(counts[0], counts[1]) for counts in (found.before, found.after)] == [
        (sum(rows["record_count"].to_pylist()), rows.num_rows) for rows in files
    ]
    paths = set(files[0]["file_path"].to_pylist())
    new = [row for row in files[1].to_pylist() if row["file_path"] not in paths]
    assert len(found.touched) == len({str(row["partition"]) for row in new})
    back = read_comparison(table, newer, older)
    assert (back.commit_count, back.before, back.after) == (None, found.after, found.before)


def test_the_table_is_shown_as_of_a_snapshot(explorer: Explorer, part: Part) -> None:
    """And back again: what is current has no pin."""
    choose(part, 1)
    assert not find_button(part, "snapshots.show")["disabled"]
    part.act("show", {})
    assert explorer.wait()
    assert explorer.state.overview.record_count == 120
    assert explorer.state.table.pin == {"snapshot": explorer.state.table.snapshot.snapshot_id}
    part.act("current", {})
    assert explorer.wait()
    assert (explorer.state.overview.record_count, explorer.state.table.pin) == (60, {})


def test_a_table_without_snapshots_is_one_line(empty_table: icestats.Table) -> None:
    explorer = empty_table.explore()
    assert explorer.wait()
    document = explorer.parts["snapshots"].document()
    assert (document["blocks"], document["caption"]) == ([], "No snapshots: nothing has been written yet.")


@pytest.mark.parametrize("value", [None, "s1", {"key": "s1"}, {"key": ["x"]}, {"key": "<img>", "is_selected": "yes"}])
def test_what_a_page_may_not_say_changes_nothing(explorer: Explorer, part: Part, value: object) -> None:
    for verb in ("snapshots.choose", "show", "current", "forget", "touched.choose"):
        part.act(verb, value)
    assert (explorer.state.compared, explorer.state.table.pin) == ((), {})
