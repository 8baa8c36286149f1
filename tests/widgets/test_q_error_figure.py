from __future__ import annotations

import pyarrow as pa
import pytest

from icestats.answers.schemas import WORKLOAD
from icestats_widgets.q_error_figure import build_q_error_figure


def workload(*rows: tuple[str, str, float | None, float | None]) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {"row_filter": text, "actual": 10, "source": source, "rows": rows_, "q_error": error, "reason": ""}
            for text, source, rows_, error in rows
        ],
        schema=WORKLOAD,
    )


def test_every_answer_is_a_point_and_every_unknown_is_counted() -> None:
    """What a source answers is drawn, what it cannot answer is said beside it, and nothing is drawn as 0."""
    figure = build_q_error_figure(
        workload(("a < 1", "kll", 10.0, 1.0), ("b < 1", "kll", 30.0, 3.0), ("a < 1", "ndv", None, None))
    )
    boxes, unknown = figure.data
    assert list(boxes.x) == [1.0, 3.0]
    assert list(boxes.y) == ["kll", "kll"]
    assert list(unknown.y) == ["kll", "ndv"]
    assert list(unknown.x) == [0.0, 1.0]
    assert figure.layout.xaxis.type == "log"


def test_a_filter_is_no_markup() -> None:
    """What a filter holds is shown as it is."""
    figure = build_q_error_figure(workload(("name = '<b>x</b>'", "kll", 1.0, 10.0)))
    assert "<b>" not in figure.data[0].text[0]


@pytest.mark.parametrize("rows", [(), (("a < 1", "ndv", None, None),)])
def test_it_draws_a_workload_without_answers(rows) -> None:
    """No answers at all are a figure without points."""
    figure = build_q_error_figure(workload(*rows))
    assert list(figure.data[0].x) == []
    assert len(figure.data[1].y) == len(rows)
