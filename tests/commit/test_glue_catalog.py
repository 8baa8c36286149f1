"""What a commit leaves of a table's entry in Glue: all that others have written there."""

from __future__ import annotations

import json

import boto3
import pytest
from pyiceberg.catalog.glue import GlueCatalog

import icestats
from icestats.errors import CommitError
from icestats.table import writers
from tests.committed_statistics import ROWS
from tests.s3_server import run_s3

KEYS = {"access-key-id": "any", "secret-access-key": "any", "region": "us-east-1"}
OWN = ("Parameters", "UpdateTime", "VersionId")


@pytest.fixture
def properties():
    """Of a catalog with the table `db.t`, whose entry others have described."""
    with run_s3() as url:
        keys = {f"{service}.{name}": value for service in ("glue", "s3") for name, value in KEYS.items()}
        settings = {**keys, "glue.endpoint": url, "s3.endpoint": url, "warehouse": "s3://bucket/warehouse"}
        catalog = GlueCatalog("glue", **settings)
        catalog.create_namespace("db")
        made = catalog.create_table("db.t", schema=ROWS.schema, properties={"connectionName": "of a stranger"})
        made.append(ROWS)
        found = read_entry(url)
        found["Parameters"]["connectionName"] = "of us"
        found["StorageDescriptor"]["SerdeInfo"] = {"SerializationLibrary": "theirs"}
        found["StorageDescriptor"]["Columns"][0]["Comment"] = "of the column"
        kept = {name: found[name] for name in ("Name", "TableType", "Parameters", "StorageDescriptor")}
        described = {**kept, "Description": "of the table", "Owner": "somebody", "Retention": 7}
        open_glue(url).update_table(DatabaseName="db", TableInput=described)
        yield {"type": "glue", **settings}


def open_glue(url):
    names = {"aws_access_key_id": "any", "aws_secret_access_key": "any", "region_name": "us-east-1"}
    return boto3.client("glue", endpoint_url=url, **names)


def read_entry(url):
    return open_glue(url).get_table(DatabaseName="db", Name="t")["Table"]


@pytest.mark.parametrize("change", ["statistics", "rows"])
def test_the_entry_stays_as_others_have_described_it(change, properties):
    before = read_entry(properties["glue.endpoint"])
    table = icestats.load("db.t", catalog=properties)
    if change == "statistics":
        assert table.compute(manifests=True).commit().committed
    else:
        assert not writers.append(table, ROWS).message
    after = read_entry(properties["glue.endpoint"])
    assert after["Description"] == "of the table"
    moved = {name: after["Parameters"][name] for name in ("metadata_location", "previous_metadata_location")}
    assert moved["metadata_location"] != before["Parameters"]["metadata_location"]
    assert after["Parameters"] == {**before["Parameters"], **moved}
    assert {name: after[name] for name in after if name not in OWN} == {n: before[n] for n in before if n not in OWN}


@pytest.mark.parametrize("name", ["metadata_location", "table_type"])
def test_no_property_of_a_table_says_where_its_metadata_is(name, properties):
    """PyIceberg puts the properties of a table's metadata over the parameters of its entry."""
    own = GlueCatalog("glue", **properties).load_table("db.t")
    statistics = icestats.load("db.t", catalog=properties).compute(manifests=True)
    document = json.loads(own.io.new_input(own.metadata_location).open().read())
    document["properties"] = {"table_type": "iceberg"} | {name: "s3://bucket/elsewhere/v1.metadata.json"}
    with own.io.new_output(own.metadata_location).create(overwrite=True) as stream:
        stream.write(json.dumps(document).encode())
    with pytest.raises(CommitError, match=f"a property {name}, which PyIceberg would put in the place"):
        statistics.commit()
    parameters = read_entry(properties["glue.endpoint"])["Parameters"]
    assert (parameters["metadata_location"], parameters["table_type"]) == (own.metadata_location, "ICEBERG")
