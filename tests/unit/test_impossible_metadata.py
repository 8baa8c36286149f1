"""Metadata that no table can have, and what PyIceberg makes of it, is refused in one line."""

from __future__ import annotations

import pytest

import icestats
from icestats.errors import MetadataError
from icestats.scan.scan_plan import prepare_scan
from tests.refusals import refused

pytestmark = pytest.mark.usefixtures("no_cache")


def test_a_time_beyond_all_years_is_one_line(document, changed):
    document["last-updated-ms"] = 9 * 10**18
    refused(lambda: icestats.load(changed()).orphans(), "9e+18 where milliseconds since 1970 belong")


@pytest.mark.parametrize("transform", ["identity", "void"])
def test_a_partition_by_a_nested_column_is_of_no_known_type(transform, document, changed):
    nested = {"type": "list", "element-id": 99, "element": "int", "element-required": False}
    document["schemas"][-1]["fields"].append({"id": 98, "name": "tags", "type": nested, "required": False})
    for spec in document["partition-specs"]:
        spec["fields"].append({"source-id": 98, "field-id": 2_000, "name": "p", "transform": transform})
    table = icestats.load(changed())
    assert "unknown" in repr(table.estimate("id < 50"))
    assert table.estimate_groups(["id"])
    assert table.estimate_join(table, on="id")


def test_a_transform_that_pyiceberg_takes_for_another_is_one_line(document, changed):
    field = {"source-id": 1, "field-id": 2_000, "name": "p", "transform": "bucketV2[4]"}
    document["partition-specs"].append({"spec-id": 1, "fields": [field]})
    table = icestats.load(changed())
    assert table.columns().num_rows == 4
    assert table.plan("id = 1").partition_filters[1] == "true"
    for ask in (lambda: table.estimate("id = 1", actual=True), table.orphans):
        refused(ask, "bucketV2[4]")


def test_what_pyiceberg_fails_on_is_one_line(document, changed):
    document["sort-orders"][0].update(fields=[None])
    table = icestats.load(changed())
    assert table.columns().num_rows == 4
    refused(table.orphans, "PyIceberg, which reads rows, cannot read")


def test_a_column_that_pyiceberg_leaves_out_is_not_scanned(document, changed):
    document["schemas"][0]["fields"][2].update(required="maybe")
    table = icestats.load(changed())
    refused(lambda: prepare_scan(table._source, table.snapshot, table.schema), "PyIceberg reads its schema otherwise")


IMPOSSIBLE = {
    "a time beyond the year 9999": lambda d: d["snapshots"][0].update({"timestamp-ms": 2**62}),
    "an id of 65 bits": lambda d: d["snapshots"][0].update({"sequence-number": 2**64}),
    "an id that is no number": lambda d: d["refs"].update(b={"snapshot-id": "x", "type": "tag"}),
    "an endless number": lambda d: d["snapshots"][0].update({"sequence-number": float("inf")}),
    "half a character": lambda d: d["properties"].update(a="\ud800"),
    "an unknown type": lambda d: d["schemas"][0]["fields"][0].update(type="truncate[0]"),
    "a transform by 0": lambda d: d["partition-specs"][0]["fields"][1].update(transform="bucket[0]"),
    "digits beyond a decimal's": lambda d: d["schemas"][0]["fields"][0].update(type="decimal(99,2)"),
    "a negative width": lambda d: d["partition-specs"][0]["fields"][1].update(transform="truncate[-1]"),
    "an hour of text": lambda d: d["partition-specs"][0]["fields"][1].update(transform="hour"),
    "more digits after the point than there are": lambda d: d["schemas"][0]["fields"][0].update(type="decimal(5,9)"),
    "values without bytes": lambda d: d["schemas"][0]["fields"][0].update(type="fixed[0]"),
    "values of a gigabyte": lambda d: d["schemas"][0]["fields"][0].update(type="fixed[1000000000]"),
    "fields by name": lambda d: d["schemas"][0].update(fields={}),
    "a partition field twice": lambda d: d["partition-specs"][0]["fields"].append(d["partition-specs"][0]["fields"][0]),
    "two partition fields of a name": lambda d: d["partition-specs"][0]["fields"].append(
        {**d["partition-specs"][0]["fields"][0], "field-id": 1999}
    ),
    "a view": lambda d: d.update({"view-uuid": d["table-uuid"]}),
    "a main branch without a current snapshot": lambda d: d.pop("current-snapshot-id"),
    "a main branch of another snapshot": lambda d: d.update({"current-snapshot-id": d["snapshots"][0]["snapshot-id"]}),
    "two columns of an id": lambda d: d["schemas"][0]["fields"][2].update(id=1),
    "a spec that is not there": lambda d: d.update({"default-spec-id": 77}),
}


@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_impossible_values_are_refused_when_the_metadata_is_read(what, document, changed):
    IMPOSSIBLE[what](document)
    with pytest.raises(MetadataError, match="metadata") as caught:
        icestats.load(changed())
    assert "\n" not in str(caught.value)


def test_counts_of_any_length_in_properties_are_unknown(document, changed):
    for snapshot in document["snapshots"]:
        snapshot["summary"] |= {"total-files-size": "9" * 5_000, "added-data-files": "9" * 5_000}
    table = icestats.load(changed())
    assert table.overview().file_size_in_bytes is None
    assert "unknown" in repr(table)
