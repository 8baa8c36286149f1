"""Two plans side by side: what changes is said in words and figures, and nothing is read before it is asked for."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog

import icestats
from icestats_widgets.page.given_names import define_given
from icestats_widgets.parts.compare import ComparePart
from icestats_widgets.parts.estimates import EstimatePart
from icestats_widgets.reading import question_coordinator
from tests.widgets.asked import Asked, find_blocks
from tests.widgets.conftest import build_rows

HOSTILE = "<img src=x onerror=alert(1)>"


class Compared(Asked):
    """A table whose plans are compared."""

    def __init__(self, table: Any) -> None:
        super().__init__(table)
        self.part = ComparePart(self.state, self.questions)

    def compare(self, kind: str, chosen: str | None = None) -> dict[str, Any]:
        self.part.act("kind", kind)
        self.part.act("run", {}) if chosen is None else self.part.act("choice", chosen)
        self.wait()
        return self.part.document()

    def said(self) -> str:
        document = self.part.document()
        return " ".join([document["caption"], *(block["text"] for block in find_blocks(document["blocks"], "text"))])

    def again(self) -> Any:
        """Run the code."""
        return eval(self.part.code(), {"table": self.state.table, "icestats": icestats})


@pytest.fixture
def compared(hostile_location: str) -> Compared:
    compared = Compared(icestats.load(hostile_location))
    compared.type("price < 3")
    return compared


def test_nothing_is_read_before_a_person_picks(compared: Compared) -> None:
    """One line with a choice; to choose what kind of thing it is reads nothing."""
    for kind in ("filter", "snapshot", "ref", "table", "regroup", "sort_by", "partition_by", ""):
        compared.part.act("kind", kind)
        assert [block["is"] for block in compared.part.document()["blocks"]] == ["form"]
    assert compared.state.plan_comparison is None
    assert not compared.state.loading
    assert (compared.part.code(), compared.part.to_arrow()) == ("", None)


def test_two_filters(compared: Compared) -> None:
    """Figures are those of both plans, step by step; the code gives both plans."""
    compared.compare("filter", "at >= '2025-09-03'")
    plans = [compared.state.table.plan(text) for text in ("price < 3", "at >= '2025-09-03'")]
    rows = compared.part.to_arrow().to_pylist()
    for row, *steps in zip(rows, *(plan.steps for plan in plans), strict=False):
        for i, step in enumerate(steps, 1):
            assert row["step"] == step.step
            assert (row[f"total_{i}"], row[f"kept_{i}"]) == (step.total, step.kept)
            assert (row[f"kept_bytes_{i}"], row[f"kept_rows_{i}"]) == (step.kept_bytes, step.kept_rows)
    counts = [len(plan.kept_file_paths()) for plan in plans]
    assert f"The second leaves {counts[1]} files, " in compared.said()
    assert f"in place of {counts[0]} files, " in compared.said()
    assert [plan.kept_file_paths() for plan in compared.again()] == [plan.kept_file_paths() for plan in plans]


def test_two_snapshots(compared: Compared) -> None:
    """Others than the one that is seen can be picked; of the first commit, some of the files are there."""
    document = compared.compare("snapshot")
    (field,) = (
        one
        for form in find_blocks(document["blocks"], "form")
        for one in form["fields"]
        if one["name"] == "compare.choice"
    )
    current = compared.state.table.snapshot
    assert [int(option["value"]) for option in field["options"]] == [current.parent_snapshot_id]
    before, now = compared.again()[::-1]
    assert (now.snapshot_id, before.snapshot_id) == (current.snapshot_id, current.parent_snapshot_id)
    last = compared.part.to_arrow().to_pylist()[-1]
    assert (last["kept_1"], last["kept_2"]) == (len(now.kept_file_paths()), len(before.kept_file_paths()))


def test_a_branch_and_the_same(compared: Compared) -> None:
    compared.compare("ref", "main")
    assert "Both leave the same to read" in compared.said()
    assert "ref='main'" in compared.part.code()


def test_another_table_by_its_location(compared: Compared, catalog: SqlCatalog, hostile_location: str) -> None:
    """A location is read with the table's own properties; a name is looked up where the table comes from."""
    compared.compare("table", hostile_location)
    assert "Both leave the same to read" in compared.said()
    catalog.create_table("db.other", catalog.load_table("db.hostile").schema())
    named = Compared(icestats.load("db.hostile", catalog=dict(catalog.properties) | {"name": "catalog"}))
    named.type("price < 3")
    named.compare("table", "db.other")
    assert "The second leaves 0 files, 0 B, 0 records to read" in named.said()


