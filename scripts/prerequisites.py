"""What a machine needs beside Python and make: found, else installed, else one line that says what to type.

`python3 scripts/prerequisites.py venv java chromium` runs on plain Python, before there is a .venv: `venv` makes it,
`java` is for Spark, `chromium` for the tests in a browser.
"""

from __future__ import annotations

import ctypes.util
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

VENV = Path(".venv")
"""Where `make install` puts the kit; Playwright comes first, where it has to bring Chromium."""
CHROMIUM_ON_PATH = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM_OF_MACOS = ("Chromium.app/Contents/MacOS/Chromium", "Google Chrome.app/Contents/MacOS/Google Chrome")
CHROMIUM_OF_PLAYWRIGHT = ("chromium-*/chrome-linux*/chrome", "chromium-*/chrome-mac*/*.app/Contents/MacOS/*")


@dataclass(frozen=True)
class Prerequisite:
    """Something that a machine may lack."""

    title: str
    is_there: Callable[[], bool]
    debian: tuple[str, ...]
    """Packages of Debian and Ubuntu: the first that apt-get knows; it may know none before its first update."""
    brew: str | None
    by_hand: str
    """What to type on a machine that has neither apt-get nor brew."""


def find_chromium() -> Path | None:
    """Return a Chromium that starts: on PATH, among macOS's applications, or Playwright's own."""
    return next(filter(_starts, _chromiums()), None)


def find_missing(names: Sequence[str]) -> list[Prerequisite]:
    """Return what this machine lacks of the prerequisites with these names."""
    return [PREREQUISITES[name] for name in names if not PREREQUISITES[name].is_there()]


def install_missing(names: Sequence[str]) -> str | None:
    """Install what is missing of the prerequisites with these names; return the one line to say where that failed."""
    said = ""
    for install in (_install_by_apt, _install_by_brew, _install_by_playwright):
        missing = find_missing(names)
        if not missing:
            return None
        said = install(missing) or said
    missing = find_missing(names)
    if not missing:
        return None
    titles = ", ".join(lacking.title for lacking in missing)
    return f"this machine lacks {titles}; type: {_command(missing)}{said and f' ({said})'}"


def _chromiums() -> Iterator[Path]:
    yield from (Path(path) for name in CHROMIUM_ON_PATH if (path := shutil.which(name)))
    is_macos = sys.platform == "darwin"
    if is_macos:
        yield from (Path("/Applications", name) for name in CHROMIUM_OF_MACOS)
    cache = Path.home() / ("Library/Caches" if is_macos else ".cache")
    browsers = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or cache / "ms-playwright")
    for pattern in CHROMIUM_OF_PLAYWRIGHT:
        yield from sorted(browsers.glob(pattern), reverse=True)


def _starts(program: Path) -> bool:
    """Return whether a program says its version: Ubuntu's stub of a snap does not, nor one that lacks a library."""
    return not _run([str(program), "--version"])


def _has_java() -> bool:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from icestats.errors import SparkUnavailableError
    from icestats.spark.java import find_java

    try:
        find_java()
    except SparkUnavailableError:
        return False
    return True


def _install_by_apt(missing: Sequence[Prerequisite]) -> str:
    rights = _rights()
    if rights is None or not shutil.which("apt-get"):
        return ""
    apt_get = [*rights, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300"]
    _say("apt-get update")
    failed = _run([*apt_get, "update"])
    packages = _debian_packages(missing)
    _say(f"apt-get install {' '.join(packages)}, a minute or two")
    return _run([*apt_get, "install", "--yes", "--no-install-recommends", *packages]) or failed


def _install_by_brew(missing: Sequence[Prerequisite]) -> str:
    formulas = [lacking.brew for lacking in missing if lacking.brew]
    if not formulas or not shutil.which("brew"):
        return ""
    _say(f"brew install {' '.join(formulas)}")
    return _run(["brew", "install", "--quiet", *formulas])


def _install_by_playwright(missing: Sequence[Prerequisite]) -> str:
    if missing != [PREREQUISITES["chromium"]]:
        return ""
    program = VENV / "bin" / "playwright"
    _say(f"{program} install chromium, a minute or two")
    failed = ""
    if not program.exists():
        failed = _run([sys.executable, "-m", "venv", str(VENV)]) or _run(
            [str(VENV / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check", "playwright"]
        )
    libraries = ["--with-deps"] if _rights() is not None and shutil.which("apt-get") else []
    return failed or _run([str(program), "install", *libraries, "chromium"])


def _rights() -> list[str] | None:
    """Return what to put before a command of the administrator; None for somebody who may not, or not unasked."""
    if os.geteuid() == 0:
        return []
    sudo = ["sudo", "-n"]
    return None if _run([*sudo, "true"]) else sudo


def _debian_packages(missing: Sequence[Prerequisite]) -> list[str]:
    def is_known(package: str) -> bool:
        return not _run(["apt-get", "--simulate", "install", package])

    return [next(filter(is_known, lacking.debian), lacking.debian[-1]) for lacking in missing]


def _command(missing: Sequence[Prerequisite]) -> str:
    if shutil.which("apt-get"):
        return f"sudo apt-get install {' '.join(_debian_packages(missing))}"
    if shutil.which("brew"):
        return " && ".join(f"brew install {lacking.brew}" if lacking.brew else lacking.by_hand for lacking in missing)
    return " && ".join(lacking.by_hand for lacking in missing)


def _run(command: Sequence[str]) -> str:
    """Run a command without showing what it prints; return "", or the last that it said where it failed."""
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, errors="replace")
    except OSError as error:
        return f"{command[0]}: {error.strerror}"
    said = (done.stderr + done.stdout).split("\n")
    lines = [line.strip() for line in said if line.strip()] or [f"exit code {done.returncode}"]
    return "" if done.returncode == 0 else lines[-1][:200]


def _say(what: str) -> None:
    print(f"{what} ...", flush=True)


PREREQUISITES = {
    "venv": Prerequisite(
        "Python's ensurepip",
        lambda: (VENV / "bin" / "python").exists() or importlib.util.find_spec("ensurepip") is not None,
        (f"python3.{sys.version_info.minor}-venv", "python3-venv"),
        None,
        "make PYTHON=/where/is/a/python3/with/ensurepip",
    ),
    "java": Prerequisite(
        "Java 17 to 22",
        _has_java,
        ("openjdk-17-jre-headless", "openjdk-21-jre-headless", "default-jre-headless"),
        "openjdk@17",
        "conda install -c conda-forge openjdk=17",
    ),
    "chromium": Prerequisite(
        "Chromium",
        lambda: find_chromium() is not None,
        ("chromium",),
        None,
        "playwright install --with-deps chromium",
    ),
    "libatomic": Prerequisite(
        "libatomic",
        # What Playwright drives Chromium with is a Node.js that was built with it.
        lambda: sys.platform != "linux" or ctypes.util.find_library("atomic") is not None,
        ("libatomic1",),
        None,
        "install the package that has libatomic.so.1",
    ),
}


if __name__ == "__main__":
    line = install_missing(sys.argv[1:])
    sys.exit(line and f"make: {line}")
