"""What Spark's tests share."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def namespace(spark: Any, request: pytest.FixtureRequest) -> Iterator[str]:
    """The namespace that the module names `NAMESPACE`, dropped with its tables behind the module."""
    name = request.module.NAMESPACE
    spark.sql(f"create namespace if not exists {name}")
    yield name
    for row in spark.sql(f"show tables in {name}").collect():
        spark.sql(f"drop table {name}.{row.tableName}")
    spark.sql(f"drop namespace {name}")


@pytest.fixture(scope="session")
def delete_equal(spark: Any) -> Callable[[str, str, list[str]], None]:
    """Commit an equality delete, as a streaming writer does: by Iceberg's own Java classes, in Spark's JVM."""

    def delete(name: str, column: str, values: list[str]) -> None:
        jvm = spark.sparkContext._jvm
        loaded = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)
        schema = loaded.schema().select([column])
        field_ids = spark.sparkContext._gateway.new_array(jvm.int, 1)
        field_ids[0] = schema.findField(column).fieldId()
        builder = getattr(jvm.org.apache.iceberg.data, "GenericFileWriterFactory$Builder")(loaded)
        parquet = jvm.org.apache.iceberg.FileFormat.PARQUET
        writers = builder.deleteFileFormat(parquet).equalityFieldIds(field_ids).equalityDeleteRowSchema(schema).build()
        output = loaded.io().newOutputFile(f"{loaded.location()}/data/equality-{uuid.uuid4()}.parquet")
        encrypted = jvm.org.apache.iceberg.encryption.EncryptedFiles.plainAsEncryptedOutput(output)
        writer = writers.newEqualityDeleteWriter(encrypted, loaded.spec(), None)
        record = jvm.org.apache.iceberg.data.GenericRecord.create(schema)
        for value in values:
            writer.write(record.copy(column, value))
        writer.close()
        loaded.newRowDelta().addDeletes(writer.toDeleteFile()).commit()

    return delete
