"""Findings: the gravest first, each opens to its evidence, its fix, and what the fix costs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField

import icestats
from icestats.iceberg.storage import local_path
from icestats_widgets import Explorer
from icestats_widgets.page.part import Part
from tests.committed_statistics import THETA, blob, commit
from tests.widgets.blocks_of_parts import find_blocks, find_button


@pytest.fixture(scope="module")
def properties(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The catalog of a table of twelve commits, each to all four partitions; half of them without metrics of part."""
    schema = Schema(
        NestedField(1, "part", LongType(), required=False), NestedField(2, "id", LongType(), required=False)
    )
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "part"))
    folder = tmp_path_factory.mktemp("mixed")
    made = {"type": "sql", "uri": f"sqlite:///{folder / 'c.db'}", "warehouse": f"file://{folder / 'w'}"}
    with SqlCatalog("catalog", **made) as catalog:
        catalog.create_namespace("db")
        table = catalog.create_table("db.mixed", schema, partition_spec=spec)
        for commit in range(12):
            if commit == 6:
                with table.transaction() as change:
                    change.set_properties({"write.metadata.metrics.column.part": "none"})
            ids = np.arange(400) * 12 + commit
            table.append(pa.table({"part": ids // 12 % 4, "id": ids}))
    return made


@pytest.fixture
def explorer(properties: dict[str, str]) -> Explorer:
    explorer = icestats.load("db.mixed", catalog=properties).explore()
    assert explorer.wait()
    return explorer


@pytest.fixture
def part(explorer: Explorer) -> Part:
    return explorer.parts["findings"]


def find_card(part: Part, words: str) -> dict:
    return next(block for block in find_blocks(part, "card") if words in block["title"])


def texts(card: dict) -> list[str]:
    return [block["text"] for block in card["blocks"]]


def test_what_sets_a_property_for_ever_comes_after_compaction(part: Part) -> None:
    titles = [block["title"] for block in find_blocks(part, "card")]
    places = [
        next(place for place, title in enumerate(titles) if words in title)
        for words in ("warning: Small files", "warning: Files without bounds of part")
    ]
    assert places == sorted(places)
    assert part.to_arrow()["severity"].to_pylist() == [title.partition(":")[0] for title in titles]
    assert part.document()["caption"].startswith(f"{len([t for t in titles if t.startswith('warning')])} warnings")


@pytest.mark.parametrize("is_of_spec", [True, False])
def test_what_is_advised_is_of_the_table_as_reload_has_read_it(
    catalog: SqlCatalog, catalog_properties: dict[str, str], is_of_spec: bool
) -> None:
    """Others change its partition spec, or set the property that is advised: no manifest is another one."""
    columns = [NestedField(1, "part", LongType(), required=False), NestedField(2, "id", LongType(), required=False)]
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "part"))
    table = catalog.create_table("db.overlapping", Schema(*columns), partition_spec=spec)
    for _ in range(4):
        table.append(pa.table({"part": list(range(9)), "id": list(range(9))}))
    explorer = icestats.load("db.overlapping", catalog=catalog_properties).explore()
    assert explorer.wait()
    part = explorer.parts["findings"]
    advised = [one["fix"] for one in part.to_arrow().to_pylist()]
    assert any("SET TBLPROPERTIES" in fix and "sort_by => array('part')" in fix for fix in advised)
    if is_of_spec:
        with table.update_spec() as change:
            change.remove_field("part")
    else:
        with table.transaction() as change:
            change.set_properties({"commit.manifest.target-size-bytes": "6000"})
    explorer.state.table = explorer.state.table.refresh()
    assert explorer.wait()
    fixes = [one.fix for one in explorer.state.table.layout().findings]
    assert [one["fix"] for one in part.to_arrow().to_pylist() if one["fix"].startswith(("ALTER", "CALL"))] == fixes
    assert not any("SET TBLPROPERTIES" in fix for fix in fixes)
    assert any("sort_by => array('part')" in fix for fix in fixes) is not is_of_spec


def test_each_opens_to_its_evidence_its_fix_and_its_cost(explorer: Explorer, part: Part) -> None:
    """One click; what is not known is said; what stays set is said."""
    small = find_card(part, "Small files")
    assert small["is_open"] is False
    part.act(f"{small['id']}.open", {"open": True})
    small = find_card(part, "Small files")
    assert small["is_open"] is True
    evidence, fix, cost = small["blocks"]
    assert "48 of 48 files" in evidence["text"]
    assert (fix["is"], fix["text"]) == ("code", "CALL `catalog`.system.rewrite_data_files(table => 'db.mixed')")
    size = sum(explorer.state.table.files()["file_size_in_bytes"].to_pylist())
    assert cost["text"].startswith("It rewrites up to 48 small files (")
    assert f"{size / 1000:.3g} kB" in cost["text"]
    assert "not known" in cost["text"]
    assert "stays set" in texts(find_card(part, "without bounds"))[2]
    manifests = explorer.state.manifests
    assert f"rewrites {manifests.num_rows} manifests" in texts(find_card(part, "Manifests overlap in part"))[3]
    part.act(f"{small['id']}.open", {"open": False})
    assert find_card(part, "Small files")["is_open"] is False


def test_missing_statistics_lead_to_where_they_are_computed(part: Part) -> None:
    """With what computing them reads."""
    card = find_card(part, "No statistics have been committed")
    assert texts(card)[1] == "table.compute().commit()"
    assert texts(card)[2].startswith("Reads 2 columns (")
    place = {"name": "statistics", "part": "statistics", "column": ""}
    assert [(one["action"], one["value"]) for one in card["actions"]] == [("page.tab", place)]


def test_no_findings_are_one_line(part: Part, explorer: Explorer) -> None:
    from dataclasses import replace

    state = explorer.state
    state.overview, state.layout_report = replace(state.overview, findings=()), None
    state.manifests = None
    document = part.document()
    assert (document["blocks"], document["caption"]) == ([], "No problems found, the layout is not checked yet.")


def test_a_table_whose_statistics_cannot_be_read_is_not_said_to_have_no_problems(
    catalog: SqlCatalog, catalog_properties: dict[str, str]
) -> None:
    """Once, whatever has asked for them."""
    rows = pa.table({"id": [1, 2]})
    table = catalog.create_table("db.t", rows.schema)
    table.append(rows)
    commit(table, blob(table, THETA, 1, b"theta", ndv="2"))
    (file,) = catalog.load_table("db.t").metadata.statistics
    local_path(file.statistics_path).unlink()
    explorer = icestats.load("db.t", catalog=catalog_properties).explore()
    for row_filter in ("", "id = 1"):
        explorer.state.row_filter = row_filter
        assert explorer.wait()
        cards = [one for one in find_blocks(explorer.parts["findings"], "card") if "are not used" in one["title"]]
        assert [file.statistics_path in " ".join(texts(card)) for card in cards] == [True]


def test_a_table_whose_manifests_cannot_be_read_is_not_said_to_have_no_problems(
    catalog: SqlCatalog, catalog_properties: dict[str, str]
) -> None:
    rows = pa.table({"id": [1, 2]})
    table = catalog.create_table("db.t", rows.schema)
    table.append(rows)
    commit(table, blob(table, THETA, 1, b"theta", ndv="2"))
    (manifest,) = table.current_snapshot().manifests(table.io)
    local_path(manifest.manifest_path).unlink()
    explorer = icestats.load("db.t", catalog=catalog_properties).explore()
    assert explorer.wait()
    document = explorer.parts["findings"].document()
    assert document["caption"] == ""
    assert [block["text"] for block in document["blocks"]] == [f"{manifest.manifest_path}: no such file"]


def test_a_layout_that_cannot_be_measured_again_leaves_nothing_of_the_one_before(
    catalog: SqlCatalog, catalog_properties: dict[str, str]
) -> None:
    """The roll-ups of its manifests are known, and one of them is gone."""
    columns = [NestedField(1, "part", LongType(), required=False), NestedField(2, "id", LongType(), required=False)]
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "part"))
    table = catalog.create_table("db.overlapping", Schema(*columns), partition_spec=spec)
    rows = pa.table({"part": list(range(9)), "id": list(range(9))})
    for _ in range(4):
        table.append(rows)
    explorer = icestats.load("db.overlapping", catalog=catalog_properties).explore()
    assert explorer.wait()
    part = explorer.parts["findings"]
    assert any("overlap" in block["title"] for block in find_blocks(part, "card"))
    table.overwrite(rows)
    explorer.state.table.refresh().manifests()
    gone = table.current_snapshot().manifests(table.io)[0].manifest_path
    local_path(gone).unlink()
    explorer.state.table = explorer.state.table.refresh()
    assert explorer.wait()
    assert explorer.state.manifests is not None
    assert part.document()["blocks"][0]["text"] == f"{gone}: no such file"
    assert not any("overlap" in block["title"] for block in find_blocks(part, "card"))


