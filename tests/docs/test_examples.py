"""Every command and every line of Python of README and the documentation runs, or says that it is configuration.

A fenced block of `python` runs, one namespace a page; with prompts (`>>>`) its answers are compared. Of `console` each
line behind `$` runs and its answer is compared where one stands below it, `...` standing for anything. Of `sh` each
line has to be a target of the Makefile, a benchmark, or a program that a reader installs with. Below a line
`<!-- configuration -->` a block is compiled or parsed only.
"""

from __future__ import annotations

import doctest
import inspect
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import strictyaml
from click.testing import CliRunner
from pyiceberg.catalog import AVAILABLE_CATALOGS, CatalogType
from pyiceberg.utils.config import Config

import benchmarks
import icestats
from icestats.cli.command_line import cli
from tests.spark_versions import skip_before

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
FENCE = re.compile(r"^(<!-- configuration -->\n)?( *)```(\w*)[^\n]*\n(.*?)^\2```$", re.MULTILINE | re.DOTALL)
INSTALLERS = ("pip install ", "apt install ", "brew install ", "conda ", "git clone ", "cd ", "repo2docker ", "voila ")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    page: Path
    line: int
    language: str
    text: str
    is_configuration: bool

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}, line {self.line}"


def read_blocks(page: Path) -> list[Block]:
    text = page.read_text()
    return [
        Block(page, text.count("\n", 0, found.start(3)) + 1, found[3], found[4], found[1] is not None)
        for found in FENCE.finditer(text)
    ]


def run_python(block: Block, names: dict[str, Any]) -> None:
    if block.is_configuration:
        compile(block.text, block.place, "exec")
    elif ">>>" in block.text:
        parsed = doctest.DocTestParser().get_doctest(block.text, names, block.place, str(block.page), block.line)
        said: list[str] = []
        failed = doctest.DocTestRunner(optionflags=FLAGS).run(parsed, out=said.append, clear_globs=False).failed
        names.update(parsed.globs)
        assert not failed, "".join(said)
    else:
        exec(compile(block.text, block.place, "exec"), names)


def run_console(block: Block, names: dict[str, Any]) -> None:
    commands = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    assert commands[0].strip() == "", f"{block.place}: a block of console begins with a command"
    for command in commands[1:]:
        line, _, expected = command.replace("\\\n", "").partition("\n")
        program, *arguments = shlex.split(line, comments=True)
        assert program == "icestats", f"{block.place}: {line}"
        if block.is_configuration:
            assert arguments[0] in cli.commands, f"{block.place}: {line}"
            continue
        result = CliRunner().invoke(cli, arguments, catch_exceptions=False)
        assert result.exit_code == 0, f"{block.place}: {line}\n{result.output}"
        if expected.strip():
            same = doctest.OutputChecker().check_output(expected, result.stdout, FLAGS)
            assert same, f"{block.place}: {line}\nexpected:\n{expected}\nsaid:\n{result.stdout}"


def check_shell(block: Block, names: dict[str, Any]) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for line in filter(None, (line.partition("#")[0].strip() for line in block.text.splitlines())):
        words = shlex.split(line)
        if words[0] == "make":
            assert words[1] in targets, f"{block.place}: {line}"
        elif words[:3] == ["python", "-m", "benchmarks"]:
            folder = Path(str(benchmarks.__file__)).parent
            assert all((folder / f"{name}.py").exists() for name in words[3:4]), f"{block.place}: {line}"
        else:
            assert line.startswith(INSTALLERS), f"{block.place}: {line}"


def check_yaml(block: Block, names: dict[str, Any]) -> None:
    """PyIceberg's configuration: read by its own reader, and each catalog is of a type that it knows."""
    (Path.cwd() / ".pyiceberg.yaml").write_text(block.text)
    names["monkeypatch"].setenv("PYICEBERG_HOME", str(Path.cwd()))
    catalogs = strictyaml.load(block.text).data["catalog"]
    config = Config()
    assert catalogs.keys() <= set(config.get_known_catalogs())
    for name in catalogs:
        properties = config.get_catalog_config(name)
        assert CatalogType(properties["type"]) in AVAILABLE_CATALOGS, f"{block.place}: {name}"
    names["monkeypatch"].delenv("PYICEBERG_HOME")
    (Path.cwd() / ".pyiceberg.yaml").unlink()


def leave(block: Block, names: dict[str, Any]) -> None:
    """Text, SQL of other engines: nothing here can run it."""


RUNNERS: dict[str, Callable[[Block, dict[str, Any]], None]] = {
    "python": run_python, "console": run_console, "sh": check_shell, "yaml": check_yaml, "text": leave, "sql": leave
}  # fmt: skip


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_examples_of_a_page_run(path: Path, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first to the last block, as a reader does who follows the page."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__", "monkeypatch": monkeypatch}
    blocks = read_blocks(path)
    if any(".to_spark(" in block.text for block in blocks):
        skip_before("4.1", "`to_spark` is refused: it is known to work with Spark 4.1 alone")
    for block in blocks:
        assert block.language in RUNNERS, f"{block.place}: no such language of examples: {block.language!r}"
        RUNNERS[block.language](block, names)


def test_every_method_and_every_verb_is_on_a_page() -> None:
    """What `Table` and the command line can do is described outside the reference, too."""
    text = "\n".join(path.read_text() for path in PAGES if "reference" not in path.parts)
    methods = [name for name, found in inspect.getmembers(icestats.Table, callable) if not name.startswith("_")]
    assert len(methods) > 20
    assert [name for name in methods if not re.search(rf"\b{name}(\(|`)", text)] == []
    assert [verb for verb in cli.commands if not re.search(rf"icestats {verb}\b", text)] == []


def test_blocks_are_found() -> None:
    """The test above has something to run: Python, commands and configuration."""
    found = {block.language for page in PAGES for block in read_blocks(page)}
    assert {"python", "console", "sh", "yaml"} <= found
    assert len(PAGES) > 10
