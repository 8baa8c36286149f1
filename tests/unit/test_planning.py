"""Plans: what each step says and why, the command line's contract, and which delete files apply."""

from __future__ import annotations

import json
import struct
import sys

import pyarrow as pa
import pytest
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import TruncateTransform
from pyiceberg.typedef import Record
from pyiceberg.types import DoubleType, IntegerType, LongType, NestedField, StringType, StructType

import icestats
from icestats.answers.schemas import (
    LAYOUT,
    PLAN_MANIFESTS,
    PLAN_ROW_GROUPS,
    PLAN_STEPS,
    PLANNING_STATISTICS,
    file_metrics_schema,
)
from icestats.cli import entry as cli
from icestats.estimation.sources import SOURCES
from icestats.iceberg.storage import local_path
from icestats.iceberg.types import encode_value
from icestats.read.manifests.manifests import manifests_to_read, read_file_metrics, read_files
from icestats.snapshot.pruning import delete_index
from icestats.snapshot.pruning.delete_index import PATH_FIELD_ID, DeleteIndex


@pytest.fixture
def table(read_table):
    """Two commits of 100 ids each, four days each, by day and bucket."""
    return icestats.load(str(local_path(read_table.metadata_location)))


@pytest.fixture
def run(capfdbinary, monkeypatch):
    def run(*arguments: str) -> tuple[int, bytes, str]:
        monkeypatch.setattr(sys, "argv", ["icestats", *arguments])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        out, err = capfdbinary.readouterr()
        return stop.value.code, out, err.decode()

    return run


def test_each_step_begins_with_what_the_one_before_has_left(table):
    plan = table.plan("id < 30 and at >= '2025-09-01'", row_groups=True, rows=True, manifest_statistics=True)
    steps = {step.step: step for step in plan.steps}
    assert [step.unit for step in plan.steps] == ["manifest", "manifest", "file", "file", "row group", "row"]
    assert all(step.kept + step.skipped == step.total for step in plan.steps)
    assert steps["manifests by partition summaries"].kept == steps["manifests by column bounds"].total == 2
    assert steps["manifests by column bounds"].kept == 1
    assert steps["data files by partition tuple"].kept == steps["data files by column bounds"].total
    assert steps["row groups by column bounds"].kept_rows == steps["rows"].total
    assert steps["rows"].kept == 30
    assert steps["manifests by partition summaries"].bytes_read > 0


def test_the_filter_is_shown_as_each_spec_sees_it(table):
    plan = table.plan("id = 7 and at > '2025-09-01T10:00:00' and price < 3")
    assert plan.partition_filters == {0: "id_bucket = 3 and at_day >= '2025-09-01'"}
    assert plan.unprojected == {0: {"price < 3.0": "no partition field is made of price"}}
    assert table.plan("id > 7").unprojected[0] == {"id > 7": "bucket[4] is not order-preserving"}


def test_skipped_and_kept_manifests_and_files_name_their_evidence(table):
    plan = table.plan("at < '2025-09-02' and id = 7")
    manifests = plan.manifests()
    assert manifests.schema == PLAN_MANIFESTS
    skipped = manifests.filter(pa.array([not kept for kept in manifests["kept"].to_pylist()])).to_pylist()
    assert [row["evidence"] for row in skipped] == ["the lower bound '2025-09-05' is above '2025-09-01'"]
    files = plan.files("all").to_pylist()
    by_reason = {row["reason"]: row for row in files}
    assert by_reason["the value does not match"]["predicate"] in ("id_bucket = 3", "at_day <= '2025-09-01'")
    kept = [row for row in files if row["kept"]]
    assert [row["file_path"] for row in kept] == plan.kept_file_paths()
    assert "7 is within" in kept[0]["evidence"]
    assert len(plan.files("skipped")) + len(plan.files()) == len(files)
    assert plan.files("none").num_rows == 0


