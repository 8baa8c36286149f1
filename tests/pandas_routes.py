"""A process of its own that reads, plans and estimates tables: `pandas_routes.py [--pandas] LOCATION FILTER ...`.

Prints one JSON object: which of pandas' modules were imported on the way, and all answers as text.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

_TIMES = ("duration_ms", "read_ms")


def read(table: Any) -> Iterator[Any]:
    """What is read of the manifest list and of manifests."""
    yield from (table.manifest_files(), table.manifests(), table.partitions(), table.columns())
    yield table.files(columns=[field.name for field in table.schema.columns])
    yield table.sketches()
    if table.snapshot and table.snapshot.snapshot_id in {f.snapshot_id for f in table.metadata.partition_statistics}:
        yield table.partition_statistics()
    yield from (repr(table), table._repr_html_())


def plan(table: Any, row_filter: str) -> Iterator[Any]:
    """What a filter leaves, and why; and how the table lies."""
    found = table.plan(row_filter)
    yield from (found.manifests(), found.files("all"), found.kept_file_paths(), found.to_json("skipped"))
    yield from (found.partition_filters, found.unprojected, table.files(row_filter=row_filter))
    assert repr(found)
    assert found._repr_html_()
    layout = table.layout()
    yield from (repr(layout), layout.to_arrow(), layout.to_json())
    column = next(field.name for field in table.schema.top_level if field.is_primitive)
    yield from (layout.what_if([row_filter], sort_by=column).to_arrow(), table.rewrite_manifests().to_arrow())


def estimate(table: Any, row_filter: str) -> Iterator[Any]:
    """What each source of statistics says of a filter's rows."""
    for deletes in ("deduct", "ignore"):
        found = table.estimate(row_filter, deletes=deletes)
        yield from (found.to_arrow(), found.to_json())
        assert repr(found)


def untimed(answer: Any) -> str:
    """An answer as text, without how long it took."""
    if hasattr(answer, "to_pylist"):
        kept = [name for name in answer.column_names if name not in _TIMES]
        return f"{answer.schema} {answer.select(kept).to_pylist()}"
    if isinstance(answer, dict):
        return str({key: untimed(value) for key, value in answer.items() if key not in _TIMES})
    return str([untimed(one) for one in answer]) if isinstance(answer, list) else str(answer)


def main(arguments: list[str]) -> None:
    """Answer everything, and only then look at it: to show a timestamp of a zone is to import pandas."""
    if arguments[0] == "--pandas":
        import pandas  # noqa: F401

        arguments = arguments[1:]
    import icestats

    answers: list[Any] = []
    for location, row_filter in zip(arguments[::2], arguments[1::2], strict=True):
        table = icestats.load(location)
        for route in (read(table), plan(table, row_filter), estimate(table, row_filter)):
            answers.extend(route)
    imported = sorted(name for name in sys.modules if name.split(".")[0] == "pandas")
    print(json.dumps({"pandas": imported[:3], "answers": [untimed(answer) for answer in answers]}))  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
