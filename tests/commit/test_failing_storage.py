"""Whichever call of the storage fails, a commit has done all or nothing, and says which files it has left."""

from __future__ import annotations

import shutil
import traceback
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.transforms import IdentityTransform

import icestats
from icestats.errors import CommitError, IcestatsError
from tests import failing_storage
from tests.committed_statistics import ROWS, commit, theta
from tests.failing_storage import Failure

MODES = {
    "once": {},
    "for good": {"for_good": True},
    "once, after the work": {"after_the_work": True},
    "for good, after the work": {"for_good": True, "after_the_work": True},
    "for good, as a name that is taken": {"for_good": True, "error": FileExistsError},
}
MOST_CALLS = 200


class Place:
    """A partitioned table with statistics of an earlier snapshot, on the failing storage."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "now"
        self.folder.mkdir()
        self.properties = {
            "type": "sql",
            "uri": f"sqlite:///{self.folder}/catalog.db",
            "warehouse": f"file://{self.folder}/warehouse",
            "py-io-impl": "tests.failing_storage.FailingIO",
        }
        with SqlCatalog("catalog", **self.properties) as catalog:
            catalog.create_namespace("db")
            table = catalog.create_table("db.t", ROWS.schema)
            with table.update_spec() as update:
                update.add_field("a", IdentityTransform(), "a")
            table.append(ROWS)
            self.load().compute(partitions=True, manifests=True).commit()
            commit(table.refresh(), theta(table, 1))
            table.refresh().append(ROWS)
        self.before = self.unregistered()
        shutil.copytree(self.folder, folder / "built")

    def restore(self) -> None:
        """Put everything back as it was built."""
        failing_storage.PLAN = Failure()
        shutil.rmtree(self.folder)
        shutil.copytree(self.folder.with_name("built"), self.folder)

    def load(self) -> icestats.Table:
        return icestats.load("db.t", catalog=self.properties)

    def registered(self) -> dict[str, set[str]]:
        """The names of the current snapshot's files, by kind; each of them can be read."""
        table = self.load()
        entries = {"puffin": table.metadata.statistics, "partitions": table.metadata.partition_statistics}
        for file in (*table.metadata.statistics, *table.metadata.partition_statistics):
            assert Path(file.statistics_path.removeprefix("file://")).stat().st_size == file.file_size_in_bytes
        current = table.snapshot.snapshot_id
        return {
            kind: {Path(f.statistics_path).name for f in files if f.snapshot_id == current}
            for kind, files in entries.items()
        }

    def unregistered(self) -> set[str]:
        table = self.load()
        known = {
            Path(f.statistics_path).name for f in (*table.metadata.statistics, *table.metadata.partition_statistics)
        }
        folder = next((self.folder / "warehouse").rglob("metadata"))
        return {p.name for p in folder.iterdir() if p.suffix in (".stats", ".parquet")} - known


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Place:
    return Place(tmp_path_factory.mktemp("place"))


def fail_at_each_call(place, act, **how):
    """Yield the outcome and the error of an act, for each of its calls of the storage that fails."""
    for at in range(1, MOST_CALLS):
        place.restore()
        work = act()
        failing_storage.PLAN = plan = Failure(at, **how)
        error = outcome = None
        try:
            outcome = work()
        except IcestatsError as caught:
            error = caught
        failing_storage.PLAN = Failure()
        yield outcome, error
        if len(plan.calls) < at:
            assert error is None
            return
    raise AssertionError("the act has no end")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.filterwarnings("ignore:Failed to delete old metadata")
