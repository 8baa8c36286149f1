"""The plan on the page: each step shows what it kept and skipped, down to a file's bounds and row groups."""

from __future__ import annotations

import csv
import io
from collections import Counter
from typing import Any

import pytest

import icestats
from icestats.answers.arrays import join_paths
from icestats_widgets import Explorer
from icestats_widgets.parts.plan import PlanPart
from icestats_widgets.reading.plan_outcomes import SkippedRows, plan_of_manifests, plan_of_partitions
from icestats_widgets.reading.selection import Selection
from tests.widgets.asked import Asked, find_blocks

HOSTILE = "<img src=x onerror=alert(1)>"
FILTERS = [
    "true",
    "price < 3",
    "at >= '2025-09-02' and at < '2025-09-03'",
    "at >= '2025-09-03' and price < 20 and id > 5",
    f"\"{HOSTILE}\" = '<b>bold</b>'",
    "id = -1",
]


class Planned(Asked):
    """A table whose plan is shown."""

    def __init__(self, table: Any) -> None:
        super().__init__(table)
        self.part = PlanPart(self.state, self.questions)
        self.part.send = self.sent.append

    def grid(self, name: str) -> dict[str, Any]:
        return next(grid for grid in find_blocks(self.part.document()["blocks"], "grid") if grid["id"] == name)

    def texts(self, name: str) -> list[list[str]]:
        return [[cell["t"] for cell in row["cells"]] for row in self.grid(name)["rows"]]


@pytest.fixture
def planned(hostile_table: icestats.Table) -> Planned:
    planned = Planned(hostile_table)
    planned.read()
    return planned


def test_no_filter_is_one_line(planned: Planned) -> None:
    document = planned.part.document()
    assert document["blocks"] == []
    assert document["caption"].startswith("No filter yet")
    assert document["code"] == ""


@pytest.mark.parametrize("row_filter", FILTERS)
def test_each_step_shows_what_it_kept_and_skipped(planned: Planned, row_filter: str) -> None:
    """Kept and skipped make what the step before has left, as the plan itself says."""
    planned.type(row_filter)
    plan = planned.state.plan
    assert planned.part.to_arrow().equals(plan.to_arrow())
    for number, step in enumerate(plan.steps):
        planned.part.act("steps.choose", {"key": f"s{number}"})
        assert planned.grid("steps")["selected"] == [f"s{number}"]
        if step.unit == "row":
            continue
        counts = {}
        for which in ("kept", "skipped", "all"):
            planned.part.act("which", which)
            (found,) = (g for g in find_blocks(planned.part.document()["blocks"], "grid") if g["id"] != "steps")
            counts[which] = found["row_count"]
        if found["id"] != "partitions":
            assert (counts["kept"], counts["skipped"], counts["all"]) == (step.kept, step.skipped, step.total)
    assert f"table.plan({row_filter!r})" == planned.part.code()
    assert planned.part.document()["caption"].endswith(f" left to read for {row_filter}.")


@pytest.mark.parametrize("row_filter", FILTERS)
def test_outcomes_are_those_of_the_plan(planned: Planned, row_filter: str) -> None:
    """What colours the pictures: of manifests, files and partitions, the step that skips, None for what is kept."""
    plan, partitions = planned.state.table.plan(row_filter), planned.state.table.partitions()
    manifests, files = plan.manifests().to_pylist(), plan.files("all").to_pylist()
    assert plan_of_manifests(plan) == {row["manifest_path"]: None if row["kept"] else row["step"] for row in manifests}
    skipped, every = SkippedRows(plan), planned.state.table.files().to_pylist()
    steps = {row["file_path"]: None if row["kept"] else row["step"] for row in files}
    of_manifest = plan_of_manifests(plan)
    for row in every:
        expected = of_manifest[row["manifest_path"]] or steps[row["file_path"]]
        assert skipped.of_file(row["manifest_path"], row["file_path"]) == expected
    assert SkippedRows(None).of_file(every[0]["manifest_path"], every[0]["file_path"]) is None
    by_partition: dict[str, list[Any]] = {}
    for row in files:
        by_partition.setdefault(str(row["partition"]), []).append(row)
    for key, found in zip(partitions["partition"].to_pylist(), plan_of_partitions(plan, partitions), strict=True):
        rows = by_partition.get(str(key), [])
        if any(row["kept"] for row in rows):
            assert found is None
        elif rows:
            assert found == max((row["step"] for row in rows), key=[step.step for step in plan.steps].index)
        else:
            assert found == plan.steps[0].step


def test_a_file_opens_to_its_bounds_and_row_groups(planned: Planned) -> None:
    """The predicate, the reason, its bounds beside the literal; its row groups once they are asked for."""
    planned.type("price < 3 and id > 2")
    key = planned.grid("files")["rows"][0]["key"]
    for way in ("cell", "choose"):
        planned.part.act("close", {})
        planned.part.act(f"files.{way}", {"key": key, "column": "path"})
        assert planned.grid("files")["selected"] == [key]
    card = next(card for card in find_blocks(planned.part.document()["blocks"], "card") if card["title"] == "File")
    said = " ".join(block["text"] for block in find_blocks(card["blocks"], "text"))
    assert "price < 3.0: bounds overlap, the lower bound" in said
    assert "is below 3.0; id > 2: " in said
    assert planned.state.row_groups is None
    planned.part.act("footer", {})
    planned.wait()
    ((number, records, _, verdict, why),) = planned.texts("groups")
    file = join_paths(planned.state.plan.funnel.files.slice(int(key[1:]), 1)).to_pylist()[0]
    assert (number, records, verdict) == ("0", f"{file['record_count']:,}", "kept")
    assert why.startswith("price < 3.0: bounds overlap")
    planned.part.act("close", {})
    assert planned.grid("files")["selected"] == []
    assert not [card for card in find_blocks(planned.part.document()["blocks"], "card") if card["title"] == "File"]


