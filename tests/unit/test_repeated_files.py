"""A data file that two live entries name: every reader reads its rows twice, and each answer says so."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import icestats
from icestats.answers.text import printable
from icestats.read.manifests.manifests import find_repeated_files
from icestats.table.statistics import Statistics
from tests.computed_statistics import scan_table

TITLE = "data files are in the table twice: every reader reads their rows as often"


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = tmp_path / "once.parquet"
    pq.write_table(pa.table({"id": pa.array(range(10), pa.int64())}), path)
    return str(path)


@pytest.fixture
def table(catalog: SqlCatalog, catalog_properties: dict[str, str], path: str) -> icestats.Table:
    made = catalog.create_table("db.twice", pa.schema([("id", pa.int64())]))
    made.append(pa.table({"id": pa.array([50], pa.int64())}))
    made.add_files([path])
    made.add_files([path], check_duplicate_files=False)
    return icestats.load("db.twice", catalog=catalog_properties)


def test_a_plan_names_a_file_that_is_in_the_table_twice(table: icestats.Table, path: str) -> None:
    plan = table.plan("id < 20", rows=True)
    (finding,) = plan.findings
    assert (finding.severity, finding.title) == ("error", TITLE)
    assert finding.evidence == f"1 live entry beside the first of its data file, such as {path}"
    assert plan.steps[-1].kept == 20
    assert TITLE in repr(plan)
    assert TITLE in plan._repr_html_()
    assert plan.to_json()["findings"][0]["title"] == TITLE
    assert table.plan("id > 40").findings == (), "it is not read"


@pytest.mark.parametrize(
    ("data", "deletes", "repeated"),
    [
        ([], [], 0),
        (["a", "b"], ["a", "c", "c"], 0),
        (["a", "b", "a", "a"], [], 2),
        (["a", "", ""], [], 1),
        (["a", ""], [""], 0),
    ],
)
def test_only_data_files_are_compared_and_by_their_whole_path(
    data: list[str], deletes: list[str], repeated: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many paths are hashed at once."""
    monkeypatch.setattr("icestats.read.manifests.manifests._HASHED_AT_ONCE", 3)
    contents = ["data"] * len(data) + ["position_deletes"] * len(deletes)
    kind = pa.schema([("content", pa.string()), ("file_path", pa.string())])
    files = pa.table({"content": contents, "file_path": [*data, *deletes]}, schema=kind)
    found = find_repeated_files(pa.concat_tables([files.slice(0, 2), files.slice(2)]))
    assert [one.evidence.split()[0] for one in found] == ([str(repeated)] if repeated else [])


def test_of_a_path_of_any_length_the_beginning_is_named() -> None:
    files = pa.table({"content": ["data"] * 2, "file_path": ["s3://" + "a" * 5_000] * 2})
    (found,) = find_repeated_files(files)
    assert 1_000 < len(found.evidence) < 1_100


def test_statistics_count_its_rows_twice_and_say_so(table: icestats.Table, path: str) -> None:
    found = scan_table(table)
    assert (found.row_count, found.file_count) == (21, 3)
    assert [finding.title for finding in found.findings] == [TITLE]
    assert f"such as {printable(path)}" in repr(Statistics(table._source, found))


def test_an_estimate_names_it_where_paths_are_read(table: icestats.Table) -> None:
    assert TITLE in [finding.title for finding in table.estimate("id < 20", columns=["id"]).findings]
