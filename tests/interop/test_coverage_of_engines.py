"""What `coverage` says of an engine is what the engine shows."""

from __future__ import annotations

STATISTICS = {
    "NDV": "ndv",
    "nulls fraction": "nulls_fraction",
    "min value": "low",
    "max value": "high",
    "size in bytes": "size_bytes",
}
"""The figures of SHOW STATS by the names of `coverage`."""


def test_show_stats_has_what_coverage_says(lake, orders):
    """SHOW STATS has the statistics that `coverage` says the engine reads, before a commit and after it."""
    lake.create("orders", orders)
    before = read_coverage(lake)
    assert before == read_figures(lake)
    lake.open("orders").compute().commit()
    lake.tell_engine("orders")
    after = read_coverage(lake)
    assert after == read_figures(lake)
    assert after > before


def read_coverage(lake):
    engine = lake.server.engine
    rows = [row for row in lake.open("orders").coverage().to_pylist() if row["engine"] == engine.name]
    assert {row["engine_version"] for row in rows} == {engine.version}
    columns = [row for row in rows if row["level"] == "table-column" and row["statistic"] in STATISTICS]
    return {(row["column"], row["statistic"]) for row in columns if row["read_by_engine"]}


def read_figures(lake):
    _, figures = lake.show_stats("orders")
    known = {column: seen._asdict() for column, seen in figures.items()}
    return {
        (c, statistic) for c, seen in known.items() for statistic, name in STATISTICS.items() if seen[name] is not None
    }
