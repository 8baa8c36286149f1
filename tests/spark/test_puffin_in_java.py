"""Puffin files of this package are read by Iceberg for Java, and Java's are read here."""

from __future__ import annotations

from dataclasses import replace

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from icestats.commit.puffin_writer import NewBlob, write_puffin
from icestats.iceberg.storage import Storage
from icestats.read.puffin.puffin import read_blob, read_puffin_footer

pytestmark = pytest.mark.spark

JAVA_ERRORS = (Py4JJavaError, PySparkException)
PAYLOAD = bytes(range(256)) * 40


def blobs(codec):
    return [
        NewBlob("apache-datasketches-theta-v1", (1,), 2**62, 5, PAYLOAD, {"ndv": "12"}, codec),
        NewBlob("of-somebody-else", (3, 4), 7, 1, b"", {"name": "Grüße \u2028"}, codec),
    ]


@pytest.fixture
def java(spark):
    """Iceberg's own Puffin classes, on local files."""

    class Java:
        jvm = spark._jvm
        files = jvm.org.apache.iceberg.Files
        puffin = jvm.org.apache.iceberg.puffin

        def read(self, path):
            reader = self.puffin.Puffin.read(self.files.localInput(str(path))).build()
            try:
                metadata = reader.fileMetadata()
                found = []
                pairs = reader.readAll(metadata.blobs()).iterator()
                while pairs.hasNext():
                    pair = pairs.next()
                    described, content = pair.first(), pair.second()
                    data = self.jvm.org.apache.iceberg.util.ByteBuffers.toByteArray(content)
                    found.append(
                        (
                            described.type(),
                            tuple(described.inputFields()),
                            described.snapshotId(),
                            described.sequenceNumber(),
                            dict(described.properties()),
                            bytes(data),
                        )
                    )
                return found, dict(metadata.properties())
            finally:
                reader.close()

        def write(self, path, codec, *, compress_footer=False):
            builder = self.puffin.Puffin.write(self.files.localOutput(str(path))).createdBy("Java")
            writer = (builder.compressFooter() if compress_footer else builder).build()
            for blob in blobs(None):
                fields = self.jvm.java.util.ArrayList()
                for field_id in blob.field_ids:
                    fields.add(field_id)
                properties = self.jvm.java.util.HashMap()
                for name, value in blob.properties.items():
                    properties.put(name, value)
                content = self.jvm.java.nio.ByteBuffer.wrap(blob.payload)
                arguments = (blob.type, fields, blob.snapshot_id, blob.sequence_number, content, codec, properties)
                writer.add(self.puffin.Blob(*arguments))
            writer.finish()
            writer.close()

    return Java()


def described(blob):
    return (blob.type, blob.field_ids, blob.snapshot_id, blob.sequence_number, dict(blob.properties))


@pytest.mark.parametrize("codec", [None, "zstd"])
def test_java_reads_what_is_written_here(java, tmp_path, codec):
    """What is hidden from engines lies between the blobs that Java reads and the footer."""
    path = tmp_path / "a.stats"
    theta, several = blobs(codec)
    own = replace(theta, type="of-others", properties={"name": "Grüße \u2028"})
    path.write_bytes(write_puffin([several, theta, own], properties={"who": "me"}).data)
    found, properties = java.read(path)
    assert found == [(*described(blob), blob.payload) for blob in (theta, own)]
    assert [b.is_hidden for b in read_puffin_footer(Storage(), str(path)).blobs] == [False, False, True]
    assert properties["who"] == "me"
    assert properties["created-by"].startswith("icestats ")


@pytest.mark.parametrize("codec", ["NONE", "ZSTD"])
def test_what_java_writes_is_read_here(java, tmp_path, codec):
    path = tmp_path / "a.stats"
    java.write(path, getattr(java.puffin.PuffinCompressionCodec, codec))
    footer = read_puffin_footer(Storage(), str(path))
    assert [described(blob) for blob in footer.blobs] == [described(blob) for blob in blobs(None)]
    assert {blob.compression_codec for blob in footer.blobs} == {None if codec == "NONE" else "zstd"}
    assert [read_blob(Storage(), blob, str(path)) for blob in footer.blobs] == [blob.payload for blob in blobs(None)]
    assert footer.properties["created-by"] == "Java"


def test_java_knows_lz4_by_name_only(java, tmp_path):
    """So what is committed is zstd with a plain footer. Where Iceberg learns LZ4, this test says so."""
    path = tmp_path / "a.stats"
    path.write_bytes(write_puffin(blobs("lz4")).data)
    with pytest.raises(JAVA_ERRORS, match="LZ4"):
        java.read(path)
    path.write_bytes(write_puffin(blobs("zstd"), compress_footer=True).data)
    with pytest.raises(JAVA_ERRORS, match="LZ4"):
        java.read(path)
    with pytest.raises(JAVA_ERRORS, match="LZ4"):
        java.write(tmp_path / "b.stats", java.puffin.PuffinCompressionCodec.LZ4)
    with pytest.raises(JAVA_ERRORS, match="LZ4"):
        java.write(tmp_path / "c.stats", java.puffin.PuffinCompressionCodec.NONE, compress_footer=True)
