"""icestats for executors that lack it: sent once per Spark context or Connect session, as files that they unpack."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import threading
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakSet

from icestats.read.private_folder import is_private
from icestats.spark.connect import is_connect
from icestats.spark.jobs import runs_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGE = "icestats"
_COMPILED = (".nbi", ".nbc")
"""The files that numba keeps compiled code in."""

_lock = threading.Lock()
_sent: WeakSet[SparkSession] = WeakSet()
"""The sessions of Spark Connect whose executors have it."""


def ship_package(spark: SparkSession) -> None:
    """Send this very icestats to the executors of a session, unless they are threads of a driver of this machine.

    What a server of Spark Connect runs on is not known: its executors are always sent it.

    Call it before a job that runs functions of icestats; every call after the first does nothing.

    Parameters
    ----------
    spark : SparkSession
        The session that will run the jobs.

    Notes
    -----
    Spark unpacks the archive beside the files of the job, from where Python imports it before one that is installed:
    driver and executors have the same version. What the driver has compiled goes with it: executors with a processor
    and a numba like the driver's compile nothing. What icestats depends on is not sent: the executors' Python, which
    `PYSPARK_PYTHON` or `spark.pyspark.python` names, has to have numpy, pandas, pyarrow, numba, platformdirs, deflate,
    zstandard, fastavro, datasketches and pyiceberg; a job that lacks one fails with a SparkUnavailableError
    that names it.
    """
    with _lock:
        if is_connect(spark):
            if spark not in _sent:
                spark.addArtifacts(_write_archive(), archive=True)
                _sent.add(spark)
            return
        context = spark.sparkContext
        if not runs_here(spark) and not any(archive.endswith(f"#{PACKAGE}") for archive in context.listArchives):
            context.addArchive(_write_archive())


def _write_archive() -> str:
    # Executors that come later fetch it from the driver: it stays until Python ends.
    folder = Path(tempfile.mkdtemp(prefix="icestats-shipped-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return f"{write_package(folder / f'{PACKAGE}.zip')}#{PACKAGE}"


def write_package(path: Path) -> Path:
    """Write the files of icestats into a zip archive, whose top is the inside of the package.

    Bytecode is left out, and so is compiled code that others than the user could have changed.

    Parameters
    ----------
    path : Path
        The archive to write.

    Returns
    -------
    Path
        The same.
    """
    source = Path(__file__).parent.parent
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(source.rglob("*")):
            is_source = "__pycache__" not in file.parts
            if file.is_file() and (is_source or (file.suffix in _COMPILED and is_private(file.parent, "*.nb[ic]"))):
                archive.write(file, file.relative_to(source).as_posix())
    return path
