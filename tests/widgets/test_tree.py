from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

import icestats
from benchmarks.generated_table import Shape, generate
from icestats.answers.arrays import join_paths
from icestats_widgets import Explorer
from icestats_widgets.page.grid import Seen
from icestats_widgets.parts.tree import TreePart
from icestats_widgets.reading.tree.file_listing import read_file_listing
from icestats_widgets.reading.tree.outline import Outline
from icestats_widgets.reading.tree.tree_blocks import column_titles
from icestats_widgets.reading.tree.tree_reader import NotWantedError, TreeReader, TreeWish


def rows(explorer: Explorer) -> list[dict[str, Any]]:
    tree(explorer).document()
    return tree(explorer).grids["tree"].first_rows(1_000)


def tree(explorer: Explorer) -> TreePart:
    part = explorer.parts["outline"]
    assert isinstance(part, TreePart)
    return part


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
            tree(explorer).toggle(key, True)
            assert explorer.wait()
        if records is not None:
            assert {texts(row)[2] for row in below} == {str(records)}
    files = [row for row in rows(explorer) if row["depth"] == 2]
    assert sum(int(texts(row)[2]) for row in files) == 60
    (group,) = [row for row in rows(explorer) if row["depth"] == 4]
    column = next(row for row in rows(explorer) if row["depth"] == 3 and texts(row)[0] == "price")
    assert texts(group)[0] == "row group 0"
    assert (texts(group)[5], texts(group)[6]) == (texts(column)[5], texts(column)[6])
    tree(explorer).toggle("s0", False)
    assert explorer.wait()
    assert [row["depth"] for row in rows(explorer)] == [0]


def test_what_the_filter_skips_is_grey_and_says_at_which_step(hostile_table: icestats.Table) -> None:
    """In the tree and in the list of all files, as the plan has it; without a filter nothing is."""
    explorer = Explorer(hostile_table)
    assert explorer.wait()

    def grey() -> dict[str, str]:
        cells = [row["cells"][0] for row in rows(explorer)]
        return {cell["t"]: cell["h"].rsplit("\n", 1)[-1] for cell in cells if cell.get("k") == "skipped"}

    assert grey() == {}
    explorer.state.row_filter = "at >= '2025-09-03' and price < 20"
    assert explorer.wait()
    plan = explorer.state.plan
    of_manifest = {row["manifest_path"]: row["step"] for row in plan.manifests().to_pylist() if not row["kept"]}
    assert {f"skipped: {step}" for step in of_manifest.values()} == set(grey().values())
    assert {path.rsplit("/", 1)[-1] for path in of_manifest} == set(grey())
    for row in [row for row in rows(explorer) if row["depth"] == 1]:
        tree(explorer).toggle(row["key"], True)
    assert explorer.wait()
    kept = {row["file_path"].rsplit("/", 1)[-1] for row in plan.files("kept").to_pylist()}
    every = {path.rsplit("/", 1)[-1] for path in hostile_table.files()["file_path"].to_pylist()}
    assert {name for name in grey() if name in every} == every - kept
    assert "What the filter skips is grey." in tree(explorer).caption()
    explorer.state.tree_mode = "files"
    assert explorer.wait()
    assert set(grey()) == every - kept
    explorer.state.row_filter = ""
    assert explorer.wait()
    assert grey() == {}


def test_files_are_listed_with_the_selected_column(hostile_table: icestats.Table) -> None:
    """The list of all files has each of them once, with nulls and bounds of the column, sorted as asked."""
    explorer = Explorer(hostile_table, column="price")
    assert explorer.wait()
    explorer.state.tree_mode = "files"
    tree(explorer).on_mode(["files"])
    tree(explorer).act("tree.sort", {"column": "records"})
    assert explorer.wait()
    listed = rows(explorer)
    records = [int(texts(row)[2]) for row in listed]
    assert len(listed) == hostile_table.overview().data_file_count
    assert (records, sum(records)) == (sorted(records, reverse=True), 120)
    assert sum(int(texts(row)[5]) for row in listed) == 20
    tree(explorer).choose(listed[0]["key"], Seen(False, False))
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


@pytest.fixture(scope="module")
def many_manifests(tmp_path_factory: pytest.TempPathFactory) -> icestats.Table:
    """A table whose files are listed in several parts."""
    folder = generate(tmp_path_factory.mktemp("many"), Shape(days=4, files_per_day=60, manifests_per_day=24, columns=8))
    return icestats.load(str(folder / "metadata" / "v1.metadata.json"))


def test_the_list_of_files_grows_to_all_of_them(many_manifests: icestats.Table) -> None:
    """Each part begins with the part before it, and the last has every live file once, in their order."""
    parts = [join_paths(files)["file_path"].to_pylist() for files, _, _ in read_file_listing(many_manifests, None)]
    assert len(parts) > 1
    assert all(after[: len(before)] == before for before, after in pairwise(parts))
    assert parts[-1] == many_manifests.files()["file_path"].to_pylist()


def test_a_list_that_was_stopped_goes_on_from_there(many_manifests: icestats.Table) -> None:
    """What is not wanted any more stops between two parts; asked for again, no manifest is read twice."""
    reader, told = TreeReader(), []
    wish = TreeWish(many_manifests, many_manifests.overview(), many_manifests.manifest_files(), mode="files")

    def stop(rows: Outline | None, done: int, total: int) -> bool:
        told.append((rows.row_count if rows else 0, done))
        return len(told) > 1

    with pytest.raises(NotWantedError):
        reader.read(wish, stop)
    assert reader.read(wish, stop).row_count == many_manifests.files().num_rows
    assert told == sorted(set(told))


@pytest.mark.parametrize(
    ("words", "count"),
    [("records > 59", 2), ("records < 1e30", 0), ("records > 1.2.3", 0), ("records >= .5 k", 0), ("records > _", 0),
     ("records < 99_999_999_999 tb", 2), (f"records > {'9' * 400}", 0), (f"records < {'9' * 400}", 2)],
)  # fmt: skip
def test_any_number_can_be_searched_for(hostile_table: icestats.Table, words: str, count: int) -> None:
    explorer = Explorer(hostile_table)
    assert explorer.wait()
    tree(explorer).act("tree.search", {"text": words})
    assert explorer.wait()
    assert "outline" not in explorer.state.notes
    assert len([row for row in rows(explorer) if row["depth"] == 1]) == count


def test_the_heads_of_the_tree_are_printable() -> None:
    assert [one["title"] for one in column_titles("a\u202eb\x1b")][-1] == "upper bound of a\ufffdb\ufffd"
