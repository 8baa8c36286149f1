"""The benchmark of estimates: its questions, its truth and its report, without Spark and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from benchmarks.estimates import Asked, _ask_set
from benchmarks.estimates.data_sets import DataSet, build_planted
from benchmarks.estimates.duckdb_estimates import DuckDb
from benchmarks.estimates.error_report import Answer, build_report, find_losses, report_dependencies, summarize
from benchmarks.estimates.estimator import Cost
from benchmarks.estimates.iceberg_estimates import Kit, write_tables
from benchmarks.estimates.planted_rows import DEPENDENCIES
from benchmarks.estimates.questions import Condition, Question, Side, write_literal
from benchmarks.estimates.workload import FILTERS, JOIN, KINDS, PAIR, Workload, draw_workload

SEED = 3


@pytest.fixture(scope="module")
def planted() -> DataSet:
    return build_planted(5_000)


@pytest.fixture(scope="module")
def database(planted: DataSet, tmp_path_factory: pytest.TempPathFactory) -> DuckDb:
    return DuckDb(tmp_path_factory.mktemp("duckdb") / "planted.duckdb", planted)


@pytest.fixture(scope="module")
def workload(planted: DataSet, database: DuckDb) -> Workload:
    return draw_workload(planted, 100, 10, 9, SEED, database.count)


def test_the_same_seed_draws_the_same_questions(planted: DataSet, database: DuckDb, workload: Workload) -> None:
    again = draw_workload(build_planted(5_000), 100, 10, 9, SEED, database.count)
    assert (again.questions, again.actual) == (workload.questions, workload.actual)
    other = draw_workload(planted, 100, 10, 9, SEED + 1, database.count)
    assert other.questions != workload.questions


def test_every_kind_is_asked_and_no_answer_is_empty(workload: Workload) -> None:
    kinds = [question.kind for question in workload.questions]
    assert set(kinds) == set(KINDS)
    assert [kinds.count(kind) for kind in FILTERS] == list(FILTERS.values())
    assert min(workload.actual) > 0


def test_pairs_are_columns_that_depend_on_each_other(planted: DataSet, workload: Workload) -> None:
    found = [question.sides[0].conditions for question in workload.questions if question.kind == PAIR]
    assert all(tuple(one.column for one in conditions) in planted.pairs["planted"] for conditions in found)


def test_the_truth_is_counted(planted: DataSet, database: DuckDb) -> None:
    rows = planted.tables["planted"]
    city = rows["city"][0].as_py()
    question = Question("=", (Side("planted", (Condition("city", "=", (city,)),)),))
    assert database.count(question) == pc.sum(pc.equal(rows["city"], city)).as_py()
    joined = rows.select(["city"]).join(planted.tables["cities"], "city", "name", "inner")
    join = Question(JOIN, (Side("planted"), Side("cities")), ("city", "name"))
    assert database.count(join) == len(joined)
    groups = Question("GROUP BY", (Side("planted"),), groups=("city", "country"))
    assert database.count(groups) == len(rows.group_by(["city", "country"]).aggregate([]))


def test_planted_dependencies_hold_but_for_their_noise(planted: DataSet) -> None:
    rows = planted.tables["planted"]
    for one in DEPENDENCIES:
        counts = rows.group_by(list(one.columns)).aggregate([([], "count_all")])
        most = counts.group_by(one.columns[0]).aggregate([("count_all", "max")])["count_all_max"]
        broken = 1 - pc.sum(most).as_py() / len(rows)
        assert broken == pytest.approx(one.noise, abs=0.01)


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        ("O'Hare", ("'O''Hare'", "'O\\'Hare'", "'O''Hare'", "'O''Hare'")),
        (Decimal("1.50"), ("1.50", "1.50BD", "1.50", "1.50")),
        (2.5, ("2.5", "2.5D", "2.5", "2.5")),
        (date(2026, 1, 2), ("'2026-01-02'", *["date '2026-01-02'"] * 3)),
        (
            datetime(2026, 1, 2),
            ("'2026-01-02T00:00:00'", "timestamp_ntz '2026-01-02T00:00:00'", *["timestamp '2026-01-02T00:00:00'"] * 2),
        ),
    ],
)
def test_each_dialect_has_its_literals(value: object, texts: tuple[str, ...]) -> None:
    assert tuple(write_literal(value, dialect) for dialect in ("kit", "spark", "duckdb", "postgres")) == texts


def _answers(*estimates: dict[str, float | None]) -> list[Answer]:
    question = Question(JOIN, (Side("a"), Side("b")), ("x", "y"))
    return [Answer("s", question, 100, one) for one in estimates]


def test_q_errors_are_summed_up_and_unknown_ones_counted() -> None:
    found = summarize(_answers(*({"a": rows} for rows in (100.0, 50.0, 400.0, 0.0, None))), "a")
    assert (found.count, found.unknown, found.measures) == (5, 1, (2.0, 100.0, 100.0, 100.0))


def test_a_loss_is_to_one_who_is_better_and_answers_as_much() -> None:
    answers = _answers(
        {"icestats": 200.0, "exact": 100.0, "shy": 100.0}, {"icestats": 100.0, "exact": 100.0, "shy": None}
    )
    assert find_losses(answers, ("icestats", "shy")) == []
    losses = find_losses(answers, ("icestats", "shy", "exact"))
    assert losses == [(measure, 2.0, 1.0, "exact") for measure in ("90 %", "99 %", "worst")]


class _Half:
    name = "half"

    def __init__(self, workload: Workload) -> None:
        self._workload = workload

    def prepare(self, data: DataSet) -> Cost:
        return Cost(1_000, 0.0)

    def estimate(self, questions: Sequence[Question]) -> list[float | None]:
        return [rows / 2 for rows in self._workload.actual]


def test_the_report_compares_all_estimators(
    planted: DataSet, database: DuckDb, workload: Workload, tmp_path: Path
) -> None:
    write_tables(tmp_path, planted)

    def open_estimators() -> Iterator[Kit | DuckDb | _Half]:
        yield Kit(tmp_path, None)
        yield database
        yield _Half(workload)

    asked = Asked()
    _ask_set(asked, planted, workload, open_estimators())
    text = "\n".join(build_report(asked.answers, asked.costs))
    joins = [one for one in asked.answers if one.question.kind == JOIN]
    assert f"| join | half | {len(joins)} | 0 | 2.00 | 2.00 | 2.00 | 2.00 |" in text
    assert f"| join | **icestats** | {len(joins)} | {len(joins)} |  |  |  |  |" in text
    assert "| join | median | unknown | " in text
    nulls = [one for one in asked.answers if one.question.describe().endswith("is null")]
    assert nulls
    assert all(one.error("icestats") == pytest.approx(1.0) for one in nulls)
    assert "| half | 1 | 0.0 |" in text


def test_found_dependencies_are_counted(planted: DataSet) -> None:
    found = {"planted": (("country", "city"), ("shift", "machine"), ("product", "brand"))}
    text = report_dependencies(planted, found)
    assert "2 of 10 (20%) found. Independent, but found: shift and machine." in text
    assert "| city → country | 0% | yes |" in text
    assert "| brand → category | 0% | no |" in text
    assert "does not look for" in report_dependencies(planted, None)


def test_null_and_empty_text_differ_in_csv(tmp_path: Path) -> None:
    rows = pa.table({"t": ["", None, "\\N"], "n": pa.array([1, None, 3])})
    database = DuckDb(tmp_path / "d.duckdb", DataSet("s", {"s": rows}, (), {"s": ()}))
    database.write_csv("s", tmp_path / "s.csv")
    assert (tmp_path / "s.csv").read_text().splitlines() == ['"","1"', "\\N,\\N", '"\\N","3"']
