"""The bar says what is wrong with a filter and where, completes it, and holds the selection as parts of the filter."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform, MonthTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

import icestats
from icestats.iceberg.metadata import Field
from icestats.iceberg.metadata import Schema as IcestatsSchema
from icestats.iceberg.storage import local_path
from icestats_widgets.page.filter_bar import describe_outlook
from icestats_widgets.reading.filters.asked_filter import add_clause, add_range, effective_filter
from icestats_widgets.reading.filters.filter_completion import complete_filter
from icestats_widgets.reading.selection import FieldRange, Selection
from tests.widgets.asked import Asked

HOSTILE = "<img src=x onerror=alert(1)>"
DAY = dt.date(2026, 9, 1)
QUOTED = 'a "b" or\'c'
HOSTILE_VALUES = [
    "it's",
    "50%",
    "a\\b",
    "end\\",
    "\\'",
    "tab\there",
    "line\nbreak",
    "\u202eright",
    "",
    " x ",
    "'; --",
    "x" * 201,
]
PERSON = StructType(NestedField(15, "first name", StringType()), NestedField(16, "age", LongType()))
MANY = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "not", IntegerType()),
    NestedField(3, QUOTED, StringType()),
    NestedField(4, "flag", BooleanType()),
    NestedField(5, "ratio", FloatType()),
    NestedField(6, "price", DoubleType()),
    NestedField(7, "amount", DecimalType(9, 2)),
    NestedField(8, "day", DateType()),
    NestedField(9, "clock", TimeType()),
    NestedField(10, "at", TimestampType()),
    NestedField(11, "zoned", TimestamptzType()),
    NestedField(12, "key", UUIDType()),
    NestedField(13, "raw", BinaryType()),
    NestedField(14, "person", PERSON),
    NestedField(17, "tags", ListType(18, StringType(), element_required=False)),
    NestedField(19, "back\\slash", LongType()),
)  # fmt: skip


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    """A table with a column of each type, hostile names and values."""
    folder = tmp_path_factory.mktemp("many")
    properties = {
        "type": "sql",
        "uri": f"sqlite:///{folder / 'catalog.db'}",
        "warehouse": f"file://{folder / 'warehouse'}",
    }
    catalog = SqlCatalog("catalog", **properties)
    catalog.create_namespace("db")
    spec = PartitionSpec(
        PartitionField(3, 1000, IdentityTransform(), "name"), PartitionField(8, 1001, MonthTransform(), "day_month")
    )
    table = catalog.create_table("db.many", MANY, partition_spec=spec)
    table.append(pa.Table.from_pylist([build_row(i) for i in range(len(HOSTILE_VALUES))], table.schema().as_arrow()))
    yield Asked(icestats.load("db.many", catalog=properties)).read()
    catalog.close()


def build_row(i: int) -> dict[str, Any]:
    at = dt.datetime(2026, 9, 1 + i, 10, 0, i)
    return {
        "id": i, "not": i, QUOTED: HOSTILE_VALUES[i], "flag": i % 2 == 0, "ratio": i / 4, "price": i / 8,
        "amount": Decimal(i) / 4, "day": at.date(), "clock": at.time(), "at": at, "zoned": at.replace(tzinfo=dt.UTC),
        "key": bytes([i] * 16), "raw": bytes([i]), "person": {"first name": HOSTILE_VALUES[i], "age": i},
        "tags": ["a"], "back\\slash": i,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "error", "hint"),
    [
        ("", "", ""),
        ("price < 3", "", ""),
        ("3 > price", "", ""),
        ("pri", "", "pri …"),
        ("price", "", "next: a comparison such as = or is null after price"),
        ("price <", "", "next: a value after <"),
        ("price < 3 an", "", "next: and, or"),
        ("(price < 3", "", "next: the closing bracket )"),
        ("price in (1, 2", "", "next: , or )"),
        ("price between 1", "", "next: and"),
        ('"a b', "", "next: the closing quotation mark"),
        ("prize < 3", "no column 'prize' at character 1: is it price?", ""),
        ("id = 1 and prize < 3", "no column 'prize' at character 12: is it price?", ""),
        ("price << 3", "expected a value after < at character 8, found '<'", ""),
        ("price < 3)", "expected and, or at character 10, found ')'", ""),
        ("price < 1e3 or price >-2.5E-7", "", ""),
        ("price = 1e3456", "expected and, or at character 10, found 'e3456'", ""),
        ("id = 1 or id = 74.5", "id is long, and 74.5 is no whole number (character 11)", ""),
        ("price = \u202e3", "expected a value after = at character 9", ""),
        ("raw = 'a'", "a column of type binary is compared with text", ""),
    ],
)  # fmt: skip
def test_a_filter_is_checked_as_it_is_typed(many: Asked, text: str, error: str, hint: str) -> None:
    """One line says what is wrong and where; what only goes on is no mistake until it is entered."""
    document = many.type(text)
    assert (document["error"][: len(error) or None], document["hint"]) == (error, hint)
    assert document["text"] == text
    assert document["is_waiting"] == bool(error or hint)
    many.bar.act("enter", {"text": text})
    assert bool(many.bar.document()["error"]) == bool(error or hint)
    many.type("")


def test_a_filter_that_fails_loses_nothing(many: Asked) -> None:
    """The last filter that fitted stays in force, with its plan and its answer; and so does the text in the box."""
    before = many.type("id < 3")
    plan, estimates = many.state.plan, many.state.estimates
    after = many.type("id < 3 and prize = 4")
    assert after["error"]
    assert (after["summary"], after["text"]) == (before["summary"], "id < 3 and prize = 4")
    assert many.state.plan is plan
    assert many.state.estimates is estimates
    assert many.state.row_filter == "id < 3"
    for bad in (None, 3, {"text": 3}, {"text": "x" * 200_000}, [], {"cursor": 1}):
        for verb in ("type", "enter", "complete", "drop", "nonsense", "_take"):
            many.bar.act(verb, bad)
    assert many.bar.document() == after
    assert many.type("id < 3")["error"] == ""
    many.type("")
    assert many.bar.document()["summary"] == ""


def test_the_answer_is_a_line(many: Asked) -> None:
    """Files and bytes of all, estimated rows, and the most there can be."""
    summary = many.type("id < 3")["summary"]
    count = many.state.overview.data_file_count
    kept = (
        many.state.plan.steps[-1].kept
        if many.state.plan.steps[-1].unit == "file"
        else len(many.state.plan.kept_file_paths())
    )
    assert summary.startswith(f"{kept} of {count} files, ")
    assert summary.endswith(", 3 rows")
    best = next(one for one in many.state.estimates if one.source == "combined")
    for known, said in (
        ({"rows": 2, "rows_upper": 4.0}, "about 2 rows (at most 4)"),
        ({"rows": 2, "rows_lower": 1.0, "rows_upper": 2.0}, "1 to 2 rows"),
        ({"rows": 2, "rows_lower": 0.0, "rows_upper": 2.0}, "at most 2 rows"),
        ({"rows": 2, "rows_lower": 2.0, "rows_upper": 2.0, "bound": "99% confidence"}, "about 2 rows"),
        ({"rows": 2, "rows_lower": 2.0, "rows_upper": 2.0, "bound": "certain if ..."}, "about 2 rows"),
        ({"rows": 2, "rows_upper": None}, "about 2 rows"),
    ):
        many.state.estimates = replace(many.state.estimates, estimates=(replace(best, **known),))
        assert many.bar.summary().endswith(f", {said}")
    many.type("")


def test_columns_are_completed_with_their_types(many: Asked) -> None:
    """Partition columns first, nested ones by their path, quoted where needed; what cannot be written is left out."""
    items = complete_filter(many.state, "", 0).items
    names = [item.text for item in items if item.kind == "column"]
    assert names[:2] == ['"a \\b\\ or\'c"', "day"]
    assert 'person."first name"' in names
    assert '"not"' in names
    assert not any("slash" in name or "tags" in name for name in names)
    assert next(item.about for item in items if item.text == "day") == "date, month partition"
    assert many.complete("id = 1 and per") == ['person."first name"', "person.age"]
    assert many.complete('person."fi') == ['person."first name"']


@pytest.mark.parametrize(
    ("column", "has", "has_not"),
    [
        ("raw", {"is null", "is not null"}, {"=", "<", "in (", "like"}),
        ("flag", {"=", "!=", "is null"}, {"<", "like", "is nan"}),
        ("price", {"=", "<", "between", "is nan"}, {"like"}),
        ("day", {"=", "<", "in ("}, {"like", "is nan"}),
        ('"a \\b\\ or\'c"', {"=", "like", "not like"}, {"is nan"}),
    ],
)
def test_comparisons_fit_the_type(many: Asked, column: str, has: set[str], has_not: set[str]) -> None:
    found = set(many.complete(f"{column} "))
    assert has <= found
    assert not has_not & found


def test_values_come_from_partitions_and_bounds(many: Asked) -> None:
    """Values are quoted as their type wants it; those that the language cannot say are left out."""
    assert many.complete("day >= ")[0] == "'2026-09-01'"
    texts = many.complete('"a \\b\\ or\'c" = ')
    assert {"'it''s'", "'50%'", "'a\\b'", "''", "' x '", "'''; --'"} <= set(texts)
    assert len(texts) == 6
    assert many.complete("flag = ") == ["true", "false"]
    assert many.complete("id = ") == ["0", "11"]
    assert many.complete("price < ") == ["-0.0", "1.375"]
    assert many.complete("amount < ") == ["0.00", "2.75"]
    assert many.complete("raw = ") == []


@settings(max_examples=150)
@given(st.data())
def test_what_is_completed_is_a_filter(many: Asked, data: Any) -> None:
    """Whatever one takes, step by step, the whole fits the table; and a value is the one that was offered."""
    text, count = "", 0
    for _ in range(40):
        found = complete_filter(many.state, text, len(text))
        if not found.items:
            return
        items = [item for item in found.items if item.text not in ("(", "not") or text.count("(") < 3]
        item = data.draw(st.sampled_from(items))
        text = f"{text[: found.start]}{item.text} "
        count += item.text in ("and", "or")
        if count > 2 or (item.kind == "value" and "(" not in text and "between" not in text):
            break
    if item.kind == "value" and "(" not in text and "between" not in text:
        many.state.table.bind(text)


@pytest.mark.parametrize(
    "column", ["id", "flag", "ratio", "price", "amount", "day", "clock", "at", "zoned", "key", QUOTED]
)
def test_a_value_that_is_taken_finds_its_rows(many: Asked, column: str) -> None:
    """A click on a value makes the filter of exactly that value, or none at all."""
    wrong = []
    for i, value in enumerate(build_row(i)[column] for i in range(len(HOSTILE_VALUES))):
        if add_clause(many.state, "test", column, value):
            # PyIceberg cannot scan for a UUID.
            plan = many.state.table.plan(effective_filter(many.state), rows=column != "key")
            wrong += [] if plan.steps[-1].kept else [(i, value)]
    many.state.clauses = {}
    assert wrong == []


def test_chips_that_are_taken_out_leave_what_was_before(many: Asked) -> None:
    """A mark, a range, manifests: each is text, part of the plan, and can be taken out alone, or with all others."""
    many.type("id < 9 or id > 10")
    plain = many.state.plan
    month = FieldRange("day_month", 8, "month", "int", 680, 680)
    add_range(many.state, "histogram:price", "price", 1e-9, 0.5)
    many.state.selection = Selection(0, (month,))
    many.wait()
    chips = many.bar.document()["chips"]
    assert [chip["text"] for chip in chips] == [
        "price >= 0.000000001 and price < 0.5",
        "day >= '2026-09-01' and day < '2026-10-01'",
    ]
    asked = (
        "(id < 9 or id > 10) and price >= 0.000000001 and price < 0.5 and day >= '2026-09-01' and day < '2026-10-01'"
    )
    assert many.state.plan.row_filter == many.state.estimates.row_filter == asked
    assert many.bar.code() == f"row_filter = {asked!r}"
    for chip in chips:
        many.bar.act("drop", chip["action"])
        many.wait()
    many.bar.act("drop", {"chip": "clause:nothing"})
    assert many.bar.document()["chips"] == []
    assert many.state.plan.row_filter == plain.row_filter
    assert many.state.plan.kept_file_paths() == plain.kept_file_paths()
    many.state.selection = Selection(0, (month,))
    many.bar.act("clear", {})
    many.wait()
    assert (many.state.plan, many.state.selection, many.bar.document()["text"]) == (None, None, "")


def test_manifests_are_a_chip_that_no_filter_can_say(hostile_table: icestats.Table) -> None:
    """They narrow the plan; estimates are of all, so the line says no rows."""
    asked = Asked(hostile_table).read()
    path = asked.state.manifests["manifest_path"][0].as_py()
    asked.state.selection = Selection(manifest_paths=(path,))
    asked.wait()
    (chip,) = asked.bar.document()["chips"]
    assert chip["text"] == "1 manifest"
    assert path.rsplit("/", 1)[1] in chip["about"]
    assert asked.state.plan.manifests()["manifest_path"].to_pylist() == [path]
    assert "rows" not in asked.bar.document()["summary"]
    asked.type("price > 1000")
    assert [step.kept for step in asked.state.plan.steps] == [1, 0] or asked.state.plan.kept_file_paths() == []


def test_what_no_filter_can_say_is_said(hostile_table: icestats.Table) -> None:
    """A bucket stands on the chip, with what it is worth."""
    asked = Asked(hostile_table)
    asked.state.selection = Selection(0, (FieldRange("id_bucket", 1, "bucket[4]", "int", 2, 2),))
    (chip,) = asked.bar.document()["chips"]
    assert chip["text"] == "marked only: id_bucket 2"
    assert "No filter can say" in chip["about"]
    assert effective_filter(asked.state) is None


def test_the_newest_filter_wins_and_none_pile_up(hostile_table: icestats.Table) -> None:
    """While one is planned, others are typed: the next that is planned is the last of them."""
    asked = Asked(Gated(hostile_table))
    asked.bar.act("type", {"text": "id = 0"})
    assert asked.state.table.has_begun.wait(60)
    for number in range(1, 30):
        asked.bar.act("type", {"text": f"id = {number}"})
    asked.state.table.gate.set()
    asked.wait()
    assert asked.state.table.planned == ["id = 0", "id = 29"]
    assert asked.state.plan.row_filter == asked.state.estimates.row_filter == "id = 29"
    assert not asked.state.loading


@pytest.mark.parametrize(("is_read", "most"), [(False, 6), (True, 4)])
def test_while_manifests_are_read_the_bar_says_the_most_files(
    hostile_table: icestats.Table, is_read: bool, most: int
) -> None:
    """The manifest list tells, and the partitions as far as they are known; of known files nothing is told."""
    asked = Asked(Gated(hostile_table))
    if is_read:
        asked.read()
    is_told, is_part_read = threading.Event(), threading.Event()
    asked.state.observe(lambda change: is_told.set() if change.new else None, "outlook")
    asked.state.observe(
        lambda change: is_part_read.set() if "asked_part" in change.old - change.new else None, "loading"
    )
    seen: list[str] = []
    asked.state.observe(lambda _: seen.append(describe_outlook(asked.state)), ["outlook", "asked_part"])
    asked.bar.act("type", {"text": "at >= '2025-09-04T00:00:00+00:00' and id = 110"})
    assert asked.state.table.has_begun.wait(60)
    assert is_told.wait(60)
    assert not is_read or is_part_read.wait(60)
    said = asked.bar.document()
    assert said["busy"]
    assert said["summary"] == seen[-1] == f"at most {most} of 12 files: reading the files of 1 manifest"
    asked.state.table.gate.set()
    asked.wait()
    assert asked.bar.document()["summary"].startswith("2 of 12 files, ")
    asked.state.table.gate.clear()
    is_told.clear()
    asked.bar.act("type", {"text": "at >= '2025-09-04T00:00:00+00:00' and id = 111"})
    assert is_told.wait(60)
    assert asked.bar.document()["summary"].startswith("2 of 12 files, ")
    asked.state.table.gate.set()
    asked.wait()


class Gated:
    """A table whose plans wait for a gate."""

    def __init__(self, table: icestats.Table) -> None:
        self._table = table
        self.gate, self.has_begun = threading.Event(), threading.Event()
        self.planned: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    def plan(self, row_filter: str, **options: Any) -> Any:
        self.planned.append(row_filter)
        self.has_begun.set()
        assert self.gate.wait(60)
        return self._table.plan(row_filter, **options)


def test_a_table_that_vanishes_is_said_in_the_bar(hostile_table: icestats.Table) -> None:
    """No picture goes on to mark what the plan of an earlier filter skips, and the reason stands in the bar."""
    asked = Asked(hostile_table)
    asked.type("price < 3")
    assert asked.state.plan is not None
    for path in hostile_table.manifest_files()["manifest_path"].to_pylist():
        Path(path.removeprefix("file://")).unlink()
    document = asked.type("price < 4 and id < 3")
    assert asked.state.plan is None
    assert ".avro" in document["error"]
    assert document["summary"] == ""


def test_rows_of_the_snapshot_before_do_not_stand_beside_the_plan_of_this_one(
    catalog: SqlCatalog, catalog_properties: dict[str, str]
) -> None:
    """A manifest that the plan does not need is gone: the rows cannot be estimated again."""
    by_day = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "day"))
    table = catalog.create_table("db.days", Schema(NestedField(1, "day", LongType())), partition_spec=by_day)
    table.append(pa.table({"day": [1] * 10}))
    asked = Asked(icestats.load("db.days", catalog=catalog_properties))
    assert asked.type("day = 1")["summary"].endswith(", 10 rows")
    for day in (1, 2):
        table.append(pa.table({"day": [day] * 5}))
    gone = max(table.current_snapshot().manifests(table.io), key=lambda one: one.sequence_number or 0)
    local_path(gone.manifest_path).unlink()
    asked.state.table = asked.state.table.refresh()
    asked.wait()
    assert asked.state.plan.steps[-1].kept_rows == 15
    assert asked.bar.document()["summary"].startswith("2 of 3 files")
    assert "row" not in asked.bar.document()["summary"]
    assert asked.state.estimates is None
    assert gone.manifest_path in asked.state.notes["estimates"]


def test_an_empty_table_has_a_bar(empty_table: icestats.Table) -> None:
    asked = Asked(empty_table).read()
    assert asked.type("id = 3")["summary"].startswith("0 of 0 files, 0 B")
    assert asked.complete("id = ") == []
    assert asked.bar.document()["ideas"] == []


@pytest.mark.parametrize(
    ("transform", "source", "lower", "upper", "with_null", "text"),
    [
        ("day", "timestamp", DAY, DAY + dt.timedelta(1), False, "at >= '2026-09-01' and at < '2026-09-03'"),
        ("day", "timestamptz", 20_697, 20_697, True, "(at >= '2026-09-01' and at < '2026-09-02' or at is null)"),
        ("month", "date", 516, 516, False, "at >= '2013-01-01' and at < '2013-02-01'"),
        ("hour", "timestamp", 23, 23, False, "at >= '1970-01-01T23:00:00' and at < '1970-01-02'"),
        ("hour", "timestamptz", 1, 1, False, "at >= '1970-01-01T01:00:00+00:00' and at < '1970-01-01T02:00:00+00:00'"),
        ("identity", "string", "O'Hare", "z", False, "at >= 'O''Hare' and at <= 'z'"),
        ("identity", "string", "end\\", "z", False, None),
        ("identity", "string", None, None, True, "at is null"),
        ("bucket[4]", "long", None, None, True, "at is null"),
        ("bucket[4]", "long", 1, 2, False, None),
        ("void", "long", None, None, True, None),
        ("year", "timestamp", 8030, 8030, False, None),
    ],
)  # fmt: skip
def test_partitions_as_a_filter(
    transform: str, source: str, lower: Any, upper: Any, with_null: bool, text: str | None
) -> None:
    """Times, values and nulls become conditions on the column; what a filter cannot say is named instead."""
    one = FieldRange("at_part", 1, transform, "int", lower, upper, with_null)
    schema = IcestatsSchema(0, (Field(1, "at", source, False, True),))
    selection = Selection(0, (one,))
    assert selection.row_filter(schema) == text
    assert bool(selection.untold(schema)) == (text is None)


def test_a_selection_plans_what_it_selects(hostile_table: icestats.Table) -> None:
    """The filter of any range of partitions keeps the files of these partitions, and of no other."""
    partitions = hostile_table.partitions()
    days = sorted({row["at_day"] for row in partitions["partition"].to_pylist()})
    for lower in days:
        for upper in [day for day in days if day >= lower]:
            for name in (None, HOSTILE, "<b>bold</b>"):
                ranges = [FieldRange("at_day", 2, "day", "date", lower, upper)]
                ranges += [] if name is None else [FieldRange(HOSTILE, 4, "identity", "string", name, name)]
                selection = Selection(0, tuple(ranges))
                wanted = partitions.filter(selection.mask(partitions))["partition"].to_pylist()
                plan = hostile_table.plan(selection.row_filter(hostile_table.schema))
                kept = plan.files("kept")["partition"].to_pylist()
                assert {str(key) for key in kept} == {str(key) for key in wanted}


@pytest.mark.parametrize(
    ("typed", "said", "meant"),
    [
        ("at <= '2025-09-02'", "ends at the first moment of that day", "at < '2025-09-03'"),
        ("at > '2025-09-02'", "has that day but for its first moment", "at >= '2025-09-03'"),
        ("id > 3 and at = '2025-09-02'", "is the first moment of that day alone",
         "id > 3 and (at >= '2025-09-02' and at < '2025-09-03')"),
        ("at between '2025-09-01' and '2025-09-02'", "ends at the first moment of 2025-09-02",
         "at >= '2025-09-01' and at < '2025-09-03'"),
        ("at <= '2024-12-31' or at >= '2025-09-03'", "ends at", "at < '2025-01-01' or at >= '2025-09-03'"),
        ("at != '2025-09-02'", "leaves out the first moment of that day alone",
         "at < '2025-09-02' or at >= '2025-09-03'"),
        ("id > 3 and at <> '2025-09-02'", "Without the day: ",
         "id > 3 and (at < '2025-09-02' or at >= '2025-09-03')"),
        ("at in ('2025-09-02')", "has the first moment of each day alone",
         "at >= '2025-09-02' and at < '2025-09-03'"),
        ("id > 3 and at in ('2025-09-02', '2025-09-04T10:00:00+00:00', '2025-09-04')", "'2025-09-03') or at = '2025-0",
         "id > 3 and ((at >= '2025-09-02' and at < '2025-09-03') or at = '2025-09-04T10:00:00+00:00' or "
         "(at >= '2025-09-04' and at < '2025-09-05'))"),
        ("at not in ('2025-09-02', '2025-09-04')", "Without the days: ",
         "(at < '2025-09-02' or at >= '2025-09-03') and (at < '2025-09-04' or at >= '2025-09-05')"),
    ],
)  # fmt: skip
def test_a_date_that_cuts_into_its_day_is_said_and_the_whole_day_offered(
    hostile_table: icestats.Table, typed: str, said: str, meant: str
) -> None:
    asked = Asked(hostile_table)
    tip = asked.type(typed)["tip"]
    assert said in tip["text"]
    assert tip["filter"] == meant
    assert asked.type(meant)["tip"] is None
    assert asked.state.row_filter == meant


@pytest.mark.parametrize(
    "typed",
    ["at < '2025-09-02'", "at >= '2025-09-02'", "at <= '2025-09-02T23:59:59+00:00'", "id <= 3", "at <= '2025-",
     "at is null", "at in ('2025-09-02T01:00:00+00:00')", "at != '9999-12-31'", "at in ('9999-12-31')",
     "at <= '9999-12-31'", ""],
)  # fmt: skip
def test_of_other_filters_no_date_is_explained(hostile_table: icestats.Table, typed: str) -> None:
    assert Asked(hostile_table).type(typed)["tip"] is None
