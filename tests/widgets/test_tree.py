from __future__ import annotations

from typing import Any

import pytest

import icestats
from icestats_widgets import Explorer


def rows(explorer: Explorer) -> list[dict[str, Any]]:
    return explorer.tree.grid._rows.window(0, 1_000)


def texts(row: dict[str, Any]) -> list[str]:
    return [cell.get("t", "") for cell in row["cells"]]


def test_the_tree_reaches_from_the_snapshot_to_row_groups(hostile_table: icestats.Table) -> None:
    """Snapshot, manifest, file, column, row group: what a level counts is the sum of the level below it."""
    explorer = Explorer(hostile_table, column="price")
    assert explorer.wait()
    key = ""
    for depth, records in ((1, 60), (2, None), (3, None), (4, None)):
        below = [row for row in rows(explorer) if row["depth"] == depth]
        if depth < 4:
            key = next(row["key"] for row in below if depth != 3 or texts(row)[0] == "price")
            explorer.tree.toggle(key)
            assert explorer.wait()
        if records is not None:
            assert {texts(row)[2] for row in below} == {str(records)}
    files = [row for row in rows(explorer) if row["depth"] == 2]
    assert sum(int(texts(row)[2]) for row in files) == 60
    (group,) = [row for row in rows(explorer) if row["depth"] == 4]
    column = next(row for row in rows(explorer) if row["depth"] == 3 and texts(row)[0] == "price")
    assert texts(group)[0] == "row group 0"
    assert (texts(group)[5], texts(group)[6]) == (texts(column)[5], texts(column)[6])
    explorer.tree.toggle("s0")
    assert explorer.wait()
    assert [row["depth"] for row in rows(explorer)] == [0]


def test_files_are_listed_with_the_selected_column(hostile_table: icestats.Table) -> None:
    """The list of all files has each of them once, with nulls and bounds of the column, sorted as asked."""
    explorer = Explorer(hostile_table, column="price")
    assert explorer.wait()
    explorer.state.tree_mode = "files"
    explorer.tree.grid.receive({"kind": "sort", "column": "records"})
    assert explorer.wait()
    listed = rows(explorer)
    records = [int(texts(row)[2]) for row in listed]
    assert len(listed) == hostile_table.overview().data_file_count
    assert (records, sum(records)) == (sorted(records, reverse=True), 120)
    assert sum(int(texts(row)[5]) for row in listed) == 20
    explorer.tree.choose(listed[0]["key"])
    assert explorer.wait()
    assert texts(rows(explorer)[1])[0] == "id"


def test_only_the_files_of_known_manifests_are_read(hostile_table: icestats.Table) -> None:
    """Files of one manifest are those of that one; a manifest that is not of the snapshot is an error."""
    path = hostile_table.manifest_files()["manifest_path"][0].as_py()
    files = hostile_table.files(manifest_paths=[path])
    assert set(files["manifest_path"].to_pylist()) == {path}
    assert hostile_table.row_groups(files)["row_count"].to_pylist() == files["record_count"].to_pylist()
    with pytest.raises(icestats.CallError, match="no manifest 'nope'"):
        hostile_table.files(manifest_paths=["nope"])