@pytest.mark.parametrize(("kind", "chosen"), [("snapshot", None), ("ref", "main"), ("table", "db.hostile")])
def test_the_code_opens_the_other_table_as_this_one(
    hostile_table: icestats.Table, catalog_properties: dict[str, str], kind: str, chosen: str | None
) -> None:
    """Of a catalog that no configuration knows, with the properties that it was given."""
    compared = Compared(hostile_table)
    compared.type("price < 3")
    compared.compare(kind, chosen)
    names = {"icestats": icestats, "table": hostile_table, "catalog": catalog_properties}
    first, other = eval(compared.part.code(), names)
    assert first.snapshot_id == hostile_table.snapshot.snapshot_id
    assert (other.snapshot_id == first.snapshot_id) == (kind != "snapshot")
    assert define_given(compared.part.code()).startswith("catalog = ")


@pytest.mark.parametrize("kind", ["ref", "regroup"])
def test_a_comparison_is_of_the_filter_and_the_table_that_are_shown(
    hostile_table: icestats.Table, catalog: SqlCatalog, kind: str
) -> None:
    """One of an earlier filter, or of the table as it was, is not shown as if it were of these."""
    compared = Compared(hostile_table).read()
    compared.type("price < 3")
    compared.compare(kind)
    assert compared.state.plan_comparison is not None
    compared.type("price < 4")
    assert compared.state.plan_comparison is None
    compared.compare(kind)
    assert compared.state.plan_comparison is not None
    catalog.load_table("db.hostile").append(build_rows(0))
    compared.coordinator.reload()
    compared.wait()
    assert compared.state.table.snapshot != hostile_table.snapshot
    assert compared.state.plan_comparison is None
    assert not compared.state.loading


def test_after_maintenance(compared: Compared) -> None:
    """A prediction says what it rests on, and which statement would do it."""
    for kind, chosen, word in (
        ("regroup", "at_day", "rewrite_manifests"),
        ("sort_by", "price", "rewrite_data_files"),
        ("partition_by", "truncate(10, id), month(at)", "ADD PARTITION FIELD truncate(10, `id`)"),
    ):
        document = compared.compare(kind, chosen)
        assert "A prediction: " in compared.said()
        (statement,) = find_blocks(document["blocks"], "code")
        assert word in statement["text"]
        (now,) = compared.again().comparisons
        rows = compared.part.to_arrow().to_pylist()
        assert [row["kept_1"] for row in rows] == [count.kept for count in now.now]
        assert [row["kept_2"] for row in rows] == [count.kept for count in now.then]
        assert {row["duration_ms_2"] for row in rows} == {None}


@pytest.mark.parametrize(
    ("kind", "chosen", "error"),
    [
        ("filter", "price <", "next: a value after <"),
        ("filter", "prize < 3", "no column 'prize' at character 1"),
        ("table", "nope", "'nope' is no table"),
        ("table", "/no/such/v1.metadata.json", "/no/such/v1.metadata.json"),
        ("table", HOSTILE, "img src"),
        ("partition_by", "week(at)", "'week(at)' is no partition field: expected a column, or one of year"),
        ("partition_by", "day(nope)", "no column 'nope'"),
        ("partition_by", HOSTILE, "cannot be read at character 6"),
    ],
)
def test_what_cannot_be_compared_is_a_line(compared: Compared, kind: str, chosen: str, error: str) -> None:
    """The comparison that stood there before stands there still."""
    compared.compare("filter", "price < 1")
    before = compared.state.plan_comparison
    compared.compare(kind, chosen)
    assert error in compared.said()
    assert compared.state.plan_comparison is before
    compared.compare("filter", "price < 2")
    assert error not in compared.said()


def test_what_is_not_offered_is_not_read(compared: Compared) -> None:
    """Kinds and choices come from a page: those that make no sense change nothing."""
    for value in (None, 3, [], {}, "nonsense", HOSTILE):
        compared.part.act("kind", value)
        compared.part.act("choice", value)
        compared.part.act("run", value)
    compared.wait()
    assert compared.state.plan_comparison is None
    # Longer than any snapshot's id, in which a shorter one may occur.
    unknown = "1" * 20
    compared.compare("snapshot", unknown)
    assert unknown not in compared.part.code()


def test_a_table_without_snapshots_has_nothing_to_compare(empty_table: icestats.Table) -> None:
    compared = Compared(empty_table)
    compared.compare("snapshot")
    assert compared.state.plan_comparison is None
    compared.compare("filter", "id = 3")
    assert "Both leave the same to read: 0 files, 0 B, 0 records." in compared.said()


