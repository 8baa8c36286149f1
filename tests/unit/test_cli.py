"""The command line: the answer alone on stdout, errors one line on stderr, exit codes 0, 1 and 2."""

from __future__ import annotations

import csv
import io
import json
import logging
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField, StringType

import icestats
from icestats.cli import entry as cli
from icestats.iceberg.storage import local_path
from tests.computed_statistics import compute_here


@pytest.fixture
def run(capfdbinary, monkeypatch, tmp_path):
    """Run the command line in this process; gives exit code, stdout and stderr."""
    monkeypatch.setenv("ICESTATS_HOME", str(tmp_path / "home"))

    def run(*arguments: str) -> tuple[int, bytes, str]:
        monkeypatch.setattr(sys, "argv", ["icestats", *arguments])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        out, err = capfdbinary.readouterr()
        return stop.value.code, out, err.decode()

    return run


@pytest.fixture
def location(read_table) -> str:
    return str(local_path(read_table.metadata_location))


def test_manifests_as_json_follow_the_contract(run, location, read_table):
    code, out, err = run("manifests", location, "--format", "json")
    records = json.loads(out)
    assert (code, err) == (0, "")
    assert len(records) == 2
    first = records[0]
    assert first["content"] == "data"
    assert first["added_snapshot_id"] == str(read_table.current_snapshot().snapshot_id)
    assert (first["live_file_count"], first["total_record_count"]) == (first["added_files_count"], 100)
    assert set(first["total_column_sizes"]) == {"1", "2", "3", "4"}
    assert set(first["total_nan_value_counts"]) == {"3"}
    assert first["total_value_counts"]["1"] == 100
    assert (first["lower_bounds"]["1"], first["upper_bounds"]["1"]) == (100, 199)
    assert first["lower_bounds"]["2"] == "2025-09-05T04:00:00+00:00"
    assert first["total_null_value_counts"]["4"] == 20


def test_ids_of_snapshots_are_text_in_json(run, location, read_table):
    """A reader whose numbers are doubles must not round them."""
    query = "select snapshot_id, parent_snapshot_id from snapshots where parent_snapshot_id is not null"
    code, out, _ = run("sql", location, query, "--format", "json")
    first, second = (entry.snapshot_id for entry in read_table.history())
    assert (code, json.loads(out)) == (0, [{"snapshot_id": str(second), "parent_snapshot_id": str(first)}])


def test_a_letter_that_the_output_cannot_have_is_named_in_one_line(location, monkeypatch):
    """Not replaced: what reads the answer would take it for the table's own."""
    monkeypatch.setenv("PYTHONIOENCODING", "latin-1")
    call = [sys.executable, "-m", "icestats", "plan", location, "name = '€'"]
    ended = subprocess.run(call, capture_output=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, b"")
    expected = b"icestats: '\\u20ac' cannot be written in latin-1: expected UTF-8; set PYTHONIOENCODING=utf-8"
    assert ended.stderr.splitlines() == [expected]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize("how", [["--format", "json"], ["--format", "parquet"], []])
