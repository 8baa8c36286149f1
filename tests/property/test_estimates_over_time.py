"""What is promised of a table holds whatever has happened to it: rows, deletes, schema, partitions, statistics."""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import parser
from pyiceberg.transforms import IdentityTransform

import icestats
from icestats.errors import IcestatsError
from icestats.iceberg.types import decode_value, encode_value
from icestats.spark import session
from icestats.stats.frequent_items import to_text
from tests.matched_rows import build_matcher, draw_filter
from tests.table_histories import FLOOR, NUMBER, PLACE, SMALL, STEPS, WHOLE, History, Row, Version, is_nan
from tests.written_deletes import list_data_files

NUMBERS = count()
FILTERS = 4
CUT = 256
"""Characters of a text that sketches keep."""
Holds = Callable[[Row], bool]


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlCatalog]:
    folder: Path = tmp_path_factory.mktemp("over_time")
    made = SqlCatalog("catalog", type="sql", uri=f"sqlite:///{folder / 'c.db'}", warehouse=f"file://{folder / 'w'}")
    made.create_namespace("db")

    def refuse(*_: Any, **__: Any) -> None:
        raise icestats.SparkUnavailableError("what only Spark can do is no step of a history")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "get_session", refuse)
        yield made
    made.close()


@settings(max_examples=max(12, 5 * int(os.environ.get("ICESTATS_FUZZ", "1"))))
@example(["evolve_spec", "append", "sketch", "compact", "compact"], "deduct", True, 0)
@example(["evolve_spec", "append", "sketch", "delete_by_value", "delete_by_value"], "deduct", True, 2)
@example(["delete_positions", "delete_by_value", "sketch"], "ignore", True, 0)
@example(["append", "delete_by_vector", "sketch", "delete_by_vector", "append", "refresh"], "deduct", True, 1)
@example(
    [
        *("sketch_partitions", "delete_positions", "append", "evolve_spec", "append", "delete_positions"),
        *("evolve_schema", "delete_by_vector"),
    ],
    "deduct", False, 2_881_190_581,
)  # fmt: skip
@given(
    st.lists(st.sampled_from(STEPS), min_size=2, max_size=9),
    st.sampled_from(["deduct", "deduct", "positions", "ignore"]),
    st.sampled_from([True, True, False]),
    st.integers(0, 2**32 - 1),
)
def test_promises_hold_whatever_has_happened(
    catalog: SqlCatalog, steps: list[str], deletes: str, is_whole: bool, seed: int
) -> None:
    """Bounds, proofs and exact figures, of the newest snapshot and of an older one, against the rows that are known."""
    history = live(catalog, steps, is_whole, seed)
    older = history.chance.choice(list(history.versions.values()))
    load = history.chance.choice([history.load, history.load_as_version_3])
    for table, version in ((load(), history.current()), (load(snapshot=older.snapshot_id), older)):
        check_filters(history, table, version, deletes, is_whole)
        check_columns(history, table, version)
        check_partitions(table, version)
        check_sketches(history, table, version)
        for ask in (table.sketches, table.coverage, table.overview, table.reported_statistics, table.layout):
            assert repr(ask())
        assert table.export(history.chance.choice(["hive", "impala", "spark", "trino"]), name="a.b")


def live(catalog: SqlCatalog, steps: list[str], is_whole: bool, seed: int) -> History:
    history = History.start(catalog, f"db.t{next(NUMBERS)}", random.Random(seed), WHOLE if is_whole else SMALL)
    for step in ["append", *steps]:
        history.run(step)
    return history


def build_holds(expression: Any, version: Version) -> Holds:
    columns, matches = version.columns(), build_matcher(expression, version.schema)
    return lambda row: matches(lambda name: row.read(columns[name]))


def check_filters(history: History, table: icestats.Table, version: Version, deletes: str, is_whole: bool) -> None:
    chance = history.chance
    pools = {name: history.pools.get(one.field_id, [0, 1, 20, 50]) for name, one in version.columns().items()}
    sources = {one.source_id for spec in history.table.specs().values() for one in spec.fields}
    favoured = sorted(name for name, one in version.columns().items() if one.field_id in sources)
    for number in range(FILTERS):
        expression = draw_filter(chance, version.schema, pools, favoured)
        holds = build_holds(expression, version)
        check_estimates(table, version, expression, holds, deletes, is_whole)
        check_plan(table, version, expression, holds, chance.choice([None, True, False]))
        if not number:
            check_counts(table, version, expression, holds)
            check_merged(history, table, version, expression, holds)
            check_join(history, table, version, expression, holds)


