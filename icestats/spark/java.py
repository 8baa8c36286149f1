"""The Java that Spark runs on: which one, and what to say when there is none."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from icestats.errors import SparkUnavailableError

# Spark 4 and Iceberg's jars are compiled for it.
OLDEST_JAVA = 17
# Hadoop, as Spark 3.5 to 4.1 ship it, calls Subject.getSubject; Java 23 and later refuse it (HADOOP-19212).
NEWEST_JAVA = 22
USUAL_PLACES = (
    "/usr/lib/jvm/*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "/opt/homebrew/opt/openjdk@*",
    "/usr/local/opt/openjdk@*",
    "/home/linuxbrew/.linuxbrew/opt/openjdk@*",
)

_NEEDED = f"Spark needs Java {OLDEST_JAVA} to {NEWEST_JAVA}"
_REMEDY = (
    "install one with `apt install openjdk-17-jre-headless` (Debian), `brew install openjdk@17` (macOS) "
    "or `conda install -c conda-forge openjdk=17`, or point JAVA_HOME to one"
)
_VERSION = re.compile(r'^\S+ version "?([0-9][^"\s]*)', re.MULTILINE)
_HOME = re.compile(r"^\s*java\.home = (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Java:
    """One installation of Java.

    Attributes
    ----------
    home : pathlib.Path
        The folder that JAVA_HOME has to name.
    version : str
        The version as that Java says it, such as ``17.0.15``.
    """

    home: Path
    version: str

    @property
    def major(self) -> int:
        """The feature release: 8 for ``1.8.0_292``, 17 for ``17.0.15``."""
        return parse_java_version(self.version)

    @property
    def runs_spark(self) -> bool:
        """Whether Spark starts on this Java, with Iceberg."""
        return OLDEST_JAVA <= self.major <= NEWEST_JAVA


def parse_java_version(text: str) -> int:
    """Give the feature release that a version string of Java names.

    Parameters
    ----------
    text : str
        The version as ``java -version`` prints it.

    Returns
    -------
    int
        The feature release.

    Raises
    ------
    ValueError
        When the text begins with no number.

    Examples
    --------
    >>> [parse_java_version(text) for text in ("1.8.0_292", "11.0.2", "17.0.15", "25", "25-ea")]
    [8, 11, 17, 25, 25]
    """
    numbers = re.match(r"(\d+)(?:\.(\d+))?", text)
    if numbers is None:
        raise ValueError(f"no version of Java: {text!r}; expected one such as 17.0.15")
    first, second = numbers.groups()
    return int(second) if first == "1" and second else int(first)


def find_java(environ: Mapping[str, str] | None = None, usual_places: tuple[str, ...] = USUAL_PLACES) -> Java:
    """Find a Java that Spark runs on.

    JAVA_HOME comes first, then ``java`` on PATH, then conda's folder and the usual places of the system. The first
    that fits is taken, so a JAVA_HOME that is too old does not hide a good one elsewhere.

    Parameters
    ----------
    environ : mapping of str to str, optional
        The environment to read JAVA_HOME, PATH and CONDA_PREFIX from; the process's own by default.
    usual_places : tuple of str
        Absolute patterns of folders that may be a Java home.

    Returns
    -------
    Java
        Its home and its version.

    Raises
    ------
    SparkUnavailableError
        When there is none, or each one is too old or too new; the message tells what was found and how to get one.
    """
    found: list[Java] = []
    for executable in _executables(os.environ if environ is None else environ, usual_places):
        java = _ask(executable)
        if java is None:
            continue
        if java.runs_spark:
            return java
        found.append(java)
    if not found:
        raise SparkUnavailableError(f"no Java found: {_NEEDED}; {_REMEDY}")
    seen = ", ".join(dict.fromkeys(f"Java {java.version} in {java.home}" for java in found))
    raise SparkUnavailableError(f"{_NEEDED}, but only {seen} was found; {_REMEDY}")


def _executables(environ: Mapping[str, str], usual_places: tuple[str, ...]) -> Iterator[Path]:
    candidates = [Path(environ["JAVA_HOME"], "bin", "java")] if environ.get("JAVA_HOME") else []
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    candidates += [Path(on_path)] if on_path else []
    candidates += [Path(environ["CONDA_PREFIX"], "lib", "jvm", "bin", "java")] if environ.get("CONDA_PREFIX") else []
    for place in usual_places:
        candidates += [home / "bin" / "java" for home in sorted(Path("/").glob(place.lstrip("/")), reverse=True)]
    seen: set[Path] = set()
    for candidate in candidates:
        real = candidate.resolve()
        if real not in seen and os.access(real, os.X_OK) and real.is_file():
            seen.add(real)
            yield candidate


def _ask(executable: Path) -> Java | None:
    command = [str(executable), "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)  # noqa: S603  # a path we found
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = answer.stderr + answer.stdout
    version = _VERSION.search(said)
    if version is None:
        return None
    home = _HOME.search(said)
    return Java(Path(home[1].strip()) if home else executable.resolve().parent.parent, version[1])