def test_estimates_have_their_truth_on_request(hostile_table: icestats.Table) -> None:
    """Nothing is counted before; counted rows give each source its q-error, and stay of the filter they are of."""
    asked = Asked(hostile_table)
    part = EstimatePart(asked.state, asked.questions)
    assert part.document()["blocks"] == []
    assert part.caption().startswith("No filter yet")
    asked.type("id < 30")
    assert part.caption() == "Rows not counted yet for id < 30."
    part.document()
    assert hidden(part) == {"q_error", "before"}
    part.act("count", {})
    asked.wait()
    assert part.caption() == "30 rows counted for id < 30."
    assert asked.bar.document()["summary"].endswith("30 rows counted")
    names = [column["name"] for column in part.grid.columns]
    part.document()
    assert hidden(part) == {"before"}
    part.grid.act("columns", {"names": ["source", "rows"]})
    part.document()
    assert "q_error" in hidden(part)
    rows = {row["cells"][0]["t"]: dict(zip(names, row["cells"], strict=True)) for row in part.grid.first_rows(99)}
    assert rows[asked.state.estimates[-1].source]["q_error"]["t"] == "1"
    again = eval(part.code(), {"table": hostile_table})
    assert [one.rows for one in again] == [one.rows for one in asked.state.estimates][: len(again)]
    part.act("workload", {})
    asked.wait()
    assert "sketch" in part.caption()
    assert asked.state.estimates is not None


def hidden(part: EstimatePart) -> set[str]:
    return {column["name"] for column in part.grid.columns if column.get("hidden")}


def test_a_truth_that_cannot_be_counted_leaves_the_estimates(hostile_table: icestats.Table) -> None:
    asked = Asked(Uncounted(hostile_table))
    part = EstimatePart(asked.state, asked.questions)
    asked.type("id < 30")
    estimates = asked.state.estimates
    part.act("count", {})
    asked.wait()
    assert asked.state.estimates is estimates
    assert part.caption() == "Rows not counted yet for id < 30. the data files are gone"


def test_rows_that_were_counted_of_the_table_as_it_was_are_not_shown(
    hostile_table: icestats.Table, catalog: SqlCatalog
) -> None:
    """Others append while they are counted, and the table is read anew."""
    asked = Asked(SlowlyCounted(hostile_table))
    part = EstimatePart(asked.state, asked.questions)
    asked.type("id < 30")
    part.act("count", {})
    assert asked.state.table.has_begun.wait(60)
    gate, is_estimated = asked.state.table.gate, threading.Event()
    asked.state.observe(lambda _: is_estimated.set(), "estimates")
    catalog.load_table("db.hostile").append(build_rows(0))
    asked.state.table = hostile_table.refresh()
    assert is_estimated.wait(60)
    gate.set()
    asked.wait()
    assert part.caption() == "Rows not counted yet for id < 30."
    assert "counted" not in asked.bar.document()["summary"]
    assert not asked.state.loading
    part.act("count", {})
    asked.wait()
    assert part.caption() == "60 rows counted for id < 30."


def test_the_layout_of_a_large_table_as_it_was_is_not_shown(
    hostile_table: icestats.Table, catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody measures it again unasked, and what is found then is not of the table that is shown."""
    monkeypatch.setattr(question_coordinator, "MOST_FILES", 0)
    asked = Asked(SlowlyCounted(hostile_table)).read()
    asked.questions.read_layout()
    assert asked.state.table.has_begun.wait(60)
    gate, is_read = asked.state.table.gate, threading.Event()
    asked.state.observe(lambda _: is_read.set(), "manifests")
    catalog.load_table("db.hostile").append(build_rows(0))
    asked.state.table = hostile_table.refresh()
    assert is_read.wait(60)
    gate.set()
    asked.wait()
    assert asked.state.layout_report is None
    assert not asked.state.loading


class SlowlyCounted:
    """A table whose rows are counted, and whose layout is measured, and told once a gate is open."""

    def __init__(self, table: icestats.Table) -> None:
        self._table = table
        self.gate, self.has_begun = threading.Event(), threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    def estimate(self, row_filter: str, **options: Any) -> Any:
        found = self._table.estimate(row_filter, **options)
        return self._wait(found) if options.get("actual") else found

    def layout(self) -> Any:
        return self._wait(self._table.layout())

    def _wait(self, found: Any) -> Any:
        self.has_begun.set()
        assert self.gate.wait(60)
        return found


class Uncounted:
    """A table whose rows cannot be counted."""

    def __init__(self, table: icestats.Table) -> None:
        self._table = table

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    def estimate(self, row_filter: str, **options: Any) -> Any:
        if options.get("actual"):
            raise icestats.UnsupportedError("the data files are gone")
        return self._table.estimate(row_filter, **options)
