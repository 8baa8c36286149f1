"""Nothing that a table holds reaches a terminal or a notebook as it is, where it could move, hide or forge text."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import And, EqualTo, LessThan
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

import icestats
from icestats.answers.markup import build_table, element
from icestats.answers.text import align, one_line, printable, printable_lines
from icestats.cli import entry as cli
from icestats.errors import IcestatsError, MetadataError, said_if_cut
from icestats.iceberg.storage import local_path

HIDDEN = "".join(map(chr, [*range(32), *range(127, 160), 0x61C, *range(0x200B, 0x2010), *range(0x2028, 0x202F)]))
HIDDEN += "".join(map(chr, [*range(0x2060, 0x2070), 0xFEFF]))
NAME = "n\x1b[31m\x9b\x7f\u202e\u200f\u061c\u200b\u2028\u2029\rx\nFORGED <b>&"
VALUE = "v\x1b[2J\x85\u2067\nFORGED <i>"


@pytest.fixture
def hostile(catalog: SqlCatalog, tmp_path: Path) -> str:
    """The metadata.json of a table whose names, values, summary, branch and folder are hostile."""
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, NAME, StringType()))
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), f"p{NAME}"))
    folder = tmp_path / f"f{NAME.replace('/', '')}"
    table = catalog.create_table("db.hostile", schema, partition_spec=spec, location=str(folder / "table"))
    for commit in range(2):
        rows = {"id": pa.array([commit, commit + 1], pa.int64()), NAME: [VALUE, f"{commit}"]}
        table.append(pa.table(rows), snapshot_properties={"note": VALUE})
    path = local_path(table.metadata_location)
    document = json.loads(path.read_text())
    document["refs"][f"b{NAME}"] = {"snapshot-id": document["current-snapshot-id"], "type": "tag"}
    path.write_text(json.dumps(document))
    return str(path)


def check(text: str) -> None:
    assert text
    for line in text.split("\n"):
        assert line.isprintable(), ascii(line)
        assert not line.lstrip().startswith("FORGED")


def answers(table: icestats.Table) -> dict[str, Callable[[], object]]:
    is_value = EqualTo(NAME, VALUE)
    return {
        "table": lambda: table,
        "plan": lambda: table.plan(And(is_value, LessThan("id", 3))),
        "estimate": lambda: table.estimate(is_value),
        "workload": lambda: table.estimate_workload([is_value]),
        "reported": table.reported_statistics,
        "layout": table.layout,
        "what if": lambda: table.layout().what_if([is_value], regroup=f"p{NAME}"),
        "what if anew": lambda: table.layout().what_if([is_value], partition_by=f"truncate(3, `{NAME}`)"),
        "statistics": lambda: table.compute(manifests=True, partitions=True, table=False),
        "snapshot": lambda: table.snapshot,
        "columns": lambda: table.schema.columns,
    }


def test_every_answer_is_printable(hostile):
    table = icestats.load(hostile)
    for name, ask in answers(table).items():
        answer = ask()
        check(repr(answer))
        check(str(answer))
        if hasattr(answer, "_repr_html_"):
            html = answer._repr_html_()
            assert "<i>" not in html, name
            assert not set(html) & (set(HIDDEN) - {"\n"}), name


def test_what_is_logged_of_computed_statistics_is_printable(hostile, caplog):
    with caplog.at_level("INFO", "icestats"):
        icestats.load(hostile).compute(manifests=True, partitions=True, table=False)
    assert len(caplog.messages) >= 2
    for message in caplog.messages:
        check(message)


def test_the_operation_of_a_snapshot_is_any_text(hostile):
    path = Path(hostile)
    path.write_text(path.read_text().replace('"append"', json.dumps(f"append{VALUE}")))
    table = icestats.load(hostile)
    check(repr(table))
    assert "append" in repr(table)


def test_every_error_is_one_printable_line(hostile, tmp_path):
    table = icestats.load(hostile)
    calls = [
        lambda: icestats.load(hostile, ref=f"no{NAME}"),
        lambda: icestats.load(str(tmp_path / f"no{NAME}" / "v1.metadata.json")),
        lambda: table.histogram(NAME),
        lambda: table.histogram(f"no{NAME}"),
        lambda: table.plan("nothing = 3"),
        lambda: table.plan(f"{NAME} = 3"),
        lambda: table.sql(f"select '{NAME}' from nothing"),
        table.partition_statistics,
    ]
    manifest = local_path(table.manifest_files()["manifest_path"][0].as_py())
    manifest.write_bytes(b"no")
    calls.append(icestats.load(hostile).layout)
    for ask in calls:
        with pytest.raises(IcestatsError) as caught:
            ask()
        check(str(caught.value))
        assert "\n" not in str(caught.value)


def test_what_another_library_says_of_a_table_is_printable_in_a_traceback_too(hostile):
    """DuckDB and Arrow repeat values and paths as they are, and an interpreter prints an error's causes."""
    table = icestats.load(hostile)
    file = local_path(table.files()["file_path"][0].as_py())
    file.unlink()
    for ask in (
        lambda: table.sql("select cast(name as int) from columns"),
        lambda: table.sql("select error(file_path) from files"),
        lambda: table.estimate("id < 3", actual=True),
    ):
        with pytest.raises(IcestatsError) as caught:
            ask()
        shown = "".join(traceback.format_exception(caught.value))
        assert all(line.isprintable() for line in shown.split("\n")), ascii(shown)


