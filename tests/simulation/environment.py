"""What a simulation takes from the machine: time, randomness, threads and Spark; replaced as long as it runs."""

from __future__ import annotations

import datetime as dt
import functools
import os
import random
import sys
import threading
import time
import types
import uuid
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Any

import numba.core.caching
import pyiceberg.catalog.sql
import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import clear_manifest_cache
from pyiceberg.utils.concurrent import ExecutorFactory
from sqlalchemy import create_engine

import icestats.commit.orphans
import icestats.commit.statistics_commit
import icestats.commit.statistics_removal
import icestats.read.manifests.manifest_pool
import icestats.scan.write_workers
import icestats.spark.session
import icestats.spark.statistics_refresh
import icestats.spark.statistics_scan
import icestats.table.writers
from icestats.scan.scan_plan import scan_here
from tests.simulation.storage import SimulatedFileIO
from tests.simulation.turns import Turns


class _Inline(Executor):
    """Does each task at once, in the thread that hands it in."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        pass

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - as an executor does; the death of an actor goes through
            future.set_exception(error)
        return future


class _AnyDatetime(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, dt.datetime)


def _scan(spark: object, plan: Any, sizes: Any, *, progress: object = None) -> Any:
    """Do here what Spark's executors do."""
    return scan_here(plan, sizes)


def _patch_here(patch: pytest.MonkeyPatch, module: Any, name: str, replacement: Callable[..., Any]) -> None:
    """Replace a function for this thread: py4j's and others' of the process go on with their own."""
    own, thread = getattr(module, name), threading.get_ident()
    patch.setattr(
        module,
        name,
        lambda *arguments: (replacement if threading.get_ident() == thread else own)(*arguments),
    )


@contextmanager
def controlled(turns: Turns) -> Iterator[None]:
    """Let a simulation have its own time and randomness, no threads, no caches of earlier ones, and no Spark."""

    class Now(dt.datetime, metaclass=_AnyDatetime):
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> dt.datetime:
            return dt.datetime.fromtimestamp(turns.now_ms / 1000, tz)

    replaced = {
        id(dt.datetime): Now,
        id(ThreadPoolExecutor): _Inline,
        id(as_completed): list,
        id(PyArrowFileIO): SimulatedFileIO,
        id(icestats.spark.statistics_scan.run_scan): _scan,
        id(icestats.spark.session.get_session): lambda **_: None,
    }
    clear_manifest_cache()
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setenv("ICESTATS_CACHE", "off")
        # It names the files of a cold cache by them, and would take the simulation's.
        patch.setattr(numba.core.caching, "uuid", types.SimpleNamespace(uuid4=uuid.uuid4))
        _patch_here(patch, uuid, "uuid4", turns.uuid4)
        _patch_here(patch, time, "time", lambda: turns.now_ms / 1000)
        _patch_here(patch, time, "sleep", turns.sleep)
        # Each opening of a catalog would compile its SQL anew.
        patch.setattr(pyiceberg.catalog.sql, "create_engine", functools.cache(create_engine))
        _patch_here(patch, random, "uniform", turns.random.uniform)
        patch.setattr(ExecutorFactory, "_instance", _Inline())
        patch.setattr(ExecutorFactory, "_instance_pid", os.getpid())
        modules = [m for name, m in sys.modules.items() if name.startswith(("icestats.", "pyiceberg.table"))]
        for module, name, own in [
            (m, k, replaced[id(v)]) for m in modules for k, v in vars(m).items() if id(v) in replaced
        ]:
            patch.setattr(module, name, own)
        yield