def check_estimates(
    table: icestats.Table,
    version: Version,
    expression: Any,
    holds: Holds,
    deletes: str = "deduct",
    is_whole: bool = True,
    sources: list[str] | None = None,
) -> None:
    """Bounds of every source hold the truth, as whole numbers, and `combined` lies within all that are certain."""
    truth = sum(map(holds, version.rows(deletes)))
    estimates = table.estimate(expression, deletes=deletes, sources=sources)
    said = f"{expression!r}: {truth} rows, deletes {deletes}\n{estimates!r}"
    certain = [one for one in estimates if one.bound.startswith("certain")]
    # Sketches that hold each value have bounds as certain as the others.
    for one in estimates if is_whole else certain:
        assert one.rows_lower is not None, f"{one.source}, {said}"
        assert one.rows_upper is not None, f"{one.source}, {said}"
        assert one.rows_lower <= truth <= one.rows_upper, f"{one.source}, {said}"
        assert one.rows_lower.is_integer(), f"{one.source}, {said}"
        assert one.rows_upper.is_integer(), f"{one.source}, {said}"
        assert one.rows is None or one.rows_lower <= one.rows <= one.rows_upper, f"{one.source}, {said}"
    combined = estimates["combined"]
    assert combined.rows_lower >= max(one.rows_lower for one in certain), said
    assert combined.rows_upper <= min(one.rows_upper for one in certain), said


def check_plan(
    table: icestats.Table, version: Version, expression: Any, holds: Holds, has_statistics: bool | None
) -> None:
    """Neither a file nor a row group with a matching row is skipped; what is proved of rows is right."""
    plan = table.plan(expression, row_groups=True, manifest_statistics=has_statistics)
    counts = {path: sum(row.is_live and holds(row) for row in rows) for path, rows in version.files.items()}
    matching = {path for path, rows in counts.items() if rows}
    said, groups = f"{expression!r}: {counts}\n{plan!r}", plan.row_groups()
    assert matching <= set(plan.kept_file_paths()), said
    assert matching <= set(groups.filter(groups["kept"])["file_path"].to_pylist()), said
    proved = [step.kept for step in plan.steps if step.unit == "row"]
    assert proved == [sum(counts.values())] * len(proved), said


def check_counts(table: icestats.Table, version: Version, expression: Any, holds: Holds) -> None:
    """What PyIceberg counts is what is known; it reads no equality deletes."""
    try:
        counted = table.plan(expression, rows=True).steps[-1].kept
    except (icestats.UnsupportedError, icestats.SparkUnavailableError):
        return
    assert counted == sum(map(holds, version.rows())), expression


def check_merged(history: History, table: icestats.Table, version: Version, expression: Any, holds: Holds) -> None:
    """The sketches of the partitions that a filter selects whole are of exactly the rows that it selects."""
    field = history.chance.choice([one for one in table.schema.top_level if one.is_primitive])
    try:
        merged = table.merge_partition_sketches(field.name, expression)
    except IcestatsError:
        return
    rows = [row for row in history.versions[merged.snapshot_id].rows() if holds(row)]
    values, said = [row.read(version.columns()[field.name]) for row in rows], f"{field.name}, {expression!r}, {merged}"
    nulls, nans = sum(value is None for value in values), sum(map(is_nan, values))
    assert (merged.value_count, merged.null_count, merged.nan_count) == (len(values), nulls, nans), said
    if merged.theta.is_exact:
        assert merged.theta.ndv == count_distinct(values), said


def check_join(history: History, table: icestats.Table, version: Version, expression: Any, holds: Holds) -> None:
    other = history.chance.choice(list(history.versions.values()))
    names = {one.name for one in other.schema.fields} & set(version.columns())
    column = version.columns()[history.chance.choice(sorted(names))]
    own, their = (schema.find_field(column.name) for schema in (version.schema, other.schema))
    if own.field_type != their.field_type:
        return
    pinned, counts = history.load(snapshot=other.snapshot_id), []
    for rows, key in ((filter(holds, version.rows()), own), (other.rows(), their)):
        values = [value for row in rows if (value := row.read(key)) is not None]
        counts.append(Counter("NaN" if is_nan(v) else v for v in values))
    truth = sum(rows * counts[1][key] for key, rows in counts[0].items())
    with_truth = not any(row.by_value for one in (version, other) for row in one.rows("ignore"))
    try:
        found = table.estimate_join(pinned, column.name, row_filter=expression, actual=with_truth)
    except icestats.UnsupportedError:
        return
    assert found.actual in (None, truth), f"{column.name}, {truth}\n{found!r}"
    for one in found:
        assert one.rows is None or one.rows >= 0, f"{found!r}"
        assert one.rows is not None or one.reason, f"{found!r}"
        assert one.rows_lower is None or one.rows_lower <= truth <= one.rows_upper, f"{truth}\n{found!r}"


