from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icestats.answers.schemas import MANIFEST_FILES
from icestats.iceberg.metadata import PartitionField
from icestats.table.overview import KeyRange
from icestats_widgets.drawing.axis import MS_A_DAY
from icestats_widgets.drawing.manifest_figure import (
    Key,
    ManifestPicture,
    ManifestRow,
    build_manifest_figure,
    find_manifests,
    manifests_between,
    sort_manifests,
)
from tests.pictures import check_picture, find_box, is_inside, keyed, plot_box, texts

DAY = Key(PartitionField(1000, 1, "at_day<b>", "day"), "date")
SKIPPED = "manifests by partition summaries"


def manifest(path: str, rows: int | None, content: str = "data") -> dict[str, Any]:
    counts = dict.fromkeys((f"{s}_files_count" for s in ("added", "existing", "deleted")), 1)
    counts |= {"added_rows_count": rows, "existing_rows_count": 0, "deleted_rows_count": 0}
    numbers = dict.fromkeys(("manifest_length", "partition_spec_id", "sequence_number", "min_sequence_number"), 0)
    return {"manifest_path": path, "content": content, **numbers, **counts}


def rows_of(*found: tuple[float, float, int | None, str], key: Key | None = DAY) -> tuple[ManifestRow, ...]:
    """Return a manifest for each lowest day, highest day, number of records and content; paths are numbers."""
    files = [manifest(f"s3://b/{i}", rows, content) for i, (_, _, rows, content) in enumerate(found)]
    ranges = [
        KeyRange(f"s3://b/{i}", content == "data", rows, lower, upper, f"<{lower}>", f"<{upper}>")
        for i, (lower, upper, rows, content) in enumerate(found)
    ]
    return sort_manifests(pa.Table.from_pylist(files, schema=MANIFEST_FILES), ranges, key)


def days(count: int, span: int = 3) -> tuple[ManifestRow, ...]:
    return rows_of(*((i, i + span, i + 1, "deletes" if i % 10 == 9 else "data") for i in range(count)))


def record_lengths(picture: ManifestPicture) -> float:
    """Return how many records the bars of the records stand for together."""
    plot, box = picture.plots["records"], plot_box(picture, "records")
    drawn = [
        found
        for one in check_picture(picture)
        if "data-key" in one.attrib and (found := find_box(one)) and is_inside(found, box)
    ]
    return sum(plot.x.invert((end - start) / plot.width) for start, _, end, _ in drawn)


RANGES = st.tuples(
    st.integers(-3_000_000, 3_000_000), st.integers(0, 10_000), st.none() | st.integers(0, 2**62),
    st.sampled_from(["data", "deletes"]),
)  # fmt: skip


@given(st.lists(RANGES, max_size=200), st.integers(320, 1400), st.data())
def test_any_manifests_are_a_picture(found: list[Any], width: int, data: Any) -> None:
    """Whatever their ranges and counts, with a filter and without, zoomed or not."""
    rows = rows_of(*((low, low + span, count, content) for low, span, count, content in found))
    verdicts = {row.path: data.draw(st.sampled_from(["", "<one>", "two", "three"])) for row in rows[:20]} or None
    ends = sorted(data.draw(st.tuples(st.floats(-1e14, 1e14), st.floats(-1e14, 1e14))))
    zoom = None if data.draw(st.booleans()) else (ends[0], ends[1])
    selected = [row.path for row in rows[::3]] if data.draw(st.booleans()) else None
    check_picture(build_manifest_figure(rows, DAY, width=width, verdicts=verdicts, selected=selected, zoom=zoom))