def test_a_table_of_many_columns_shows_the_first_findings(part: Part, explorer: Explorer) -> None:
    """The others are a click away."""
    from dataclasses import replace

    many = tuple(f"Finding {number}: <b>evidence</b>" for number in range(30))
    explorer.state.overview = replace(explorer.state.overview, findings=many)
    assert len(list(find_blocks(part, "card"))) == 8
    count = part.to_arrow().num_rows
    assert find_button(part, "findings.all")["label"] == f"Show all {count}"
    part.act("all", {})
    assert len(list(find_blocks(part, "card"))) == count


@pytest.mark.parametrize(
    ("verb", "value"), [("999.open", {"open": True}), ("0.open", 1), ("x.open", {}), ("_.open", None)]
)
def test_what_a_page_may_not_say_opens_nothing(part: Part, verb: str, value: object) -> None:
    part.act(verb, value)
    assert not any(block["is_open"] for block in find_blocks(part, "card"))


def test_a_finding_leads_to_what_it_is_about(explorer: Explorer, part: Part) -> None:
    """A button opens the tab and the part, unfolded; manifests that overlap most are named, as far as they are keys."""
    sent: list[dict] = []
    explorer.send = lambda message, *_: sent.append(message)  # type: ignore[method-assign]
    explorer.state.collapsed = frozenset({"sizes", "outline"})
    for words, tab, name in (("Small files", "layout", "sizes"), ("bounds of part", "layout", "outline")):
        show = find_card(part, words)["actions"][0]
        name_of_act, value = show["action"], show["value"]
        explorer._receive({"kind": "act", "action": name_of_act, "value": value, "view": "v", "number": 1})
        assert (explorer.state.tab, sent[-1]) == (tab, {"kind": "part", "part": name, "view": "v"})
        assert name not in explorer.state.collapsed
    assert explorer.state.column == "part"
    overlap = find_card(part, "Manifests overlap in part")
    assert overlap["actions"][0]["value"]["part"] == "manifests"
    named = next(text for text in texts(overlap) if "share one key" in text)
    paths = explorer.state.table.manifest_files()["manifest_path"].to_pylist()
    assert named.startswith(f"{len(paths)} manifests share one key: ")
    assert sum(path.rsplit("/", 1)[-1] in named for path in paths) == 6
    assert "and 6 more" in named
