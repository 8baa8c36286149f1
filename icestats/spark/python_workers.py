"""What each task of icestats does in Spark's Python workers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING
from zipimport import zipimporter

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

Run = Callable[["Iterable[pa.RecordBatch]"], "Iterator[pa.RecordBatch]"]


def map_in_workers(rows: DataFrame, run: Run, schema: str) -> DataFrame:
    """Return `rows.mapInArrow(run, schema)`, whose tasks start without a delay in a worker that has run one before.

    Parameters
    ----------
    rows : pyspark.sql.DataFrame
        What `run` takes, in batches.
    run : callable
        Called once a task; it can be pickled.
    schema : str
        Of what it gives, as Spark writes it.
    """
    return rows.mapInArrow(partial(_run, run), schema)


def _run(run: Run, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from run(batches)
    _forget_archives()


def _forget_archives() -> None:
    """Let Python open archives of modules anew where it imports from them.

    Notes
    -----
    PySpark empties the caches of Python's imports before each task (SPARK-54744), and before Python 3.13 that reads the
    whole directory of each archive that has been imported from (python/cpython#103200): of PySpark's own, in 0.2 s.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[path]