@pytest.mark.parametrize("count", [31, 640, 10_000])
def test_all_records_are_drawn(count: int) -> None:
    """Manifests that share a line are drawn together: none is left out, and the picture stays small."""
    rows = days(count)
    verdicts = {row.path: SKIPPED if i % 7 else "" for i, row in enumerate(rows)}
    picture = build_manifest_figure(rows, DAY, width=1400, verdicts=verdicts)
    assert record_lengths(picture) == pytest.approx(sum(range(count + 1)), rel=0.02)
    marks = keyed(check_picture(picture))
    lines = [find_manifests(key, rows) for key in marks if key.startswith("lane")]
    assert sorted(path for paths in lines for path in paths) == sorted(row.path for row in rows)
    assert picture.lane_size == max(map(len, lines))
    kept = sum(not step for step in verdicts.values())
    texts_of = [title for key, titles in marks.items() if key.startswith("lane") for title in titles[:1]]
    if picture.lane_size > 1:
        said = [int(line.split(" ")[0]) for title in texts_of for line in title.split("\n") if line.endswith(" kept")]
        assert sum(said) == kept


def test_a_step_of_the_overlap_curve_selects_the_manifests_that_overlap_there() -> None:
    """As many as the step is high, and delete manifests are not among them."""
    rows = rows_of((0, 9, 1, "data"), (5, 14, 1, "data"), (5, 6, 1, "deletes"), (30, 30, 1, "data"))
    picture = build_manifest_figure(rows, DAY, width=900)
    assert picture.deepest == 2
    steps = {key: title for key, (title, *_) in keyed(check_picture(picture)).items() if key.startswith("over")}
    found = [find_manifests(key, rows) for key in steps]
    assert found == [("s3://b/0",), ("s3://b/0", "s3://b/1"), ("s3://b/1",), ("s3://b/3",)]
    assert ["up to 2 data manifests" in title for title in steps.values()] == [False, True, False, False]


@pytest.mark.parametrize("wide", [[], [(-(10**6), 10**6)]])
@pytest.mark.parametrize(
    ("kind", "at"), [("double", 1.5), ("decimal(9, 2)", 7.0), ("timestamp", 1_700_000_000_123_457.0), ("long", 2.0**60)]
)
def test_manifests_of_one_and_the_same_key_overlap(kind: str, at: float, wide: list[tuple[int, int]]) -> None:
    """A key has a place on the axis, whatever its type: at a range's ends, too."""
    key = Key(PartitionField(1000, 1, "part", "identity"), kind)
    ends = [(at, at)] * 3 + [(at + lower, at + upper) for lower, upper in [*wide, (-4096.0, 0.0)]]
    rows = rows_of(*((lower, upper, 1, "data") for lower, upper in ends), key=key)
    for shown in (rows, rows_of(*[(at, at, 1, "data")] * 3, key=key)):
        picture = build_manifest_figure(shown, key, width=900)
        assert picture.deepest == len(shown)
        steps = [one for one in keyed(check_picture(picture)) if one.startswith("over")]
        assert max(len(find_manifests(one, shown)) for one in steps) == len(shown)


def test_many_steps_show_the_most_that_overlap() -> None:
    """A peak thinner than a pixel is seen, and a click selects at least what lies there."""
    spans = [(i, i, 1, "data") for i in range(0, 20_000, 2)] + [(9_000, 9_000, 1, "data")] * 4
    rows = rows_of(*spans)
    picture = build_manifest_figure(rows, DAY, width=900)
    assert picture.deepest == 5
    steps = {key: title for key, (title, *_) in keyed(check_picture(picture)).items() if key.startswith("over")}
    assert sum("up to 5 data manifests" in title for title in steps.values()) == 1
    peak = next(key for key in steps if len({"s3://b/4500", "s3://b/10000"} & set(find_manifests(key, rows))) == 2)
    assert len(find_manifests(peak, rows)) >= 5


