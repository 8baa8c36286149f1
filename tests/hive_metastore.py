"""A Hive metastore from Spark's own jars (Hive 2.3, on Derby), in a process of its own."""

from __future__ import annotations

import contextlib
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from icestats.spark.java import find_java

JARS = Path(pyspark.__file__).parent / "jars"
# What a commit to an Iceberg table takes locks in. The metastore makes its other tables by itself, and these by Hive's
# `schematool`, of which Spark has no scripts.
LOCK_TABLES = """
create table txns (txn_id bigint primary key, txn_state char(1) not null, txn_started bigint not null,
  txn_last_heartbeat bigint not null, txn_user varchar(128) not null, txn_host varchar(128) not null);
create table txn_components (tc_txnid bigint references txns (txn_id), tc_database varchar(128) not null,
  tc_table varchar(128), tc_partition varchar(767), tc_operation_type char(1) not null);
create table next_txn_id (ntxn_next bigint not null);
insert into next_txn_id values (1);
create table hive_locks (hl_lock_ext_id bigint not null, hl_lock_int_id bigint not null, hl_txnid bigint,
  hl_db varchar(128) not null, hl_table varchar(128), hl_partition varchar(767), hl_lock_state char(1) not null,
  hl_lock_type char(1) not null, hl_last_heartbeat bigint not null, hl_acquired_at bigint,
  hl_user varchar(128) not null, hl_host varchar(128) not null, hl_heartbeat_count integer,
  hl_agent_info varchar(128), hl_blockedby_ext_id bigint, hl_blockedby_int_id bigint,
  primary key (hl_lock_ext_id, hl_lock_int_id));
create table next_lock_id (nl_next bigint not null);
insert into next_lock_id values (1);
create table aux_table (mt_key1 varchar(128) not null, mt_key2 bigint not null, mt_comment varchar(255),
  primary key (mt_key1, mt_key2));
"""
# Derby's own console is not among the jars of Spark 3.5.
RUN_STATEMENTS = """
import java.nio.file.*;
import java.sql.*;

class RunStatements {
  public static void main(String[] arguments) throws Exception {
    try (Connection connection = DriverManager.getConnection(arguments[0], "APP", "mine");
        Statement statement = connection.createStatement()) {
      for (String text : Files.readString(Path.of(arguments[1])).split(";")) {
        if (!text.isBlank()) statement.execute(text);
      }
    }
  }
}
"""


@contextmanager
def run_metastore(folder: Path) -> Iterator[str]:
    """Run a metastore, with its database and log in a folder; gives its address, and ends it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    database = f"jdbc:derby:{folder / 'database'};create=true"
    program, script = folder / "RunStatements.java", folder / "locks.sql"
    program.write_text(RUN_STATEMENTS)
    script.write_text(LOCK_TABLES)
    settings = {
        "javax.jdo.option.ConnectionURL": database,
        "datanucleus.schema.autoCreateAll": "true",
        "datanucleus.connectionPoolingType": "HikariCP",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.warehouse.dir": folder.as_uri(),
        "hive.async.log.enabled": "false",
        "derby.system.home": str(folder),
        "java.io.tmpdir": str(folder),
    }
    options = ["-Xmx512m", "-XX:TieredStopAtLevel=1", *(f"-D{name}={value}" for name, value in settings.items())]
    java = [str(find_java().home / "bin" / "java"), "-cp", str(JARS / "*"), *options]
    made = subprocess.run([*java, program, database, script], capture_output=True, text=True, check=False, timeout=300)
    assert made.returncode == 0, made.stderr
    log = folder / "out"
    with log.open("w") as out:
        process = subprocess.Popen(
            [*java, "org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(port)], stdout=out, stderr=out
        )
    try:
        while process.poll() is None and not _answers(port):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.2)
        assert process.poll() is None, log.read_text()
        yield f"thrift://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def _answers(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0
