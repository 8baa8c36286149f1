from __future__ import annotations

from typing import Any

import pytest

import icestats
from icestats_widgets import Explorer

pytestmark = pytest.mark.spark


@pytest.fixture
def explorer(hostile_table: icestats.Table, spark: Any) -> Explorer:
    explorer = Explorer(hostile_table, column="price")
    assert explorer.wait()
    return explorer


def test_compute_preview_commit(explorer: Explorer, hostile_table: icestats.Table) -> None:
    """A commit needs a preview, a preview changes nothing, and after the commit the histogram is there."""
    panel = explorer.compute
    assert (panel.preview.disabled, panel.commit.disabled) == (True, True)
    panel.compute.click()
    assert explorer.wait(120)
    assert explorer.state.notes.get("compute") is None
    assert explorer.state.phase == "found"
    assert "&lt;img" in panel.outcome.value
    assert "<img" not in panel.outcome.value
    assert (panel.preview.disabled, panel.commit.disabled) == (False, True)
    panel.commit.click()
    assert explorer.state.phase == "found"
    panel.preview.click()
    assert explorer.wait()
    assert explorer.state.phase == "previewed"
    assert not explorer.state.report.committed
    assert str(explorer.state.report).splitlines()[0] in panel.outcome.value
    assert hostile_table.refresh().metadata.statistics == ()
    assert not panel.commit.disabled
    panel.commit.click()
    assert explorer.wait()
    assert explorer.state.report.committed
    assert explorer.histogram.figure is not None
    assert sum(explorer.histogram.figure.data[0].y) == 100
    assert explorer.columns.grid.page["rows"][0]["cells"][3]["t"] == "120"
    assert len(hostile_table.refresh().metadata.statistics) == 1


def test_only_the_chosen_columns_are_scanned(explorer: Explorer) -> None:
    """Columns are chosen in the panel; all are by default."""
    panel = explorer.compute
    assert panel.request().columns is None
    panel.all_columns.value = False
    panel.columns.value = ("price",)
    assert panel.code() == "table.compute(columns=['price']).commit(dry_run=True)"
    panel.compute.click()
    assert explorer.wait(120)
    assert panel.to_arrow()["name"].to_pylist() == ["price"]
    finished, total = explorer.state.progress
    assert finished == total > 0


def test_a_scan_can_be_cancelled(explorer: Explorer) -> None:
    """After a cancel nothing is found, the panel says so, and a new scan can start."""
    panel = explorer.compute
    panel.compute.click()
    panel.cancel.click()
    assert explorer.state.phase in ("cancelling", "idle")
    assert explorer.wait(120)
    assert (explorer.state.phase, explorer.state.statistics) == ("idle", None)
    assert "Cancelled: nothing has been changed." in panel.status.value
    panel.compute.click()
    assert explorer.wait(120)
    assert explorer.state.phase == "found"


def test_a_cancel_in_the_last_moment_counts(explorer: Explorer) -> None:
    """Where all tasks have finished and nothing is left to stop, what was found is dropped."""
    panel = explorer.compute

    def cancel(change: Any) -> None:
        finished, total = change["new"]
        if finished == total > 0:
            panel.cancel.click()

    explorer.state.observe(cancel, "progress")
    panel.compute.click()
    assert explorer.wait(120)
    assert (explorer.state.phase, explorer.state.statistics) == ("idle", None)
    assert "Cancelled: nothing has been changed." in panel.status.value


def test_a_commit_that_is_refused_is_a_note(hostile_location: str, spark: Any) -> None:
    """A table that was opened by its metadata is read-only: the reason stands in the panel."""
    explorer = icestats.load(hostile_location).explore()
    assert explorer.wait()
    explorer.compute.compute.click()
    assert explorer.wait(120)
    explorer.compute.preview.click()
    assert explorer.wait()
    assert "read-only" in explorer.compute.status.value
    assert explorer.compute.commit.disabled