def test_a_full_disk_is_said_in_a_line(location, how):
    call = [sys.executable, "-m", "icestats", "manifests", location, *how]
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(call, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.startswith("icestats: No space left on device: expected room for the output, or in the folder")
    assert ended.stderr.count("\n") == 1


def test_what_libraries_log_does_not_come_between(run, location):
    """PyIceberg logs a warning for a bucket whose region it cannot find, which Python prints where nobody listens."""
    run("show", location)
    assert any(isinstance(handler, logging.NullHandler) for handler in logging.getLogger("pyiceberg").handlers)


@pytest.mark.parametrize("verb", [["columns"], ["estimate", "id < 5"], ["show"]])
def test_an_answer_needs_no_stderr(run, location, monkeypatch, verb):
    """Whoever starts a process may close it, as `2>&-` of a shell does."""
    monkeypatch.setattr(sys, "stderr", None)
    code, out, _ = run(verb[0], location, *verb[1:])
    assert (code, bool(out)) == (0, True)


END = """
import sys
from icestats.cli import command_line, entry

@command_line.cli.command("read")
def read():
    raise EOFError("the file ends too early")

sys.argv = ["icestats", "read"]
sys.exit(entry.main())
"""


def test_a_file_that_ends_too_early_is_no_interrupt():
    """Click takes it for one, and would end without a word."""
    done = subprocess.run([sys.executable, "-c", END], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.strip() == "icestats: EOFError: the file ends too early (ICESTATS_DEBUG=1 shows where)"


@pytest.mark.parametrize("output_format", ["table", "json", "csv", "parquet"])
def test_a_closed_stdout_is_no_failure(run, location, monkeypatch, output_format):
    monkeypatch.setattr(sys, "stdout", None)
    assert run("columns", location, "--format", output_format) == (0, b"", "")


def test_an_export_is_a_script_and_a_metastore_that_does_not_answer_one_line(run, location):
    code, out, err = run("export", location, "--to", "impala", "--name", "shop.small")
    assert (code, out.splitlines()[-1], err) == (0, b"SHOW COLUMN STATS `shop`.`small`;", "")
    gone = ("--name", "shop.small", "--metastore", "thrift://127.0.0.1:1")
    code, out, err = run("export", location, "--to", "hive", *gone)
    assert (code, out, err.count("\n")) == (1, b"", 1)
    assert err.startswith("icestats: the Hive metastore thrift://127.0.0.1:1 does not answer")
    assert run("export", location, "--to", "presto")[0] == 2


def test_a_part_of_a_histogram_says_how_much_is_not_drawn(run, catalog_properties, small_table):
    """In the table for people; JSON has it as `below` and `above`."""
    opened = icestats.load("db.small", catalog=catalog_properties)
    compute_here(opened).commit()
    location = str(local_path(small_table.refresh().metadata_location))
    prices = [v for v in small_table.scan().to_arrow()["price"].drop_null().to_pylist() if v == v]
    below, above = sum(v < 10 for v in prices), sum(v > 40 for v in prices)
    code, out, _ = run("histogram", location, "price", "--bins", "3", "--lower", "10", "--upper", "40")
    said = f"not drawn, of {len(prices)} values: {below} below, {above} above"
    assert code == 0
    assert out.decode().splitlines()[-1] == said
    assert min(below, above) > 0
    assert b"not drawn" not in run("histogram", location, "price", "--bins", "3")[1]
    assert b"not drawn" not in run("histogram", location, "price", "--lower", "10", "--format", "csv")[1]


def test_partitions_as_json_follow_the_contract(run, location):
    code, out, _ = run("partitions", location, "--format", "json")
    records = json.loads(out)
    assert code == 0
    assert records[0]["partition"].keys() == {"at_day", "id_bucket"}
    assert records[0]["partition"]["at_day"] == "2025-09-01"
    assert sum(record["data_record_count"] for record in records) == 200
    assert records[0]["last_updated_snapshot_id"].isdecimal()
    assert records[0]["position_delete_file_count"] == 0


def test_columns_as_json_say_where_each_figure_is_from(run, location):
    code, out, _ = run("columns", location, "--format", "json")
    columns = {record["name"]: record for record in json.loads(out)}
    assert code == 0
    assert (columns["id"]["lower_bound"], columns["id"]["upper_bound"]) == (0, 199)
    assert columns["id"]["ndv"] is None
    assert columns["id"]["provenance"]["ndv"].startswith("unknown")
    assert columns["id"]["provenance"]["value_count"].startswith("exact")
    assert columns["id"]["provenance"]["nan_value_count"].startswith("not applicable")
    assert columns["price"]["null_value_count"] == 29


def test_text_names_partitions_and_tells_unknown_from_not_applicable(run, location):
    head, first = run("partitions", location)[1].decode().splitlines()[:2]
    assert head.split()[:2] == ["at_day", "id_bucket"]
    assert first.split()[0] == "2025-09-01"
    rows = {line.split()[1]: line for line in run("columns", location)[1].decode().splitlines()}
    # NaN, and the lengths of numbers.
    assert rows["id"].count("not applicable") == 3
    assert rows["price"].count("not applicable") == 2
    assert "unknown" in rows["price"]


@pytest.mark.parametrize("query", ["from columns", "select 'me' as provenance, null as other"])
def test_a_query_may_return_a_column_of_provenance(run, location, query):
    code, out, err = run("sql", location, query)
    assert (code, err) == (0, "")
    assert "provenance" not in out.decode() or "me" in out.decode()
    assert "unknown" in out.decode()


def test_rows_of_nested_values_alone_are_said_to_be_in_json(run, location):
    code, out, err = run("sql", location, "select {'a': 1} as s")
    assert (code, out.decode(), err) == (0, "1 row of nested values: --format json shows them\n", "")


@pytest.mark.parametrize("output_format", ["table", "json", "csv"])
def test_statistics_of_many_partitions_do_not_become_python_objects_together(run, location, tmp_path, output_format):
    query = "select i, map_from_entries([(c::int, c + i) for c in range(200)]) as sizes from range(300) as t(i)"
    ask = ["sql", location, query, "--format", output_format, "--output", str(tmp_path / "answer")]
    run(*ask[:2], "select 1", *ask[3:])
    tracemalloc.start()
    code, _, err = run(*ask)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (code, err) == (0, "")
    assert peak < 8e6
    assert len((tmp_path / "answer").read_text().splitlines()) > 300


def test_csv_without_rows_has_its_head(run, location):
    code, out, err = run("sql", location, "select manifest_path, content from manifests where false", "--format", "csv")
    assert (code, out.decode().splitlines(), err) == (0, ["manifest_path,content"], "")


def test_partition_fields_have_their_own_values_whatever_their_names_have_become(run, renamed_fields):
    out = run("partitions", renamed_fields.metadata_location, "--format", "json")[1]
    found = [(record["partition"], record["data_record_count"]) for record in json.loads(out)]
    assert sorted(found, key=str) == [({"p": "x"}, 2), ({"q": 1}, 1), ({"q": 2}, 1)]


def test_a_partition_field_that_is_named_as_a_figure_stands_beside_it_in_text(run, catalog):
    table = catalog.create_table("db.named", Schema(NestedField(1, "data_file_count", StringType())))
    table.update_spec().add_identity("data_file_count").commit()
    table.append(pa.table({"data_file_count": ["x"]}))
    head, first = run("partitions", table.metadata_location)[1].decode().splitlines()
    shown = dict(zip(head.split(), first.split(), strict=False))
    assert (shown["partition.data_file_count"], shown["data_file_count"]) == ("x", "1")


@pytest.mark.parametrize("verb", ["manifests", "partitions", "columns", "files"])
def test_csv_and_parquet_hold_the_same_rows(run, location, verb, tmp_path):
    rows = json.loads(run(verb, location, "--format", "json")[1])
    assert len(list(csv.DictReader(io.StringIO(run(verb, location, "--format", "csv")[1].decode())))) == len(rows)
    _, out, _ = run(verb, location, "--format", "parquet")
    assert pq.read_table(io.BytesIO(out)).num_rows == len(rows)
    target = tmp_path / "rows.parquet"
    assert run(verb, location, "--format", "parquet", "--output", str(target))[:2] == (0, b"")
    assert pq.read_table(target).num_rows == len(rows)


@pytest.mark.parametrize("arguments", [["partitions"], ["files"], ["sql", "from files"]])
def test_an_unpartitioned_table_can_be_written_to_parquet(run, empty_table, arguments, tmp_path):
    """Parquet has no structs without fields: the column `partition`, which says nothing there, is left out."""
    empty_table.append(pa.table({"id": pa.array([1, 2], pa.int64())}))
    location = str(local_path(empty_table.refresh().metadata_location))
    path = tmp_path / "rows.parquet"
    verb, *rest = arguments
    code, out, err = run(verb, location, *rest, "--format", "parquet", "--output", str(path))
    assert (code, out, err) == (0, b"", "")
    found = pq.read_table(path)
    assert found.num_rows == 1
    assert "partition" not in found.column_names


def test_what_parquet_cannot_hold_is_said(run, location):
    """As how long a table has been written to."""
    query = "select max(committed_at) - min(committed_at) as span from snapshots"
    assert run("sql", location, query, "--format", "json")[0] == 0
    code, out, err = run("sql", location, query, "--format", "parquet")
    assert (code, out, err.count("\n")) == (2, b"", 1)
    assert "cast the column, or ask for another format" in err


def test_files_that_a_filter_rules_out_are_left_out(run, location, read_table):
    kept = json.loads(run("files", location, "--where", "id = 7", "--format", "json")[1])
    planned = {task.file.file_path for task in read_table.scan("id = 7").plan_files()}
    assert {record["file_path"] for record in kept} == planned
    assert len(planned) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "parts"),
    [
        (["frobnicate"], 2, ["No such command 'frobnicate'"]),
        (["manifests"], 2, ["Missing argument 'SOURCE'"]),
        (["manifests", "/nowhere/v1.metadata.json"], 1, ["no file /nowhere/v1.metadata.json"]),
        (["manifests", "nowhere.db.t", "--format", "yaml"], 2, ["'yaml' is not one of"]),
        (["manifests", "nocatalog.db.t"], 1, ["catalog"]),
        (["manifests", "http://localhost:1/v1.metadata.json"], 1, ["http://localhost:1", "cannot be read"]),
        (["manifests", "."], 1, ["no table in", "expected metadata/*.metadata.json below it"]),
        (["show", "demo.events"], 1, ["run `icestats demo`"]),
        (["histogram", "{}", "prize"], 2, ["no column 'prize'", "id, at, price, name"]),
        (["histogram", "{}", "price"], 1, ["no KLL sketch of column 'price'", "compute"]),
        (["histogram", "{}", "price", "--bins", "0"], 2, ["0 is not in the range"]),
        (["histogram", "{}", "price", "--where", "prize < 1"], 2, ["names no column 'prize'", "id, at, price, name"]),
        (["files", "{}", "--where", "price <"], 2, ["cannot be read"]),
        (["files", "{}", "--where", "price < 'abc'"], 2, ["does not fit the schema"]),
        (["files", "{}", "--columns", "nope"], 2, ["no column 'nope'"]),
        (["estimate", "{}", "id < 3", "--columns", ""], 2, ["'' names nothing: expected names with commas between"]),
        (["coverage", "{}", "--engines", ","], 2, ["',' names nothing"]),
        (["manifests", "{}", "--snapshot", "12"], 2, ["no snapshot 12"]),
        (["manifests", "{}", "--snapshot", "abc"], 2, ["'abc'"]),
        (["manifests", "{}", "--ref", "dev"], 2, ["no branch or tag 'dev'", "main"]),
        (["compute", "{}", "--columns", "nope"], 2, ["no column 'nope'"]),
        (["compute", "{}", "--k", "1"], 2, ["1 is not in the range"]),
        (["columns", "{}", "--output", "/nowhere/a.csv"], 2, ["written to /nowhere/a.csv: No such", "name a file"]),
        (["columns", "{}", "--output", "/dev/full"], 2, ["written to /dev/full: No space left on device"]),
        (["show", "~nobody-here/t.metadata.json"], 2, ["~nobody-here is no home folder, give an absolute path"]),
    ],
)
def test_bad_input_is_one_line_that_says_what_exists(run, location, arguments, code, parts):
    got, out, err = run(*(argument.format(location) for argument in arguments))
    assert got == code
    assert out == b""
    assert err.count("\n") == 1
    assert "Traceback" not in err
    for part in parts:
        assert part in err


