"""Catalogs as servers on loopback, each with a storage: Nessie with moto's S3, a Hive metastore with a local folder."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

from tests.hive_metastore import JARS, run_metastore
from tests.interop.engine_server import (
    CACHE,
    START_LIMIT_S,
    Digest,
    EngineError,
    fetch_java,
    java_program,
    write_properties,
)
from tests.s3_server import run_s3

NESSIE_VERSION = "0.99.0"
NESSIE_JAR = CACHE / f"nessie-quarkus-{NESSIE_VERSION}-runner.jar"
NESSIE_SHA256 = "ce9fa33e2878bf5ea3981876b9e6204cabc0362b3dd82326b10e47271a78c417"
NESSIE_MB = 245
NESSIE_JAVA = 25
HIVE_VERSION = next(JARS.glob("hive-metastore-*.jar")).stem.removeprefix("hive-metastore-")
KEYS = {"s3.access-key-id": "any", "s3.secret-access-key": "any", "client.region": "us-east-1"}
# On a busy machine moto answers late.
TIMEOUTS = {"s3.connect-timeout": "30", "s3.request-timeout": "120"}


@dataclass(frozen=True)
class Kind:
    """A catalog that is tried, and where its tables are."""

    name: str
    version: str
    storage: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}, {self.storage}"


NESSIE = Kind("Nessie", NESSIE_VERSION, "S3")
HIVE = Kind("Hive metastore", HIVE_VERSION, "local files")
CATALOGS = (NESSIE, HIVE)


@dataclass(frozen=True)
class CatalogServer:
    """A running catalog."""

    kind: Kind
    properties: Mapping[str, str]
    """PyIceberg's."""
    endpoint: str | None
    """Of S3, where tables are there."""

    @contextmanager
    def asking_for_keys(self) -> Iterator[None]:
        """Let the S3 server refuse the keys that it does not know, which are all, for the time of a block."""
        self._allow(0)
        try:
            yield
        finally:
            self._allow(float("inf"))

    def _allow(self, unknown_count: float) -> None:
        url = f"{self.endpoint}/moto-api/reset-auth"
        text = {"Content-Type": "text/plain"}
        with urlopen(Request(url, str(unknown_count).encode(), text, method="POST")) as answer:
            assert answer.status == 200


def fetch_catalog(kind: Kind) -> None:
    """Put Nessie and its Java into the user's cache, where they are not there yet; Hive is in Spark's own jars."""
    if kind is not NESSIE:
        return
    fetch_java(NESSIE_JAVA)
    if NESSIE_JAR.exists():
        return
    url = f"https://repo1.maven.org/maven2/org/projectnessie/nessie/nessie-quarkus/{NESSIE_VERSION}/{NESSIE_JAR.name}"
    part = NESSIE_JAR.with_suffix(".part")
    with urlopen(url, timeout=60) as response, part.open("wb") as file:
        body = Digest(response)
        shutil.copyfileobj(body, file, 1 << 20)
    found = body.sha256.hexdigest()
    if found != NESSIE_SHA256:
        part.unlink()
        raise EngineError(f"{url} has the SHA-256 {found}, expected {NESSIE_SHA256}")
    part.rename(NESSIE_JAR)


@contextmanager
def run_catalog(kind: Kind, folder: Path) -> Iterator[CatalogServer]:
    """Run a catalog and the storage of its tables, and end both."""
    with ExitStack() as running:
        if kind is HIVE:
            uri = running.enter_context(run_metastore(folder))
            yield CatalogServer(kind, {"type": "hive", "uri": uri, "warehouse": f"{folder.as_uri()}/warehouse"}, None)
            return
        endpoint = running.enter_context(run_s3())
        uri = running.enter_context(_run_nessie(folder, endpoint))
        # The server says which endpoint; keys are the user's.
        properties = {"type": "rest", "uri": uri, "warehouse": "lake", **KEYS, **TIMEOUTS}
        yield CatalogServer(kind, properties, endpoint)


@contextmanager
def _run_nessie(folder: Path, endpoint: str) -> Iterator[str]:
    ports = []
    for _ in range(2):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            ports.append(str(free.getsockname()[1]))
    s3 = "nessie.catalog.service.s3.default-options"
    settings = {
        "quarkus.http.host": "127.0.0.1",
        "quarkus.http.port": ports[0],
        "quarkus.management.host": "127.0.0.1",
        "quarkus.management.port": ports[1],
        "nessie.version.store.type": "IN_MEMORY",
        "nessie.catalog.default-warehouse": "lake",
        "nessie.catalog.warehouses.lake.location": "s3://bucket/lake",
        f"{s3}.endpoint": endpoint,
        f"{s3}.path-style-access": "true",
        f"{s3}.region": KEYS["client.region"],
        f"{s3}.access-key": "urn:nessie-secret:quarkus:keys",
        "keys.name": KEYS["s3.access-key-id"],
        "keys.secret": KEYS["s3.secret-access-key"],
    }
    write_properties(folder / "application.properties", settings)
    options = ["-Xmx512m", "-XX:TieredStopAtLevel=1", f"-Dquarkus.config.locations={folder}/application.properties"]
    log = folder / "nessie.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [java_program(NESSIE_JAVA), *options, "-jar", NESSIE_JAR],
            stdout=output, stderr=output, cwd=folder, start_new_session=True,
        )  # fmt: skip
    uri = f"http://127.0.0.1:{ports[0]}/iceberg/"
    try:
        limit = time.monotonic() + START_LIMIT_S
        while not _answers(f"{uri}v1/config"):
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.5)
            if process.returncode is not None or time.monotonic() > limit:
                raise EngineError(f"{NESSIE} did not start: {log.read_text(errors='replace')[-300:]} (log: {log})")
        yield uri
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=30) as answer:
            return bool(answer.status == 200)
    except (URLError, OSError):
        return False