def test_a_file_that_is_gone_is_a_line(planned: Planned) -> None:
    """Its footer cannot be read: that is said, and everything else stays."""
    from pathlib import Path

    planned.type("price < 3")
    row = planned.grid("files")["rows"][0]
    Path(row["cells"][0]["h"].removeprefix("file://")).unlink()
    planned.part.act("files.cell", {"key": row["key"], "column": "path"})
    planned.part.act("footer", {})
    planned.wait()
    bad = [block["text"] for block in find_blocks(planned.part.document()["blocks"], "text") if block["tone"] == "bad"]
    assert any(row["cells"][0]["t"] in text for text in bad)


def test_a_partition_opens_to_its_files(planned: Planned) -> None:
    """The step of partition tuples lists partitions; a click lists the files of one, and all come back."""
    planned.type("at >= '2025-09-02'")
    planned.part.act("steps.choose", {"key": "s1"})
    planned.part.act("which", "skipped")
    (first, *_) = planned.grid("partitions")["rows"]
    assert first["cells"][0]["t"].startswith("2025-09-01 · <")
    assert "at_day >= '2025-09-02': the value does not match" in first["cells"][5]["t"]
    planned.part.act("partitions.cell", {"key": first["key"], "column": "partition"})
    assert {row[1] for row in planned.texts("files")} == {first["cells"][0]["t"]}
    planned.part.act("whole", {})
    assert planned.grid("partitions")["rows"][0] == first


def test_the_kept_files_are_a_list(planned: Planned) -> None:
    """Sorted, searched, saved: what stands there is what is saved."""
    planned.type("price < 10")
    planned.part.act("files.sort", {"column": "records"})
    records = [int(row[2]) for row in planned.texts("files")]
    assert records == sorted(records, reverse=True)
    planned.part.act("files.search", {"text": "2025-09-02 bold"})
    shown = planned.texts("files")
    assert shown
    assert all("2025-09-02" in row[1] and "bold" in row[1] for row in shown)
    planned.part.act("files.csv", {})
    saved = list(csv.reader(io.StringIO(planned.sent[-1]["text"])))
    assert saved[0] == ["file", "partition", "records", "bytes", "verdict", "why, with the evidence"]
    assert saved[1:] == shown


def test_manifests_that_are_selected_narrow_the_plan(planned: Planned) -> None:
    """The code says so, and gives the same."""
    path = planned.state.manifests["manifest_path"][0].as_py()
    planned.state.selection = Selection(manifest_paths=(path,))
    planned.wait()
    assert planned.part.code() == f"table.plan('true', manifest_paths=[{path!r}])"
    plan = eval(planned.part.code(), {"table": planned.state.table})
    assert plan.kept_file_paths() == planned.state.plan.kept_file_paths()
    assert len(plan.kept_file_paths()) < planned.state.overview.data_file_count
    with pytest.raises(icestats.CallError, match="no manifest 'nope'"):
        planned.state.table.plan("true", manifest_paths=["nope"])
    with pytest.raises(icestats.CallError, match="leave out rows or manifest_paths"):
        planned.state.table.plan("true", manifest_paths=[path], rows=True)


def test_what_makes_no_sense_changes_nothing(planned: Planned) -> None:
    """Keys and choices come from a page: none is trusted."""
    planned.type("price < 3")
    before = planned.part.document()
    for verb in ("steps.choose", "files.cell", "partitions.cell", "which", "nonsense", "files.sort", "files.window"):
        for key in ("f999999", "p999999", "s-1", "sx", "", "f", HOSTILE, "f²"):
            planned.part.act(verb, {"key": key, "column": key})
    planned.part.act("which", ["kept"])
    assert planned.part.document() == before
    planned.part.act("steps.choose", {"key": "s999"})
    assert planned.part.document()["blocks"][0]["is"] == "grid"


def test_names_of_the_table_are_text(planned: Planned) -> None:
    planned.type(f"\"{HOSTILE}\" = '{HOSTILE}'")
    document = planned.part.document()
    assert HOSTILE in str(find_blocks(document["blocks"], "grid"))
    assert not find_blocks(document["blocks"], "figure")
    assert Counter(row[4] for row in planned.texts("files")) == Counter(kept=len(planned.state.plan.kept_file_paths()))


def test_an_empty_table_has_a_plan(empty_table: icestats.Table) -> None:
    """Each step has nothing, in a line."""
    planned = Planned(empty_table)
    planned.type("id = 3")
    for number in range(3):
        planned.part.act("steps.choose", {"key": f"s{number}"})
        assert planned.texts("steps")[0][1] == "0 of 0 manifests"


def test_a_second_filter_colours_partitions_anew(hostile_table: icestats.Table) -> None:
    """What the filter keeps that is typed now, not the one before."""
    explorer, seen = Explorer(hostile_table), []
    for row_filter in ("at < '2025-09-02'", "at >= '2025-09-03'"):
        explorer.state.row_filter = row_filter
        assert explorer.wait()
        seen.append(explorer.part_partitions)
        assert seen[-1] == explorer.parts["partitions"].document()
    assert seen[0] != seen[1]