def test_a_commit_does_all_or_nothing_and_names_what_it_leaves(place, mode):
    def act():
        return place.load().compute(partitions=True, manifests=True).commit

    failed = 0
    for report, error in fail_at_each_call(place, act, **MODES[mode]):
        registered, left = place.registered(), place.unregistered() - place.before
        assert {len(names) for names in registered.values()} in ({0}, {1}), "one of two files is registered"
        text = str(report if error is None else error)
        assert "\n" not in str(error)
        assert not [name for name in left if name not in text], "a file is left that nobody is told of"
        if error is None:
            assert all(registered.values())
            assert [len(entry.blobs) for entry in place.load().metadata.statistics] == [1, 1], "an NDV got lost"
            continue
        failed += 1
        if left:
            assert isinstance(error, CommitError)
        if any(registered.values()):
            assert "no answer" in text
            assert all(name in text for names in registered.values() for name in names)
        assert place.load().compute(partitions=True, manifests=True).commit().committed, "and it works again"
    assert failed


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.filterwarnings("ignore:Failed to delete old metadata")
def test_a_removal_does_all_or_nothing(place, mode):
    def act():
        place.load().compute(partitions=True, manifests=True).commit()
        return place.load().remove_statistics

    for report, error in fail_at_each_call(place, act, **MODES[mode]):
        counts = {len(names) for names in place.registered().values()}
        assert counts in ({0}, {1})
        if report is not None:
            assert (counts, report.removed, len(report.entries)) == ({0}, True, 2)
        elif counts == {0}:
            assert "no answer" in str(error)


def replace_statistics(place):
    table = place.load()._check_writable()
    for field_id in (1, 2):
        commit(table.refresh(), theta(table, field_id))


@pytest.mark.parametrize("how", [{}, {"after_the_work": True}, {"error": ValueError}], ids=str)
@pytest.mark.filterwarnings("ignore:Failed to delete old metadata")
def test_a_restore_puts_back_what_was_there_or_removes_nothing(place, how):
    """A storage that did not answer once took the earlier statistics for gone: the table had none then."""

    def act():
        replace_statistics(place)
        return lambda: place.load().remove_statistics(restore=True)

    refused = 0
    for report, error in fail_at_each_call(place, act, **how):
        assert len(place.registered()["puffin"]) == 1
        refused += "remove without restore" in str(error)
        if report is not None:
            assert (report.notes, len(report.restored_files)) == ((), 1)
    assert refused


class _OfItsOwnError(Exception):
    """As the clients of Azure, Google and S3 have them."""


ACTS = {
    "rows": lambda table: table.plan("c > 0", rows=True),
    "commit": lambda table: table.compute(partitions=True, manifests=True).commit(),
    "restore": lambda table: table.remove_statistics(restore=True),
    "orphans": lambda table: table.orphans(),
}


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.filterwarnings("ignore:Failed to delete old metadata")
def test_none_but_the_kits_errors_comes_out_of_errors_of_a_storages_own(place, act):
    def begin():
        if act == "restore":
            replace_statistics(place)
        table = place.load()
        return lambda: ACTS[act](table)

    outcomes = fail_at_each_call(place, begin, error=_OfItsOwnError, for_good=True)
    said = [str(error) for _, error in outcomes if error is not None]
    assert any("the storage failed" in text for text in said)
    assert not any("\n" in text for text in said)


def _repeat_the_key(said: str) -> OSError:
    return OSError(f"{said}: hidden-key is not known")


@pytest.mark.parametrize(
    "act",
    [
        lambda table: table.compute(partitions=True, manifests=True).commit,
        lambda table: table.orphans,
    ],
    ids=["commit", "orphans"],
)
@pytest.mark.filterwarnings("ignore:Failed to delete old metadata")
def test_what_a_storage_repeats_is_not_told(place, act, capfd, caplog):
    """Some tell in an error what they were signed in with; a proxy's address may stand in it, too."""
    own = place.properties | {"s3.secret-access-key": "hidden-key"}
    said = []
    for _, error in fail_at_each_call(
        place, lambda: act(icestats.load("db.t", catalog=own)), error=_repeat_the_key, for_good=True
    ):
        said += [] if error is None else traceback.format_exception(error)
    assert "hidden" not in "".join((*said, *capfd.readouterr(), caplog.text))
