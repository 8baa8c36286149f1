"""A mistake of each kind, planted into the kit's own functions, is reported by one of the first seeds."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import icestats
from icestats.commit import (
    entries,
    orphans,
    puffin_writer,
    registration,
    statistics_commit,
    statistics_removal,
    table_state,
)
from icestats.iceberg.catalog import load_iceberg_table
from icestats.stats.column_accumulator import ColumnAccumulator
from icestats.table import writers as table_writers
from tests.simulation.simulation import run_seed

MOST_SEEDS = 100


def assert_found(what):
    """Let seeds run until one breaks a rule, and compare what it says."""
    said = next((text for seed in range(MOST_SEEDS) for text in run_seed(seed).violations), "no seed broke a rule")
    assert re.search(what, said), said


def test_a_lost_update(monkeypatch):
    monkeypatch.setattr(entries._AssertEntries, "validate", lambda self, base_metadata: None)
    assert_found(r"has lost|lost by|unseen|unknown snapshot")


def test_an_update_lost_by_a_plan_that_is_not_made_anew(monkeypatch):
    def renew(plan, *, first):
        table = registration.reload_with_snapshot(plan.table, plan.snapshot_id)
        path = table_state.new_metadata_path(table, f"{plan.snapshot_id}-", ".stats")
        return replace(plan, table=table, after=plan.after if first else replace(plan.after, statistics_path=path))

    monkeypatch.setattr(statistics_commit, "_renew", renew)
    assert_found(r"has lost")


def test_an_update_lost_by_a_removal(monkeypatch):
    validate = entries._AssertEntries.validate

    def validate_new(self, base):
        kept = tuple(one for one in self.expected if one[-1])
        validate(self.model_copy(update={"expected": kept}), base)

    monkeypatch.setattr(entries._AssertEntries, "validate", validate_new)
    monkeypatch.setattr(statistics_removal, "_is_present", lambda table, removal: True)
    assert_found(r"remove statistics .*unseen")


def test_half_a_commit(monkeypatch):
    whole = registration.commit_changes

    def commit_each(table, changes, schema_id=None):
        for change in changes:
            whole(table, [change], schema_id)

    monkeypatch.setattr(registration, "commit_changes", commit_each)
    assert_found(r"is 2 commits")


def test_half_a_removal(monkeypatch):
    whole = statistics_removal.commit_entries

    def commit_each(table, changes, left, paths=(), schema_id=None):
        return [whole(table, [change], left, paths, schema_id) for change in changes][-1]

    monkeypatch.setattr(statistics_removal, "commit_entries", commit_each)
    assert_found(r"is 2 commits")


def test_a_file_is_removed_that_is_referred_to(monkeypatch):
    find = orphans.find_orphans

    def find_more(table):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(orphans, "referred_names", lambda metadata: set())
            return find(table)

    monkeypatch.setattr(orphans, "find_orphans", find_more)
    monkeypatch.setattr("tests.simulation.invariants._check_orphans", lambda sim, version: None)
    assert_found(r"deletes .*, which the table refers to")


def test_orphans_that_are_not_reported(monkeypatch):
    monkeypatch.setattr(orphans, "_kind", lambda name: orphans.TABLE_STATISTICS if name.endswith(".stats") else "")
    assert_found(r"orphans reported")


def test_a_file_is_removed_before_its_time(monkeypatch):
    monkeypatch.setattr(orphans, "_reason_to_keep", lambda *arguments, **options: None)
    assert_found(r"deletes .*, which (is being committed|the table refer)")


def test_a_wrong_figure(monkeypatch):
    right = ColumnAccumulator.result

    def count_one_more(self, **options):
        found = right(self, **options)
        return replace(found, null_value_count=found.null_value_count + 1)

    monkeypatch.setattr(ColumnAccumulator, "result", count_one_more)
    assert_found(r"wrong figure in .*stats")


def test_a_blob_that_blinds_presto(monkeypatch):
    monkeypatch.setattr(puffin_writer, "hides", lambda blob: False)
    assert_found(r"engines see the blob 'icestats-manifest-stats-v1'")


def test_a_file_that_is_cut(monkeypatch):
    write = registration.write_file
    monkeypatch.setattr(
        registration, "write_file", lambda table, path, data, on_open: write(table, path, data[:-1], on_open)
    )
    assert_found(r"the registered .* is cut")


def test_a_file_that_is_left_in_silence(monkeypatch):
    monkeypatch.setattr(registration, "_discard", lambda *arguments: "what was written is removed")
    assert_found(r"leaves .* and does not say so")


def test_an_error_of_the_storage_that_comes_through(monkeypatch):
    def read(self, location, offset=0, length=None):
        with self._io.new_input(location).open() as stream:
            stream.seek(offset)
            return bytes(stream.read() if length is None else stream.read(length))

    monkeypatch.setattr(table_state.TableFiles, "read", read)
    assert_found(r"raised (OSError|PermissionError|TimeoutError|ConnectionResetError)")


def test_rows_that_are_written_twice(monkeypatch):
    write = table_writers._write

    def write_again(table, change):
        write(table, change)
        return write(table, change)

    monkeypatch.setattr(table_writers, "_write", write_again)
    assert_found(r"rows of .* too many \[\(|has written its rows and said")


def test_reading_that_writes(monkeypatch):
    read = icestats.Table.manifests

    def write_and_read(self):
        table = load_iceberg_table(self._source)
        with table.io.new_output(f"{table.location()}/metadata/read.cache").create(overwrite=True) as stream:
            stream.write(b"read")
        return read(self)

    monkeypatch.setattr(icestats.Table, "manifests", write_and_read)
    assert_found(r"read manifests creates|reading has changed the table")
