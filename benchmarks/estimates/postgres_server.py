"""A PostgreSQL server of the benchmark's own: a folder, a socket in it, no port."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

_USER, _PORT, _MOST_SECONDS = "postgres", "54329", 900
_SETTINGS = {"listen_addresses": "''", "fsync": "off", "shared_buffers": "256MB", "maintenance_work_mem": "256MB"}
_SETTINGS |= {"autovacuum": "off", "max_wal_size": "4GB"}


class PostgresServer:
    """A server that runs while this is entered; `psql` talks to it."""

    def __enter__(self) -> PostgresServer:
        self._programs = _find_programs()
        # The path of a socket has 107 bytes at most.
        self._folder = Path(tempfile.mkdtemp(prefix="icestats-pg-", dir="/tmp"))
        if os.geteuid() == 0:
            shutil.chown(self._folder, _USER)
        self._data = self._folder / "data"
        self._run("initdb", "-D", self._data, "-U", _USER, "-A", "trust", "-E", "UTF8", "--locale=C")
        options = " ".join(f"-c {name}={value}" for name, value in _SETTINGS.items())
        options += f" -k {self._folder} -p {_PORT}"
        self._run("pg_ctl", "start", "-w", "-D", self._data, "-l", self._folder / "log", "-o", options)
        self.version = self.run_sql("show server_version;").split()[0]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self._run("pg_ctl", "stop", "-w", "-m", "fast", "-D", self._data)
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def run_sql(self, script: str) -> str:
        """Run a script by one psql, and return what it prints: rows alone, unaligned."""
        file = self._folder / "script.sql"
        file.write_text(script, encoding="utf-8")
        names = ["-h", str(self._folder), "-p", _PORT, "-U", _USER, "-d", "postgres"]
        command: list[str | Path] = [
            self._programs / "psql",
            "-X",
            "-q",
            "-A",
            "-t",
            "-v",
            "ON_ERROR_STOP=1",
            *names,
            "-f",
            file,
        ]
        return _call(command, {**os.environ, "PGCLIENTENCODING": "UTF8"})

    def _run(self, program: str, *options: str | Path) -> None:
        """Run a program of the server, which refuses to be root's."""
        user = ["runuser", "-u", _USER, "--"] if os.geteuid() == 0 else []
        # What pg_ctl starts keeps its output open: a pipe would be waited for until the server ends.
        with (self._folder / "programs.log").open("w+") as log:
            command = [*user, str(self._programs / program), *map(str, options)]
            found = subprocess.run(
                command, stdout=log, stderr=log, cwd=self._folder, timeout=_MOST_SECONDS, check=False
            )
            log.seek(0)
            if found.returncode:
                sys.exit(f"benchmarks: PostgreSQL's {program} failed: {_last_line(log.read())}")


def _call(command: Sequence[str | Path], environment: dict[str, str]) -> str:
    found = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=_MOST_SECONDS, check=False, encoding="utf-8"
    )
    if found.returncode:
        sys.exit(f"benchmarks: {Path(command[0]).name} failed: {_last_line(found.stderr)}")
    return found.stdout


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "it says nothing")


def _find_programs() -> Path:
    """Return the folder of PostgreSQL's programs, which Debian's package is installed for where they are missing."""
    for attempt in range(2):
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
        on_path = shutil.which("initdb")
        if found or on_path:
            return (found[-1] if found else Path(on_path or "")).parent
        if attempt == 0 and os.geteuid() == 0 and shutil.which("apt-get"):
            print("installing PostgreSQL with apt-get", file=sys.stderr)
            quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
            command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "postgresql"]
            subprocess.run(command, env=quiet, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    sys.exit("benchmarks: PostgreSQL is missing: apt-get install postgresql, or leave it out with --estimators")
