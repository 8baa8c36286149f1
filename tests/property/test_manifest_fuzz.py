"""Damaged manifests: always a MetadataError or an answer, never anything else."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icestats.errors import MetadataError
from icestats.read.manifests.manifests import read_files, read_rollups
from tests.small_manifests import MANIFEST, METADATA, WHOLE, Memory

FUZZ = int(os.environ.get("ICESTATS_FUZZ", "1"))
"""How many times the usual number of damaged files: `make fuzz`."""


def damage(data: bytes, rng: random.Random) -> bytes:
    """Flip, cut, insert or repeat a few bytes, more often behind the header."""
    damaged = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        at = rng.randrange(len(damaged)) if rng.random() < 0.3 else rng.randrange(len(damaged) // 3, len(damaged))
        kind = rng.randrange(5)
        if kind == 0:
            damaged[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            damaged[at] = rng.choice([0, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        elif kind == 2:
            del damaged[at : at + rng.choice([1, 2, 9, len(damaged)])]
        elif kind == 3:
            damaged[at:at] = rng.choice([b"\xff" * 9 + b"\x01", b"\x80" * 12, rng.randbytes(5)])
        else:
            damaged[at:at] = damaged[at : at + rng.randrange(1, 200)]
        if not damaged:
            break
    return bytes(damaged)


def attempt(read: Callable[[], Any], size: int) -> Any:
    """An answer, or None for the one error that there may be."""
    try:
        return read()
    except MetadataError as error:
        found = error
    assert found.path == "m.avro"
    assert found.offset is None or 0 <= found.offset <= size
    return None


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """No example is to wait until the kernels are compiled."""
    storage = Memory(WHOLE["null"])
    read_rollups([MANIFEST], METADATA, storage, threads=1)
    read_files([MANIFEST], METADATA, storage, (1, 2, 3, 4), threads=1)


@settings(max_examples=400 * FUZZ)
@given(st.sampled_from(sorted(WHOLE)), st.integers(0, 2**32 - 1))
def test_damage_is_an_error_or_an_answer(codec: str, seed: int) -> None:
    """Whatever is flipped, cut or inserted: MetadataError with the path, or tables that are valid and agree."""
    storage = Memory(damage(WHOLE[codec], random.Random(seed)))
    size = len(storage.data)
    rollups = attempt(lambda: read_rollups([MANIFEST], METADATA, storage, threads=1), size)
    files = attempt(lambda: read_files([MANIFEST], METADATA, storage, (1, 2, 3, 4), threads=1), size)
    if rollups is not None:
        for table in (rollups.manifest_cells, rollups.partitions, rollups.partition_cells, rollups.table_cells):
            table.validate(full=True)
    if files is not None:
        files.validate(full=True)
    if rollups is not None and files is not None:
        assert rollups.manifests["live_file_count"].to_pylist() == [files.num_rows]
        assert sum(rollups.manifests["record_count"].to_pylist()) == sum(files["record_count"].to_pylist())


@pytest.mark.parametrize("codec", sorted(WHOLE))
def test_every_cut_is_noticed(codec: str) -> None:
    """A manifest shorter than the manifest list says is an error, wherever it is cut."""
    data = WHOLE[codec]
    manifest = replace(MANIFEST, length=len(data))
    for length in range(0, len(data), 97):
        with pytest.raises(MetadataError):
            read_rollups([manifest], METADATA, Memory(data[:length]), threads=1)


@pytest.mark.parametrize("codec", sorted(WHOLE))
def test_the_whole_files_are_read(codec: str) -> None:
    """Without damage there is an answer: the tests above do not pass because everything fails."""
    rollups = read_rollups([MANIFEST], METADATA, Memory(WHOLE[codec]), threads=1)
    assert rollups.manifests["live_file_count"].to_pylist() == [27]
