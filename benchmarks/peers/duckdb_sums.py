"""DuckDB: the sums of the four maps over `read_avro` of the data manifests, in one scan; no bounds."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import duckdb
from duckdb_extensions import import_extension

from benchmarks.peers.reporting import MAPS, argument, group_sums, report
from benchmarks.peers.table_location import manifest_list_path

# One list of all entries, the map's number in the last two bits of its keys: DuckDB has no unnest of several maps in
# one scan, and a union of four queries reads the manifests four times.
_MACRO = """
    create macro tagged(entries, number) as
    coalesce(list_transform(map_entries(entries), lambda e: {'key': e.key * 4 + number, 'value': e.value}), [])
"""
_QUERY = """
    select entry.key % 4, entry.key // 4, sum(entry.value), count(*)
    from (
        select unnest(
            tagged(data_file.column_sizes, 0) || tagged(data_file.value_counts, 1)
            || tagged(data_file.null_value_counts, 2) || tagged(data_file.nan_value_counts, 3)
        ) as entry
        from read_avro(getvariable('manifests'))
        where status <> 2
    )
    group by all
"""


def main() -> None:
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as folder:
        connection = duckdb.connect(config={"threads": threads, "extension_directory": folder})
        import_extension("avro", con=connection)
        connection.load_extension("avro")
        connection.execute(_MACRO)

        def read() -> list[Any]:
            found = connection.execute(
                "select manifest_path from read_avro(?) where content = 0", [manifest_list_path(argument())]
            )
            connection.execute("set variable manifests = ?", [[path for (path,) in found.fetchall()]])
            return connection.execute(_QUERY).fetchall()

        report(read, lambda rows: group_sums((MAPS[number], *row) for number, *row in rows))


if __name__ == "__main__":
    main()