def test_why_a_file_could_not_be_skipped_is_told_apart(table):
    def reasons(row_filter):
        return set(table.plan(row_filter).files()["reason"].to_pylist())

    assert reasons("name != 'n1'") == {"bounds cannot tell"}
    assert reasons("price is null") == {"nulls"}
    assert reasons("price is nan") <= {"NaN", "statistic missing"}
    assert reasons(f"id in ({', '.join(str(i) for i in range(201))})") == {"too many literals"}
    assert reasons("true") == {"no predicate applies"}


@pytest.mark.parametrize("cache", ["off", "cache"])
@pytest.mark.parametrize("committed", [False, True])
def test_a_plan_has_the_same_steps_whatever_was_read_before(
    catalog_properties, small_table, monkeypatch, tmp_path, cache, committed
):
    """Only what the table itself offers decides: committed statistics of manifests, where many bytes are left."""
    monkeypatch.setattr("icestats.snapshot.pruning.plan_reader.LEAST_BYTES_SPARED", 0)
    monkeypatch.setenv("ICESTATS_CACHE", "off" if cache == "off" else str(tmp_path / cache))

    def load():
        return icestats.load("db.small", catalog=catalog_properties)

    if committed:
        load().compute(table=False, manifests=True).commit()
    expected = [(2, 2), (2, 1)] if committed else [(2, 2)]
    for call in (None, "manifests", "read", "partitions", "layout", "plan", "estimate"):
        table = load()
        if call is not None:
            getattr(table, call)(*(["price > 2"] if call in ("plan", "estimate") else []))
        for wanted in (None, True, None):
            steps = table.plan("id < 30", manifest_statistics=wanted).steps
            found = [(step.total, step.kept) for step in steps if step.unit == "manifest"]
            assert found == ([(2, 2), (2, 1)] if wanted else expected), (call, wanted)


def test_flat_figures_are_those_of_the_maps(read_table):
    """Two ways to read the same manifests."""
    source = icestats.load(str(local_path(read_table.metadata_location)))
    manifests = manifests_to_read(source.manifest_files())
    arguments = (manifests, source.metadata, source._source.storage, [3, 4])
    flat, maps = read_file_metrics(*arguments).to_pylist(), read_files(*arguments).to_pylist()
    bare = read_file_metrics(*arguments, with_paths=False)
    assert [row["file_path"] for row in flat] == [row["file_path"] for row in maps]
    assert bare["file_path"].null_count == len(flat) > 0
    for left, right in zip(flat, maps, strict=True):
        for name in ("spec_id", "partition", "record_count", "file_size_in_bytes", "sequence_number", "content"):
            assert left[name] == right[name]
        for name in PLANNING_STATISTICS:
            found = dict(right[f"{name}s"])
            assert [left[f"{name}_{i}"] for i in (3, 4)] == [found.get(i) for i in (3, 4)]


def test_a_table_without_a_snapshot_has_nothing_to_read(empty_table):
    table = icestats.load(str(local_path(empty_table.metadata_location)))
    plan = table.plan("id = 1", row_groups=True)
    assert [step.total for step in plan.steps if step.unit != "row"] == [0, 0, 0, 0]
    assert plan.files("all").num_rows == plan.manifests().num_rows == 0
    assert table.layout().spread.file_count == 0
    assert repr(table.layout()).splitlines()[1:] == ["  no data files: nothing to measure"]
    assert "nothing to measure" in table.layout()._repr_html_()
    assert table.layout().what_if(["id = 1"], regroup="partition").to_arrow()["kept_now"].to_pylist() == [0] * 4


def test_arrow_answers_follow_their_schemas(table):
    plan = table.plan("id < 5", row_groups=True)
    assert plan.to_arrow().schema == PLAN_STEPS
    assert plan.row_groups().schema == PLAN_ROW_GROUPS
    assert plan.row_groups().num_rows == plan.step("row groups by column bounds").total
    assert table.layout().to_arrow().schema == LAYOUT
    with pytest.raises(icestats.CallError, match="row_groups=True"):
        table.plan("id < 5").row_groups()