def test_zoomed_manifests_are_drawn_singly() -> None:
    """Only those that touch the part of the axis, each in its own line when they fit."""
    rows = days(2_000)
    zoom = (500.0 * MS_A_DAY, 510.0 * MS_A_DAY)
    picture = build_manifest_figure(rows, DAY, width=900, zoom=zoom)
    assert picture.lane_size == 1
    assert (picture.plots["keys"].x.invert(0), picture.plots["keys"].x.invert(1)) == zoom
    lines = [key for key in keyed(check_picture(picture)) if key.startswith("lane")]
    drawn = {path for key in lines for path in find_manifests(key, rows)}
    assert drawn == set(manifests_between(rows, *zoom)) == {f"s3://b/{i}" for i in range(497, 510)}


def test_a_manifest_of_unknown_size_has_no_bar_of_0() -> None:
    """Unknown is left out, and said in the title of the key range."""
    picture = build_manifest_figure(rows_of((0, 1, 5, "data"), (3, 4, None, "data")), DAY, width=700)
    marks = keyed(check_picture(picture))
    assert [len(marks[key]) for key in ("lane 0 1", "lane 1 2")] == [2, 1]
    assert "unknown records" in marks["lane 1 2"][0]


def test_a_month_is_as_wide_as_the_month() -> None:
    """The key 2013-02 reaches from the first of February to the first of March."""
    key = Key(PartitionField(1000, 1, "at_month", "month"), "int")
    (row,) = rows_of((517, 517, 5, "data"), key=key)
    start = dt.datetime(2013, 2, 1, tzinfo=dt.UTC).timestamp() * 1000
    assert row.interval == (start, start + 28 * MS_A_DAY)


def test_manifests_without_a_range_have_their_records_only() -> None:
    """No bar of keys, no `NaN`; without a partition field there is no axis of keys."""
    files = pa.Table.from_pylist([manifest("one", 5), manifest("two", 7)], schema=MANIFEST_FILES)
    ranges = [KeyRange("one", True, 5, 3.0, 4.0, "3", "4"), KeyRange("two", True, 7, float("nan"), 4.0, "3", "4")]
    picture = build_manifest_figure(sort_manifests(files, ranges, DAY), DAY, width=700)
    assert record_lengths(picture) > 0
    without = build_manifest_figure(sort_manifests(files, (), None), None, width=700)
    assert set(without.plots) == {"records"}
    assert len(keyed(check_picture(without))) == 2
    assert check_picture(build_manifest_figure((), DAY, width=700))


def test_what_is_not_selected_is_faded() -> None:
    """The selected ones stand out, drawn over the others."""
    rows = days(5)
    elements = check_picture(build_manifest_figure(rows, DAY, width=700, selected=[rows[2].path]))
    clear = {
        one.attrib["data-key"] for one in elements if one.attrib.get("class") == "i-data" and "data-key" in one.attrib
    }
    assert clear == {"lane 2 3"}
    assert {"data manifests", "not selected"} <= set(texts(elements))


def test_each_step_of_a_plan_has_its_colour() -> None:
    """The legend names what is kept, and by which step the others are skipped."""
    rows = days(6)
    verdicts = dict(
        zip([row.path for row in rows], ["", SKIPPED, SKIPPED, "manifests by column bounds", "", ""], strict=True)
    )
    elements = check_picture(build_manifest_figure(rows, DAY, width=900, verdicts=verdicts))
    assert {"data manifests, kept", "skipped: by partition summaries", "skipped: by column bounds"} <= set(
        texts(elements)
    )
    kinds = {
        one.attrib["data-key"]: one.attrib["class"]
        for one in elements
        if one.attrib.get("data-key", "").startswith("lane")
    }
    assert list(kinds.values()) == ["i-data", "i-skipped0", "i-skipped0", "i-skipped1", "i-data", "i-data"]


@pytest.mark.parametrize(
    "key", ["", "lane", "lane 0", "lane x y", "lane nan 3", "lane 5 900 inf nan", "over 1", "over a b", "x 1 2"]
)
def test_a_key_that_is_none_stands_for_nothing(key: str) -> None:
    """Keys come from a page."""
    assert find_manifests(key, days(3)) == ()
