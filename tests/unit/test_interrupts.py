"""Ctrl-C ends the command line with exit code 130 and no traceback, whenever it comes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path

import pytest

import icestats
from icestats.iceberg.storage import local_path

ROOT = Path(__file__).parents[2]
HOOK = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(1000):
                pass

sys.meta_path.insert(0, Interrupt())
"""


def entry_points() -> dict[str, list[str]]:
    """How the command line is started: as pip writes the console script, and as a module."""
    module, _, function = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"][
        "icestats"
    ].partition(":")
    return {
        "script": ["-c", f"import sys; from {module} import {function}; sys.exit({function}())"],
        "module": ["-m", "icestats"],
    }


@pytest.mark.parametrize("started", ["script", "module"])
@pytest.mark.parametrize(
    "module", ["icestats.cli.command_line", "numpy", "pyarrow", "click", "icestats.cli.workplace_verbs"]
)
def test_an_interrupt_while_modules_are_imported_is_no_traceback(tmp_path, started, module):
    (tmp_path / "sitecustomize.py").write_text(HOOK.format(module=module))
    paths = os.pathsep.join([str(tmp_path), *(path for path in sys.path if path)])
    command = [sys.executable, *entry_points()[started], "show", str(tmp_path / "nothing.metadata.json")]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_the_package_itself_imports_nothing_heavy():
    """What is imported before the command line's guard is interrupted with a traceback."""
    code = "import sys; before = set(sys.modules); import icestats.cli.entry; print(*sorted(set(sys.modules) - before))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {name for name in found if name.startswith("icestats")} == {"icestats", "icestats.cli", "icestats.cli.entry"}
    assert not {"numpy", "pyarrow", "click"} & set(found)


QUERIES = """
import signal, sys
import icestats

def report(found):
    # Python swallows one that comes in the callback of a weak reference; there is another one then.
    if found.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(found)

sys.unraisablehook = report
signal.signal(signal.SIGALRM, signal.default_int_handler)
table = icestats.load(sys.argv[1])
# Python itself may keep the lock of an import that is interrupted: everything is imported before.
table.sql("select count(*) from columns, files")
endless = "select count(*) from range(1000000) a, range(1000000) b, {view} where hash(a.range, b.range) % 7 = 3"
for view in ("columns", "files"):
    for delay in (0.0005, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.3):
        try:
            # A library may swallow one.
            signal.setitimer(signal.ITIMER_REAL, delay, 10)
            table.sql(endless.format(view=view))
        except KeyboardInterrupt:
            signal.setitimer(signal.ITIMER_REAL, 0)
            count = table.sql("select count(*) as n from columns")["n"][0].as_py()
            print("interrupted", count, flush=True)
"""


def test_an_endless_query_is_interrupted_whenever_it_comes_and_the_table_answers_afterwards(small_table):
    """In the main thread, as in a notebook: before the query has begun, while views are read, while DuckDB works."""
    location = local_path(small_table.metadata_location)
    done = subprocess.run(
        [sys.executable, "-c", QUERIES, str(location)], capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["interrupted", "4"] * 16


def test_an_interrupt_that_is_repeated_leaves_no_query_behind(small_table):
    """As by a person who is impatient, or by `timeout`, which sends one to the process and one to its group."""
    table = icestats.load(str(local_path(small_table.metadata_location)))
    assert table.sql("select 1 as one").to_pylist() == [{"one": 1}]
    queries: list[threading.Thread] = []
    at_work = time.process_time() + 0.1

    def interrupt(*_: object) -> None:
        running = [thread for thread in threading.enumerate() if thread.name == "icestats-query"]
        # Before that it may end between two interrupts.
        if running and len(queries) < 3 and time.process_time() > at_work:
            queries.extend(running)
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2, 0.05)
        with pytest.raises(KeyboardInterrupt):
            # DuckDB asks between calls of functions whether it is interrupted, not in one.
            table.sql("select levenshtein(repeat('a', 20000), repeat('b', 20000)) from range(1000)")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(queries) == 3
    assert table.sql("select 1 as one").to_pylist() == [{"one": 1}]


ALARM = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "icestats.snapshot.interrupts":
            signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.{name}))
            signal.setitimer(signal.ITIMER_REAL, 1.0)

sys.meta_path.insert(0, Interrupt())
"""


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_the_verb_sql_ends_with_one_exit_code_and_no_words(small_table, tmp_path, name, code):
    (tmp_path / "sitecustomize.py").write_text(ALARM.format(name=name))
    paths = os.pathsep.join([str(tmp_path), *(path for path in sys.path if path)])
    query = "select count(*) from range(1000000) a, range(1000000) b where hash(a.range, b.range) % 7 = 3"
    command = [sys.executable, "-m", "icestats", "sql", str(local_path(small_table.metadata_location)), query]
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stdout, done.stderr.strip()) == (code, "", "")


CALLBACK = """
import os, signal, sys, weakref

class Target:
    pass

def interrupt(_):
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1000):
        pass

def hook(event, arguments, done=[]):
    if event == "open" and str(arguments[0]).endswith(".metadata.json") and not done:
        done.append(event)
        target = Target()
        reference = weakref.ref(target, interrupt)
        del target
        for _ in range(100_000_000):
            pass

sys.addaudithook(hook)
"""


def test_an_interrupt_that_comes_in_a_callback_is_not_lost(small_table, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(CALLBACK)
    paths = os.pathsep.join([str(tmp_path), *(path for path in sys.path if path)])
    command = [sys.executable, "-m", "icestats", "show", str(local_path(small_table.metadata_location))]
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "")


CLASS = """
import click, sys
from icestats.cli import entry, command_line

class Interrupted:
    def __set_name__(self, owner, name):
        raise KeyboardInterrupt

@command_line.cli.command("make")
def make():
    class Made:
        field = Interrupted()

sys.argv = ["icestats", "make"]
entry.main()
"""


def test_an_interrupt_while_a_class_is_made_is_one():
    """Python 3.12 and later add a line of their own to what is raised there."""
    done = subprocess.run([sys.executable, "-c", CLASS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (130, "")
    assert "Traceback" not in done.stderr