@pytest.mark.parametrize(
    ("by_position", "by_value", "compacted"),
    [
        ([], [(1, {7}), (2, set(range(5_000, 5_050)))], None),
        ([(2, range(10))] * 3, [(1, set(range(10)))], None),
        ([(2, range(40))] * 2 + [(1, range(2, 5))], [(1, {1})], None),
        ([(2, range(20))], [(1, set(range(10)))], 2),
    ],
    ids=["by value, most of no row", "by position, each thrice", "by position, some twice", "of files that are gone"],
)
def test_bounds_hold_where_deletes_are_recorded_that_delete_nothing(
    catalog: SqlCatalog,
    by_position: list[tuple[int, range]],
    by_value: list[tuple[int, set[int]]],
    compacted: int | None,
) -> None:
    """Sketches then count so many rows that equality deletes seem to delete none; 10 of the first they do delete."""
    history = History.start(catalog, f"db.t{next(NUMBERS)}", random.Random(0))
    with history.table.update_spec() as update:
        for one in history.table.spec().fields:
            update.remove_field(one.name)
        update.add_field("small", IdentityTransform())
    small, large = (history.table.schema().find_field(name).field_id for name in ("small", "large"))
    filled = {PLACE: False, FLOOR: None}
    for value, first in ((1, 0), (2, 1_000)):
        one = filled | {small: value, large: 5 if value == 1 else 70}
        history.add([Row(one | {NUMBER: first + number}) for number in range(100)])
    files = {value: [file] for file in list_data_files(history.table) for value in file.partition if value in (1, 2)}
    for value, places in by_position:
        history.delete_at([(files[value][0], place) for place in places])
    if compacted is not None:
        history.replace(files[compacted])
    for value, numbers in by_value:
        history.delete_values(files[value], "number_", numbers)
    history.sketch(is_of_all=True)
    version, opened = history.current(), history.load()
    for expression in (
        "small = 1",
        "large = 5",
        "large > 40",
        "large = 30",
        "large is null",
        "small = 2",
        "small >= 2",
    ):
        holds = build_holds(parser.parse(expression), version)
        for sources in (None, ["combined"]):
            check_estimates(opened, version, expression, holds, sources=sources)


def store(kind: str, values: list[Any]) -> list[Any]:
    """Return what there is to compare, as the kit decodes it."""
    return [
        decode_value(kind, encode_value(kind, value)) for value in values if value is not None and not is_nan(value)
    ]


def count_distinct(values: list[Any]) -> int:
    """Theta leaves empty texts out; as text, -0.0 is not 0.0, and NaN is NaN."""
    return len({repr(value) for value in values if value is not None and value not in ("", b"")})


def measure(values: list[Any]) -> list[int]:
    return [len(value.encode() if isinstance(value, str) else value) for value in values if value is not None]


COUNTS: dict[str, Callable[[list[Any]], int]] = {
    "value_count": len,
    "null_value_count": lambda values: sum(value is None for value in values),
    "nan_value_count": lambda values: sum(map(is_nan, values)),
}
EXTREMES: dict[str, Callable[..., Any]] = {"lower_bound": min, "upper_bound": max}


def check_columns(history: History, table: icestats.Table, version: Version) -> None:
    """Each figure is what its provenance says: exact, a bound, or unknown; of live rows, or of all in the files."""
    for row in table.columns().to_pylist():
        column, words, kind = version.columns()[row["name"]], dict(row["provenance"]), row["type"]
        for name, value in row.items():
            if name in COUNTS or name in EXTREMES:
                of_live = "the live rows, this snapshot" in words[name]
                rows = version.rows("deduct" if of_live else "ignore")
                check_figure(name, value, words[name], kind, [one.read(column) for one in rows])
        then = {name: find_version(history, version, words[name]) for name in ("ndv", "avg_length", "max_length")}
        values = {name: [one.read(column) for one in rows] for name, rows in then.items()}
        if "so exact" in words["ndv"] and "cut from" not in words["ndv"]:
            assert row["ndv"] == count_distinct(values["ndv"]), f"{column}: {words['ndv']}"
        if None not in (row["ndv"], row["value_count"], row["null_value_count"]):
            assert row["ndv"] <= row["value_count"] - row["null_value_count"], f"{column}: {words['ndv']}"
        if row["max_length"] is not None:
            assert row["max_length"] == max(measure(values["max_length"])), f"{column}: {words['max_length']}"
            lengths = measure(values["avg_length"])
            assert row["avg_length"] == pytest.approx(sum(lengths) / len(lengths)), f"{column}: {words['avg_length']}"


def check_figure(name: str, value: Any, words: str, kind: str, values: list[Any]) -> None:
    said, known = f"{name} is {value}, {words}; of {values}", store(kind, values)
    if words.startswith(("unknown", "not applicable", "none")):
        assert value is None, said
        assert not known or not words.startswith("none"), said
    elif name in COUNTS:
        assert words.startswith("exact"), said
        assert value == COUNTS[name](values), said
    elif words.startswith("exact"):
        assert decode_value(kind, value) == EXTREMES[name](known), said
    elif not words.startswith("estimate"):
        assert words.startswith("bound"), said
        assert EXTREMES[name]([decode_value(kind, value), *known]) == decode_value(kind, value), said


