"""Spark: the sums of the four maps over Iceberg's metadata table `data_files`, in one scan; no bounds."""

from __future__ import annotations

from typing import Any

from benchmarks.peers.reporting import argument, group_sums, report
from icestats.read.manifests.manifest_pool import default_threads
from icestats.spark.session import get_session, stop_session

# One scan: a union of four queries reads the manifests four times.
_QUERY = """
    select map_name, field_id, sum(value), count(*)
    from data_files
    lateral view stack(4,
        'column_sizes', column_sizes,
        'value_counts', value_counts,
        'null_value_counts', null_value_counts,
        'nan_value_counts', nan_value_counts
    ) as map_name, entries
    lateral view explode(entries) as field_id, value
    group by map_name, field_id
"""


def main() -> None:
    session = get_session(master=f"local[{default_threads()}]", driver_memory="4g")
    session.range(1).collect()

    def read() -> list[Any]:
        session.read.format("iceberg").load(f"{argument()}#data_files").createOrReplaceTempView("data_files")
        return session.sql(_QUERY).collect()

    report(read, group_sums)
    stop_session()


if __name__ == "__main__":
    main()
