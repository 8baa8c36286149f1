"""A standalone cluster of Spark on this machine: what the benchmark of clusters and the tests of Spark scan on."""

from __future__ import annotations

import collections
import os
import re
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from icestats.spark.java import find_java

DAEMON_MEMORY = "256m"
_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Master and workers start with half of the CPU; executors have Java's own settings."""


class ClusterError(Exception):
    """A master or a worker did not start; the message is the last line that it wrote."""


@dataclass(frozen=True)
class Cluster:
    """A master and its workers."""

    master: str
    """Its address, such as ``spark://127.0.0.1:7077``."""
    workers: tuple[subprocess.Popen[str], ...]


@contextmanager
def run_cluster(
    folder: Path, workers: int, *, cores: int = 1, memory: str = "1g", environment: Mapping[str, str] | None = None
) -> Iterator[Cluster]:
    """Run a master and its workers on loopback until the block ends.

    Parameters
    ----------
    folder : Path
        Where the workers keep what executors are sent, and what these print.
    workers : int
        How many.
    cores : int
        Of each worker.
    memory : str
        Of each worker, for executors.
    environment : mapping of str to str, optional
        Further variables of all of them, which executors inherit.
    """
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    variables |= {"JAVA_HOME": str(find_java().home), "SPARK_LOCAL_IP": "127.0.0.1"}
    variables |= {"SPARK_DAEMON_MEMORY": DAEMON_MEMORY, "SPARK_DAEMON_JAVA_OPTS": _SHORT_LIVED, **(environment or {})}
    with ExitStack() as stack:
        _, master = stack.enter_context(_run("master.Master", variables, r"spark://127\.0\.0\.1:\d+", "--port", "0"))
        started = []
        for number in range(workers):
            place = ("--cores", str(cores), "--memory", memory, "--work-dir", str(folder / f"worker-{number}"))
            said = "Successfully registered with master"
            process, _ = stack.enter_context(_run("worker.Worker", variables, said, *place, master))
            started.append(process)
        yield Cluster(master, tuple(started))


@contextmanager
def _run(
    kind: str, environment: Mapping[str, str], said: str, *arguments: str
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a part of a cluster until the block ends; give the process, and what it says once it has started."""
    launcher = Path(pyspark.__file__).parent / "bin" / "spark-class"
    command = [str(launcher), f"org.apache.spark.deploy.{kind}", "--host", "127.0.0.1", "--webui-port", "0", *arguments]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None  # noqa: S101  # it is a pipe
        last = ""
        try:
            for line in process.stderr:
                last = line.strip() or last
                if found := re.search(said, line):
                    break
            else:
                raise ClusterError(f"{kind}: {last}")
            # What it says later is read too, so that it never waits for a reader.
            rest = threading.Thread(target=collections.deque, args=(process.stderr, 0), daemon=True)
            rest.start()
            yield process, found[0]
            process.terminate()
            rest.join()
        finally:
            process.terminate()