def find_version(history: History, version: Version, words: str) -> list[Row]:
    """Return the live rows of the snapshot that a provenance names."""
    named = re.search(r"snapshot (\d+)", words)
    return (history.versions[int(named[1])] if named else version).rows()


def check_partitions(table: icestats.Table, version: Version) -> None:
    """Counts, bounds, distinct values and lengths of each partition, as far as they are known."""
    columns = {one.field_id: one for one in version.columns().values()}
    kinds = {one.field_id: one.type for one in table.schema.columns}
    by_partition: dict[Any, list[Row]] = {}
    for file in table.files().to_pylist():
        if file["content"] == "data":
            key = file["spec_id"], repr(file["partition"])
            by_partition.setdefault(key, []).extend(version.files[file["file_path"]])
    for row in table.partitions().to_pylist():
        rows = by_partition.pop((row["spec_id"], repr(row["partition"])), [])
        assert row["data_record_count"] == len(rows), row
        for name in (*COUNTS, *EXTREMES):
            for field_id, value in row[f"{name}s"] or ():
                # Those of uuids may be of writers that order them in another way.
                if value is not None and (name in COUNTS or kinds[field_id] != "uuid"):
                    words = "exact" if name in COUNTS else "bound"
                    values = [one.read(columns[field_id]) for one in rows]
                    check_figure(name, value, f"{words} in {row['partition']}", kinds[field_id], values)
        check_distinct(row, {i: [one.read(column) for one in rows if one.is_live] for i, column in columns.items()})
    assert not by_partition


def check_distinct(row: dict[str, Any], live: dict[int, list[Any]]) -> None:
    errors, ages = (dict(row[name] or ()) for name in ("ndv_relative_errors", "ndv_commits_behind"))
    for field_id, ndv in row["ndvs"] or ():
        assert ndv <= row["data_record_count"], row
        if not errors[field_id] and not ages[field_id]:
            # Of partitions the empty text counts too.
            assert ndv == len({repr(value) for value in live[field_id] if value is not None}), row
    for field_id, length in row["max_lengths"] or ():
        assert length == max(measure(live[field_id])), row
    for field_id, length in row["avg_lengths"] or ():
        assert abs(length - sum(measure(live[field_id])) / len(measure(live[field_id]))) <= 0.5, row


def check_sketches(history: History, table: icestats.Table, version: Version) -> None:
    """Histograms and common values are of the snapshot that they name; with every value kept, counts are right."""
    for field in table.schema.top_level:
        try:
            common = table.frequent_values(field.name).to_pylist()
        except IcestatsError:
            continue
        if not common:
            continue
        column = version.columns()[field.name]
        values = [row.read(column) for row in history.versions[common[0]["snapshot_id"]].rows()]
        known = [value for value in values if value is not None and not is_nan(value)]
        check_common(field.type, common, known)
        try:
            found = table.histogram(field.name, bins=7)
        except IcestatsError:
            continue
        said, ends = (
            f"{found} of {known}",
            [end[:CUT] if isinstance(end, str) else end for end in (min(known), max(known))],
        )
        counted = (found.n, found.null_count, found.nan_count)
        assert counted == (len(known), *(COUNTS[name](values) for name in ("null_value_count", "nan_value_count"))), (
            said
        )
        assert [found.edges[0], found.edges[-1]] == [found.quantiles[0.0], found.quantiles[1.0]] == ends, said
        assert sum(found.counts) == found.n, said
        if not found.rank_error and field.type != "string":
            bins = [sum(low <= value < high for value in known) for low, high in pairwise(found.edges)]
            assert list(found.counts[:-1]) == bins[:-1], said


def check_common(kind: str, common: list[dict[str, Any]], known: list[Any]) -> None:
    # 0.0 and -0.0 are one value.
    texts = Counter(
        to_text(kind, encode_value(kind, value or abs(value) if isinstance(value, float) else value)) for value in known
    )
    for item in common:
        text = item["value"]
        cut = text is not None and text.endswith("…") and text not in texts
        rows = sum(rows for one, rows in texts.items() if one == text or (cut and one.startswith(text[:-1])))
        assert text is None or item["rows_at_least"] <= rows <= item["rows_at_most"], f"{item} of {texts}"
    listed = {item["value"] for item in common}
    others = [rows for text, rows in texts.items() if text not in listed and text[:CUT] + "…" not in listed]
    most = max([item["rows_at_most"] for item in common if item["value"] is None], default=0)
    assert max(others, default=0) <= most, f"{common} of {texts}"