def test_what_a_table_holds_is_escaped_in_html_and_made_printable_in_text(catalog):
    schema = Schema(NestedField(1, "<b>", StringType(), required=False))
    written = catalog.create_table("db.odd", schema)
    written.append(pa.table({"<b>": ["<script>alert(1)</script>\x1b[31m"]}))
    table = icestats.load(str(local_path(written.metadata_location)))
    plan = table.plan("\"<b>\" = '<script>alert(1)</script>\x1b[31m'")
    assert "<script>" not in plan._repr_html_()
    assert "<b>" not in plan._repr_html_()
    assert "\x1b" not in repr(plan)
    layout = table.layout(columns=["<b>"])
    what_if = layout.what_if(["\"<b>\" = '<script>'"], sort_by="<b>")
    assert "<b>" not in layout._repr_html_()
    assert "<script>" not in what_if._repr_html_()


@pytest.mark.parametrize(("value_count", "null_count"), [(3, 1), (2, 0), (3, 0), (None, 0)])
def test_counts_of_a_field_may_leave_out_rows_whose_struct_is_null(catalog, value_count, null_count):
    """As those of ORC files do: such rows are null too, and prove nothing where values are not counted."""
    inner = NestedField(2, "a", IntegerType(), required=False)
    schema = Schema(NestedField(1, "st", StructType(inner), required=False))
    written = catalog.create_table("db.nested", schema)
    bound = struct.pack("<i", 5)
    file = DataFile.from_args(
        content=DataFileContent.DATA, file_path="file:///nowhere.orc", file_format=FileFormat.ORC, partition=Record(),
        record_count=3, file_size_in_bytes=100, null_value_counts={2: null_count},
        value_counts=None if value_count is None else {2: value_count}, lower_bounds={2: bound},
        upper_bounds={2: bound},
    )  # fmt: skip
    with written.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
        append.append_data_file(file)
    table = icestats.load(str(local_path(written.metadata_location)))

    def proved(row_filter):
        return [step.kept for step in table.plan(row_filter).steps if step.unit == "row"]

    every = [3] if (value_count, null_count) == (3, 0) else []
    assert proved("st.a is not null") == proved("st.a = 5") == every
    assert len(table.plan("st.a is null").kept_file_paths()) == (0 if every else 1)
    found = table.estimate("st.a is not null", sources=["data-files", "manifests", "table"])
    expected = {(3, 1): (2, 2), (2, 0): (2, 2), (3, 0): (3, 3), (None, 0): (0, 3)}[value_count, null_count]
    assert [(one.rows_lower, one.rows_upper) for one in found] == [expected] * 3


def _describe_file(catalog, kind, metrics):
    """Return a table of one file of three rows, of which metrics say this; no null, unless they say so."""
    field = NestedField(1, "x", {"long": LongType(), "double": DoubleType()}[kind], required=False)
    written = catalog.create_table("db.described", Schema(field))
    file = DataFile.from_args(
        content=DataFileContent.DATA, file_path="file:///nowhere.parquet", file_format=FileFormat.PARQUET,
        partition=Record(), record_count=3, file_size_in_bytes=100,
        **{"value_counts": {1: 3}, "null_value_counts": {1: 0}, **metrics},
    )  # fmt: skip
    with written.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
        append.append_data_file(file)
    return icestats.load(str(local_path(written.metadata_location)))


@pytest.mark.parametrize(
    ("kind", "value", "metrics", "is_read"),
    [
        ("long", 5, {}, False),
        ("long", 5, {"null_value_counts": {1: 1}}, True),
        ("long", 5, {"null_value_counts": {}}, True),
        ("long", 5, {"upper_bounds": {1: struct.pack("<q", 6)}}, True),
        ("long", 5, {"upper_bounds": {1: struct.pack("<q", 4)}}, True),
        ("long", 6, {}, True),
        ("double", 5.0, {}, True),
        ("double", 5.0, {"nan_value_counts": {1: 0}}, False),
        ("double", 5.0, {"nan_value_counts": {1: 1}}, True),
    ],
)
def test_a_file_of_one_value_has_no_other_value(catalog, kind, value, metrics, is_read):
    """As in Iceberg's Java library since 1.11; PyIceberg reads such files."""
    bound = encode_value(kind, value)
    table = _describe_file(catalog, kind, {"lower_bounds": {1: bound}, "upper_bounds": {1: bound}} | metrics)
    for row_filter in ("x != 5", "x not in (4, 5)"):
        files = table.plan(row_filter).files("all").to_pylist()
        assert [one["kept"] for one in files] == [is_read]
        assert is_read or files[0]["evidence"] == f"every value is {value}"


