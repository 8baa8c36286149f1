"""What PyIceberg cannot read, Spark's own scan reads: live rows, to the same sketches."""

from __future__ import annotations

import numpy as np
import pytest

import icestats
from icestats.stats.kll import KllSketch
from icestats.stats.theta import ThetaSketch

pytestmark = pytest.mark.spark

NAMESPACE = "icestats.compute"


@pytest.fixture(scope="module")
def namespace(spark):
    spark.sql(f"create namespace if not exists {NAMESPACE}")
    yield NAMESPACE
    for row in spark.sql(f"show tables in {NAMESPACE}").collect():
        spark.sql(f"drop table {NAMESPACE}.{row.tableName} purge")
    spark.sql(f"drop namespace {NAMESPACE}")


def create(spark, name, properties="", partitioned=""):
    spark.sql(f"drop table if exists {NAMESPACE}.{name} purge")
    spark.sql(
        f"create table {NAMESPACE}.{name} (id bigint, day date, price double, name string, paid decimal(30, 2), "
        f"at timestamp, tags array<string>) using iceberg {partitioned} tblproperties ({properties})"
    )
    spark.sql(
        f"insert into {NAMESPACE}.{name} select id, date '2026-09-01' + cast(id % 4 as int), "
        "case when id % 11 = 0 then double('nan') else id / 7 end, concat('n\u00e9', id % 50), id * 1.25, "
        "timestamp '2026-09-01' + make_dt_interval(0, 0, 0, id), array('a') from range(4000)"
    )


def delete_equal(spark, name, column, values):
    """Commit an equality delete, as a streaming writer does: by Iceberg's own Java classes, in Spark's JVM."""
    jvm = spark.sparkContext._jvm
    loaded = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, f"{NAMESPACE}.{name}")
    schema = loaded.schema().select([column])
    field_ids = spark.sparkContext._gateway.new_array(jvm.int, 1)
    field_ids[0] = schema.findField(column).fieldId()
    formats = jvm.org.apache.iceberg.FileFormat
    factory = jvm.org.apache.iceberg.data.GenericAppenderFactory(
        loaded.schema(), loaded.spec(), field_ids_boxed(jvm, field_ids), schema, None
    )
    path = f"{loaded.location()}/data/equality-{len(values)}.parquet"
    output = loaded.io().newOutputFile(path)
    encrypted = jvm.org.apache.iceberg.encryption.EncryptedFiles.plainAsEncryptedOutput(output)
    writer = factory.newEqDeleteWriter(encrypted, formats.PARQUET, None)
    record = jvm.org.apache.iceberg.data.GenericRecord.create(schema)
    for value in values:
        writer.write(record.copy(column, value))
    writer.close()
    loaded.newRowDelta().addDeletes(writer.toDeleteFile()).commit()


def field_ids_boxed(jvm, field_ids):
    return jvm.org.apache.iceberg.util.ArrayUtil.toIntArray(
        jvm.org.apache.iceberg.util.ArrayUtil.toIntList(field_ids)
    )
