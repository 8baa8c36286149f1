"""An Arrow answer as a table for a person."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

import icestats

HOSTILE = "<script>alert(1)</script>\u202e\n"
ANSWER = pa.table(
    {
        "name": pa.array(["price", HOSTILE, None]),
        "ndv": pa.array([1_080_700, None, 3], pa.int64()),
        "rows": pa.array([1_080_700.0, 0.25, float("nan")]),
        "size_bytes": pa.array([1_234_567, None, 0], pa.int64()),
        "snapshot_id": pa.array([9_121_828_535_486_324_354, 1, 2], pa.int64()),
        "partition": pa.array([{"day": dt.date(2026, 9, 1), "bucket": None}] * 3),
        "kept": pa.array([True, False, None]),
        "share": pa.array([0.5, None, None]),
        "provenance": pa.array(
            [[("ndv", "estimate ± 3 %")], [], [("share", "not applicable: no rows")]], pa.map_(pa.string(), pa.string())
        ),
    }
)


def test_figures_have_units_and_what_is_unknown_is_a_word() -> None:
    """No NaN for null, no 1080700.0, no rounded identifier; an estimate is marked as one."""
    columns = ("name", "ndv", "rows", "size_bytes", "snapshot_id", "partition", "kept")
    lines = repr(icestats.show(ANSWER, *columns)).splitlines()
    assert "≈ 1,080,700" in lines[1]
    assert lines[1].count("1,080,700") == 2
    assert "1.23 MB" in lines[1]
    assert "9121828535486324354" in lines[1]
    assert "day=2026-09-01, bucket=null" in lines[1]
    assert lines[2].count("unknown") == 2
    assert (lines[2].split()[-1], lines[3].split()[-1]) == ("no", "–")
    assert "NaN" in lines[3]
    assert repr(icestats.show(ANSWER, "share")).split() == ["share", "0.5", "unknown", "not", "applicable"]


def test_text_of_a_table_is_text() -> None:
    """In HTML as in a terminal."""
    html = icestats.show(ANSWER, "name")._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert "\u202e" not in html + repr(icestats.show(ANSWER, "name"))


def test_of_many_rows_the_first_are_shown_and_the_others_counted() -> None:
    """Whoever looks knows that there is more; of none it is said, too."""
    shown = icestats.show(ANSWER, "ndv", rows=1)
    assert repr(shown).splitlines()[-1] == "… and 2 more rows"
    assert "… and 2 more rows" in shown._repr_html_()
    assert repr(icestats.show(ANSWER.slice(0, 0), "ndv")).splitlines() == ["ndv", "no rows"]


def test_decimals_and_nested_values_are_read_as_a_person_writes_them() -> None:
    """A list by its items, a map by its pairs, bytes in hexadecimal."""
    nested = pa.table(
        {
            "decimal": pa.array([Decimal("1234.50")]),
            "list": pa.array([["a", "b"]]),
            "empty": pa.array([[]], pa.list_(pa.string())),
            "map": pa.array([[(1, 2)]], pa.map_(pa.int32(), pa.int64())),
            "bytes": pa.array([b"\x01\xff"]),
        }
    )
    assert repr(icestats.show(nested)).splitlines()[1].split() == ["1,234.50", "a,", "b", "none", "1:", "2", "01ff"]


@pytest.mark.parametrize(("answer", "columns"), [(3, ()), (ANSWER, ("nope",))])
def test_what_cannot_be_shown_is_said_in_one_line(answer: object, columns: tuple[str, ...]) -> None:
    """No answer, and no such column; the message says what there is."""
    with pytest.raises(icestats.CallError, match=r"pyarrow\.Table|no column 'nope' to show: the answer has name, ndv"):
        icestats.show(answer, *columns)