@pytest.mark.parametrize(
    ("metrics", "row_filter"),
    [
        ({"null_value_counts": {1: 4}}, "x = 5"),
        ({"null_value_counts": {1: 4}, "value_counts": {}}, "x = 5"),
        ({"null_value_counts": {1: 4}}, "x is null"),
        ({"null_value_counts": {1: 2}, "nan_value_counts": {1: 2}}, "x is nan"),
        ({"lower_bounds": {1: struct.pack("<d", 7)}, "upper_bounds": {1: struct.pack("<d", 4)}}, "x != 5"),
    ],
)
def test_metrics_that_contradict_each_other_prove_nothing(catalog, metrics, row_filter):
    bounds = {"lower_bounds": {1: struct.pack("<d", 4)}, "upper_bounds": {1: struct.pack("<d", 7)}}
    table = _describe_file(catalog, "double", bounds | metrics)
    assert [(one.rows_lower, one.rows_upper) for one in table.estimate(row_filter)] == [(0, 3)] * len(SOURCES)
    assert [step.unit for step in table.plan(row_filter).steps] == ["manifest", "file", "file"]
    assert len(table.plan(row_filter).kept_file_paths()) == 1


def test_a_required_field_of_a_struct_is_null_where_its_struct_is(catalog):
    """PyIceberg takes it for never null: it would skip every file, or take every row."""
    inner = NestedField(2, "a", IntegerType(), required=True)
    schema = Schema(NestedField(1, "st", StructType(inner), required=False))
    written = catalog.create_table("db.nested", schema)
    for rows in ([None, {"a": 5}], [{"a": 6}]):
        written.append(pa.Table.from_pylist([{"st": row} for row in rows], written.schema().as_arrow()))
    table = icestats.load(str(local_path(written.metadata_location)))
    for row_filter, count in (("st.a is null", 1), ("st.a is not null", 2), ("st.a not in (5, 7)", 2)):
        found = table.estimate(row_filter, actual=True)
        assert found.actual == count
        assert all(one.rows_lower <= count <= one.rows_upper for one in found)
    assert len(table.plan("st.a is null").kept_file_paths()) == 1
    assert [step.kept for step in table.plan("st.a is not null").steps if step.unit == "row"] == []


def test_plan_as_json_follows_the_contract(run, read_table):
    location = str(local_path(read_table.metadata_location))
    code, out, err = run("plan", location, "id = 7", "--format", "json")
    document = json.loads(out)
    assert (code, err) == (0, "")
    names = {"step", "unit", "total", "kept", "skipped", "kept_bytes", "kept_rows"}
    assert all(names <= step.keys() for step in document["steps"])
    assert [file["kept"] for file in document["files"]] == [True]
    assert {"file_path", "kept", "step", "reason"} <= document["files"][0].keys()
    assert document["partition_filters"] == {"0": "id_bucket = 3"}
    every = json.loads(run("plan", location, "id = 7", "--format", "json", "--files", "all")[1])["files"]
    assert len(every) > 1
    assert json.loads(run("plan", location, "id = 7", "--format", "json", "--files", "none")[1])["files"] == []
    assert "1 of" in run("plan", location, "id = 7", "--row-groups", "--rows")[1].decode()


