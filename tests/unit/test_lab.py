"""The notebook that `icestats lab` opens."""

from __future__ import annotations

import json

import pytest

from icestats.cli import workplace_verbs
from icestats.errors import CallError


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


def test_a_folder_that_cannot_be_written_is_said_in_a_line(tmp_path):
    with pytest.raises(CallError, match=r"no notebook can be written to .*; call it in a folder of yours"):
        _written("demo.events", tmp_path / "missing")