def test_a_path_without_end_is_cut_in_the_message_alone():
    path = "file:///" + "a" * 100_000
    error = MetadataError("it is cut short", path, 7)
    assert len(str(error)) < 1_100
    assert str(error).endswith("aaa... at byte 7: it is cut short")
    assert error.path == path


def test_an_error_is_printable_whatever_it_says_and_keeps_its_place():
    error = MetadataError(f"has {VALUE}", NAME, 3)
    check(str(error))
    assert (error.path, error.offset) == (NAME, 3)
    check(one_line(ValueError(VALUE)))


VERBS = [
    ["show"], ["manifests"], ["partitions"], ["columns"], ["files"], ["plan", "id < 3"], ["estimate", "id < 3"],
    ["layout"], ["sketches"], ["histogram", NAME], ["histogram", f"no{NAME}"], ["plan", f"{NAME} < 3"],
    ["sql", "select * from partitions"], ["show", "--ref", NAME], ["compute", "--manifests", "--partitions"],
]  # fmt: skip


@pytest.mark.parametrize("output_format", ["table", "json"])
@pytest.mark.parametrize("verb", VERBS, ids=[" ".join(map(ascii, verb))[:40] for verb in VERBS])
def test_every_verb_prints_what_can_be_printed(verb, output_format, hostile, capfdbinary, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["icestats", verb[0], hostile, *verb[1:], "--format", output_format])
    with pytest.raises(SystemExit):
        cli.main()
    out, err = (data.decode() for data in capfdbinary.readouterr())
    assert out or err
    check(f"{out}{err}")
    if out and output_format == "json":
        json.loads(out)


def test_json_says_exactly_what_the_table_has(hostile, capfdbinary, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["icestats", "partitions", hostile, "--format", "json"])
    with pytest.raises(SystemExit):
        cli.main()
    found = json.loads(capfdbinary.readouterr().out)
    assert {row["partition"][f"p{NAME}"] for row in found} == {VALUE, "0", "1"}


def on_a_terminal(command: list[str]) -> tuple[str, int]:
    """Run a command whose stdout is a terminal; return what that is given, and the exit code."""
    master, terminal = pty.openpty()
    process = subprocess.Popen(command, stdout=terminal, stderr=subprocess.DEVNULL)
    os.close(terminal)
    parts = []
    while True:
        try:
            part = os.read(master, 65_536)
        except OSError:
            break
        if not part:
            break
        parts.append(part)
    os.close(master)
    return b"".join(parts).decode(errors="replace").replace("\r\n", "\n"), process.wait()


def test_csv_is_printable_on_a_terminal_and_exact_elsewhere(hostile):
    command = [sys.executable, "-m", "icestats", "partitions", hostile, "--format", "csv"]
    exact = subprocess.run(command, capture_output=True, check=True).stdout.decode()
    assert "\x85\u2067" in exact
    shown, code = on_a_terminal(command)
    assert ("p" in shown, code) == (True, 0)
    assert not set(shown) & (set(HIDDEN) - {"\n"})


def test_parquet_is_not_written_to_a_terminal(hostile):
    """It has names and values as they are."""
    assert on_a_terminal([sys.executable, "-m", "icestats", "partitions", hostile, "--format", "parquet"]) == ("", 2)


def test_what_an_interrupt_has_left_is_said_in_printable_words():
    """Python prints the notes of an interrupt as they are."""
    with pytest.raises(KeyboardInterrupt) as interrupted, said_if_cut(f"look at {NAME} at s3://user:word@host/x"):
        raise KeyboardInterrupt
    (note,) = interrupted.value.__notes__
    assert note.startswith("look at n")
    assert note.isprintable()
    assert "word" not in note


@given(st.text() | st.text(st.sampled_from(HIDDEN)))
def test_no_hidden_character_is_printed(text):
    shown = printable(text)
    assert shown.isprintable()
    assert len(shown) == len(text)
    assert not set(shown) & set(HIDDEN)
    assert all(a in (b, "\N{REPLACEMENT CHARACTER}") for a, b in zip(shown, text, strict=True))
    assert printable_lines([text, text]).count("\n") == 1
    assert all(line.isprintable() for line in align([(text, "a"), ("b", text)]))
    html = element("p", text, title=text) + build_table([text], [[text, text]])
    assert not set(html) & (set(HIDDEN) - {"\n"})