def test_layout_on_the_command_line(run, read_table):
    location = str(local_path(read_table.metadata_location))
    document = json.loads(run("layout", location, "--columns", "price", "--format", "json")[1])
    assert [field["name"] for field in document["fields"]] == ["at_day", "id_bucket", "price"]
    assert "a key lies in" in run("layout", location)[1].decode()


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["plan", "{}", "prize < 1"], "names no column 'prize'"),
        (["plan", "{}", "price <"], "cannot be read"),
        (["plan", "{}", "price < 'abc'"], "does not fit the schema"),
        (["plan", "{}", ""], "the filter is empty"),
        (["plan", "{}"], "Missing argument 'FILTER'"),
        (["plan", "{}", "id = 1", "--files", "some"], "'some' is not one of"),
        (["layout", "{}", "--columns", "nope"], "no column 'nope'"),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_code_2(run, read_table, arguments, part):
    location = str(local_path(read_table.metadata_location))
    code, out, err = run(*(a.replace("{}", location) for a in arguments))
    assert (code, out, err.count("\n")) == (2, b"", 1)
    assert part in err


def test_delete_files_apply_by_partition_sequence_and_path(read_table):
    """Position deletes of the same commit on, equality deletes of later ones, deletion vectors by path.

    A deletion vector takes the place of position deletes, unless it is older than its data file.
    """
    table = icestats.load(str(local_path(read_table.metadata_location)))
    partition = pa.struct([("at_day", pa.date32()), ("id_bucket", pa.int32())])
    schema = file_metrics_schema(partition, [PATH_FIELD_ID])
    here, there = {"at_day": 0, "id_bucket": 1}, {"at_day": 0, "id_bucket": 2}

    def build(**values):
        base = {"manifest_index": 0, "content": "data", "spec_id": 0, "partition": here, "sequence_number": 5}
        return {"record_count": 1, "file_size_in_bytes": 1, **base, **values}

    names = (f"lower_bound_{PATH_FIELD_ID}", f"upper_bound_{PATH_FIELD_ID}")
    deletes = [
        build(content="position_deletes", file_path="same-commit"),
        build(content="position_deletes", file_path="older", sequence_number=4),
        build(content="position_deletes", file_path="elsewhere", partition=there),
        build(content="position_deletes", file_path="by-bounds", **{names[0]: b"x", names[1]: b"z"}),
        build(content="position_deletes", file_path="one-file", referenced_data_file="b"),
        build(content="position_deletes", file_path="vector", referenced_data_file="c", file_format="PUFFIN"),
        build(
            content="position_deletes",
            file_path="old",
            referenced_data_file="a",
            file_format="PUFFIN",
            sequence_number=4,
        ),
        build(content="equality_deletes", file_path="equality-same"),
        build(content="equality_deletes", file_path="equality-later", sequence_number=6),
    ]
    files = [build(file_path="a"), build(file_path="b"), build(file_path="c")]
    index = DeleteIndex(pa.Table.from_pylist(deletes, schema=schema), table.metadata.specs)
    found = index.find(pa.Table.from_pylist(files, schema=schema))
    assert found == [
        ["same-commit", "equality-later"],
        ["same-commit", "one-file", "equality-later"],
        ["vector", "equality-later"],
    ]


@pytest.mark.parametrize("is_vector", [True, False])
def test_delete_files_of_one_data_file_are_found_without_looking_at_the_others(read_table, is_vector, monkeypatch):
    """50,000 data files of one partition, each with a deletion vector, took five minutes."""
    looked = []
    applies = delete_index._applies
    monkeypatch.setattr(delete_index, "_applies", lambda *of: looked.append(of) or applies(*of))
    partition = pa.struct([("at_day", pa.date32()), ("id_bucket", pa.int32())])
    schema = file_metrics_schema(partition, [PATH_FIELD_ID])
    base = {"manifest_index": 0, "spec_id": 0, "partition": {"at_day": 0, "id_bucket": 1}, "sequence_number": 5}
    base |= {"record_count": 1, "file_size_in_bytes": 1}

    def delete(path):
        vector = {"referenced_data_file": path, "file_format": "PUFFIN"}
        bounds = {f"{side}_bound_{PATH_FIELD_ID}": path.encode() for side in ("lower", "upper")}
        about = vector if is_vector else {"file_format": "PARQUET", **bounds}
        return {**base, "content": "position_deletes", "file_path": f"of {path}", **about}

    paths = [f"{number:04}" for number in range(1_000)]
    deletes = pa.Table.from_pylist([delete(path) for path in reversed(paths)], schema=schema)
    files = pa.Table.from_pylist([{**base, "content": "data", "file_path": path} for path in paths], schema=schema)
    specs = icestats.load(str(local_path(read_table.metadata_location))).metadata.specs
    assert DeleteIndex(deletes, specs).find(files) == [[f"of {path}"] for path in paths]
    assert len(looked) == len(paths)


