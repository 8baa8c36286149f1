"""What a task leaves behind in a Python worker."""

from __future__ import annotations

import importlib
import sys
import zipfile

import pyarrow as pa

from icestats.spark.python_workers import _run


def test_a_task_leaves_no_archive_that_the_next_one_would_read_anew(tmp_path, monkeypatch):
    archive = str(tmp_path / "modules.zip")
    with zipfile.ZipFile(archive, "w") as written:
        written.writestr("first_of_zip.py", "NAME = 'first'")
        written.writestr("second_of_zip.py", "NAME = 'second'")
    monkeypatch.syspath_prepend(archive)

    def run(batches):
        assert importlib.import_module("first_of_zip").NAME == "first"
        assert archive in sys.path_importer_cache
        yield from batches

    batches = [pa.record_batch({"n": [1, 2]}), pa.record_batch({"n": [3]})]
    assert [batch.num_rows for batch in _run(run, iter(batches))] == [2, 1]
    assert archive not in sys.path_importer_cache
    assert importlib.import_module("second_of_zip").NAME == "second"
