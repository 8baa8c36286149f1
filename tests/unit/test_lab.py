"""The notebook that `icestats lab` opens."""

from __future__ import annotations

import json
import os

import pytest
from click.testing import CliRunner

from icestats.cli import workplace_verbs
from icestats.errors import CallError, TableNotFoundError


def _written(source, tmp_path):
    return workplace_verbs._write_notebook(source, tmp_path)


def test_each_source_has_a_notebook_of_its_own(tmp_path):
    sources = [
        "demo.events",
        "demo_events",
        "s3://a/orders",
        "s3://b/orders",
        "表.甲",
        "表.乙",
        "x" * 300,
        "a/metadata/v1.json",
    ]
    written = {source: _written(source, tmp_path) for source in sources}
    assert len(set(written.values())) == len(sources)
    for source, path in written.items():
        assert f"icestats.load({source!r})" in "".join(json.loads(path.read_text())["cells"][0]["source"])


def test_a_notebook_that_exists_is_left_as_it_is(tmp_path):
    path = _written("demo.events", tmp_path)
    path.write_text("mine")
    assert _written("demo.events", tmp_path) == path
    assert path.read_text() == "mine"


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files to others")
@pytest.mark.parametrize("is_link", [False, True])
def test_a_notebook_that_another_user_has_put_there_is_not_opened(tmp_path, is_link):
    path = _written("demo.events", tmp_path)
    if is_link:
        path.rename(tmp_path / "mine")
        path.symlink_to(tmp_path / "mine")
    os.lchown(path, 12_345, -1)
    with pytest.raises(CallError, match="is of another user, and would run as you"):
        _written("demo.events", tmp_path)
    os.chown(tmp_path, 12_345, -1)
    assert _written("demo.events", tmp_path) == path


def test_a_notebook_is_not_written_through_a_link(tmp_path):
    """A dangling one: the file that it names would be made, wherever that is."""
    path = _written("demo.events", tmp_path)
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    assert _written("demo.events", tmp_path) == path
    assert not (tmp_path / "elsewhere").exists()


def test_a_table_that_is_not_there_opens_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(workplace_verbs.subprocess, "call", lambda _: 0)
    answer = CliRunner().invoke(workplace_verbs.open_lab, [str(tmp_path / "nothing.metadata.json")])
    assert isinstance(answer.exception, TableNotFoundError)
    assert list(tmp_path.iterdir()) == []
    answer = CliRunner().invoke(workplace_verbs.open_lab, ["demo.events"])
    assert answer.exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["icestats_demo.events.ipynb"]


def test_a_folder_that_cannot_be_written_is_said_in_a_line(tmp_path):
    with pytest.raises(CallError, match=r"no notebook can be written to .*; call it in a folder of yours"):
        _written("demo.events", tmp_path / "missing")