def test_pairs_of_data_and_delete_files_have_a_limit(read_table, monkeypatch):
    """4,000 data files with as many equality deletes took 2 GB; ten times as many take a hundred times that."""
    partition = pa.struct([("at_day", pa.date32()), ("id_bucket", pa.int32())])
    schema = file_metrics_schema(partition, [PATH_FIELD_ID])
    base = {"manifest_index": 0, "spec_id": 0, "partition": {"at_day": 0, "id_bucket": 1}}
    base |= {"record_count": 1, "file_size_in_bytes": 1}

    def build(content, sequence_number):
        rows = [{**base, "content": content, "sequence_number": sequence_number, "file_path": f"{i}"} for i in range(9)]
        return pa.Table.from_pylist(rows, schema=schema)

    specs = icestats.load(str(local_path(read_table.metadata_location))).metadata.specs
    index = DeleteIndex(build("equality_deletes", 6), specs)
    monkeypatch.setattr(delete_index, "MOST_PAIRS", 81)
    assert list(map(len, index.find(build("data", 5)))) == [9] * 9
    monkeypatch.setattr(delete_index, "MOST_PAIRS", 80)
    with pytest.raises(icestats.UnsupportedError, match="9 data files have more than 80 pairs with delete files"):
        index.find(build("data", 5))


@pytest.mark.parametrize(("kind", "least"), [(IntegerType(), -(2**31)), (LongType(), -(2**63))])
@pytest.mark.parametrize(
    ("condition", "count"),
    [("= {0}", 1), ("in ({0}, 3)", 1), ("<= {1}", 2), ("> 50", 2), ("< 0", 2), ("<= 100 and n is not null", 2)],
)
def test_partitions_of_the_least_numbers_are_read(catalog, catalog_properties, kind, least, condition, count):
    """Cutting them leaves the type: writers wrap, and so does Iceberg's Java library where it plans."""
    schema = Schema(NestedField(1, "n", kind, required=False))
    spec = PartitionSpec(PartitionField(1, 1000, TruncateTransform(10), "tens"))
    made = catalog.create_table("db.least", schema, partition_spec=spec)
    made.append(pa.table({"n": [least, least + 1, 105, 205]}, schema_to_pyarrow(schema)))
    plan = icestats.load("db.least", catalog=catalog_properties).plan(
        f"n {condition.format(least, least + 1)}", rows=True
    )
    assert plan.step("data files by column bounds").kept_rows == 2
    assert plan.step("rows").kept == count


@pytest.mark.parametrize(("kind", "least"), [(IntegerType(), -(2**31)), (LongType(), -(2**63))])
@pytest.mark.parametrize("condition", [">= {0}", "> {0}", ">= {0} and n < 300", "= 205 or n >= {0}"])
def test_partitions_above_the_least_numbers_are_read(catalog, catalog_properties, kind, least, condition):
    """The least number's own partition wraps to the top; those of all other numbers are not above it."""
    schema = Schema(NestedField(1, "n", kind, required=False))
    spec = PartitionSpec(PartitionField(1, 1000, TruncateTransform(10), "tens"))
    made = catalog.create_table("db.above", schema, partition_spec=spec)
    made.append(pa.table({"n": [-7, 105, 205]}, schema_to_pyarrow(schema)))
    table, row_filter = icestats.load("db.above", catalog=catalog_properties), f"n {condition.format(least)}"
    plan = table.plan(row_filter, rows=True)
    assert [plan.step("data files by column bounds").kept_rows, plan.step("rows").kept] == [3, 3]
    estimates = table.estimate(row_filter, actual=True)
    assert [estimates.actual, estimates["combined"].rows_upper] == [3, 3]