@pytest.mark.parametrize(
    ("variable", "arguments"), [("ICESTATS_HOME", ["show", "demo.events"]), ("ICESTATS_CACHE", ["columns", "{}"])]
)
def test_a_folder_of_nobody_s_is_named(run, location, monkeypatch, variable, arguments):
    monkeypatch.setenv(variable, "~nobody-here/x")
    code, out, err = run(*(argument.format(location) for argument in arguments))
    assert (code, out) == (2, b"")
    assert err == f"icestats: {variable} is '~nobody-here/x': ~nobody-here is no home folder, give an absolute path\n"


@pytest.mark.parametrize(("name", "wrong"), [("a%20b", "'%20'"), ("a?b", "'?'"), ("a#b", "'#'")])
def test_a_home_whose_catalog_cannot_be_opened_is_refused_before_it_is_built(run, tmp_path, monkeypatch, name, wrong):
    monkeypatch.setenv("ICESTATS_HOME", str(tmp_path / name))
    expected = f"icestats: ICESTATS_HOME is '{tmp_path / name}': the catalog there cannot have {wrong} in its path, "
    for arguments in (("show", "demo.events"), ("demo",)):
        code, out, err = run(*arguments)
        assert (code, out, err) == (2, b"", f"{expected}name another\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("verb", ["show", "manifests", "partitions", "columns", "files", "sketches"])
def test_a_table_without_snapshots_gives_empties(run, empty_table, verb):
    location = str(local_path(empty_table.metadata_location))
    code, out, err = run(verb, location, "--format", "json")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    if verb == "show":
        assert (answer["record_count"], answer["data_file_count"], answer["snapshot_id"]) == (0, 0, None)
    elif verb == "columns":
        assert [record["live_file_count"] for record in answer] == [0, 0, 0, 0]
    else:
        assert answer == []


def test_a_broken_manifest_is_named(run, small_table):
    manifest = small_table.current_snapshot().manifests(small_table.io)[0]
    path = local_path(manifest.manifest_path)
    path.write_bytes(path.read_bytes()[:200])
    code, out, err = run("manifests", str(local_path(small_table.metadata_location)))
    assert (code, out) == (1, b"")
    assert path.name in err
    assert err.count("\n") == 1
