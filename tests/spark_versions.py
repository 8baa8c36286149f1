"""What tests need to know of the version of Spark that they run on: `make test-matrix` runs them on each."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyspark
import pytest

SPARK = tuple(map(int, pyspark.__version__.split(".")[:2]))
"""Such as (4, 1)."""


def since(version: str, lacks: str) -> pytest.MarkDecorator:
    """Leave a test out where Spark is older; what it lacks then stands in docs/spark.md."""
    return pytest.mark.skipif(_is_before(version), reason=lacks)


def skip_before(version: str, lacks: str) -> None:
    """Leave out the test that calls it, as `since` does."""
    if _is_before(version):
        pytest.skip(lacks)


def _is_before(version: str) -> bool:
    return tuple(map(int, version.split("."))) > SPARK


def to_arrow(frame: Any) -> pa.Table:
    """Return the rows of a DataFrame, as `toArrow` does since PySpark 4."""
    return frame.toArrow() if SPARK >= (4, 0) else pa.Table.from_batches(frame._collect_as_arrow())
