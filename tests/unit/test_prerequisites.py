"""What a bare machine lacks is installed by what it has, or one line says what to type."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "prerequisites.py"
CHROMIUM = "#!/bin/sh\necho Chromium 150\n"
OF_PLAYWRIGHT = "browsers/chromium-1200/chrome-linux64/chrome"


def write_program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """The only folder of PATH: a shell's own words, `env`, and a `sudo` that asks nothing."""
    write_program(tmp_path / "bin" / "sudo", '#!/bin/sh\nshift\nexec "$@"\n')
    for name in ("env", "sh", "chmod", "mkdir"):
        (tmp_path / "bin" / name).symlink_to(Path("/usr/bin", name))
    return tmp_path / "bin"


@pytest.fixture
def apt_get(programs: Path) -> Path:
    """An apt-get that keeps what it was called with and puts a Chromium on PATH; before an update it knows nothing."""
    log, lists = programs.parent / "apt.log", programs.parent / "lists"
    install = f"printf '%s' '{CHROMIUM}' > {programs}/chromium && chmod +x {programs}/chromium"
    cases = f"--simulate*) test -e {lists};; *update) : > {lists};; *) {install};;"
    log_unless_simulated = f'test "$1" = --simulate || echo "$DEBIAN_FRONTEND $@" >> {log}'
    write_program(programs / "apt-get", f'#!/bin/sh\n{log_unless_simulated}\ncase "$*" in {cases} esac\n')
    return log


def run(programs: Path, *names: str) -> subprocess.CompletedProcess[str]:
    """Run the script where nothing but `programs` is found, in a folder with no .venv."""
    environment = {"PATH": str(programs), "PLAYWRIGHT_BROWSERS_PATH": str(programs.parent / "browsers")}
    command = [sys.executable, str(SCRIPT), *names]
    return subprocess.run(
        command, cwd=programs.parent, env=environment, capture_output=True, text=True, check=False, timeout=600
    )


def test_what_is_there_is_not_installed(programs: Path, apt_get: Path) -> None:
    write_program(programs / "chromium-browser", CHROMIUM)
    done = run(programs, "venv", "chromium")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not apt_get.exists()


def test_playwrights_own_chromium_is_found(programs: Path, apt_get: Path) -> None:
    write_program(programs.parent / OF_PLAYWRIGHT, CHROMIUM)
    assert run(programs, "chromium").returncode == 0
    assert not apt_get.exists()


def test_a_stub_that_does_not_start_is_no_chromium(programs: Path, apt_get: Path) -> None:
    """As Ubuntu's `chromium-browser`, which asks for the snap."""
    write_program(programs / "chromium-browser", "#!/bin/sh\necho 'Command requires the chromium snap' >&2\nexit 1\n")
    done = run(programs, "chromium")
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split(" -qq")[0] for line in apt_get.read_text().splitlines()] == ["noninteractive"] * 2


def test_apt_get_installs_what_is_missing_with_its_lists_brought_up_to_date(programs: Path, apt_get: Path) -> None:
    done = run(programs, "chromium")
    assert (done.returncode, done.stderr) == (0, "")
    update, install = apt_get.read_text().splitlines()
    assert update.endswith(" update")
    assert install.endswith(" install --yes --no-install-recommends chromium")
    assert run(programs, "chromium").stdout == ""


def test_playwright_brings_chromium_where_nothing_else_does(programs: Path) -> None:
    """By the program that `make install` puts into .venv; one that is not there yet is put there first."""
    chrome = programs.parent / OF_PLAYWRIGHT
    text = f"#!/bin/sh\nmkdir -p {chrome.parent}\nprintf '%s' '{CHROMIUM}' > {chrome}\nchmod +x {chrome}\n"
    write_program(programs.parent / ".venv" / "bin" / "playwright", text)
    done = run(programs, "chromium")
    assert (done.returncode, done.stderr) == (0, "")
    assert os.access(chrome, os.X_OK)


def test_one_line_says_what_to_type_and_why_the_last_way_failed(programs: Path) -> None:
    write_program(programs.parent / ".venv" / "bin" / "playwright", "#!/bin/sh\necho 'no network' >&2\nexit 1\n")
    done = run(programs, "venv", "chromium")
    expected = "make: this machine lacks Chromium; type: playwright install --with-deps chromium (no network)"
    assert (done.returncode, done.stderr) == (1, f"{expected}\n")


def test_the_line_names_packages_that_can_be_installed(programs: Path) -> None:
    """Debian 13 has no Java 17."""
    write_program(programs / "apt-get", '#!/bin/sh\ntest "$3" != openjdk-17-jre-headless\n')
    code = f"import sys; sys.path.insert(0, {str(SCRIPT.parents[1])!r})\nimport scripts.prerequisites as p\n"
    code += "print(p._command([p.PREREQUISITES['java'], p.PREREQUISITES['chromium']]))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env={"PATH": str(programs)}, capture_output=True, text=True, check=False)
    assert done.stdout == "sudo apt-get install openjdk-21-jre-headless chromium\n"
