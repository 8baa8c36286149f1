"""The floor: inflating the blocks of all data manifests, from memory, with as many threads as there are processors."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import fastavro
from deflate import deflate_decompress

from benchmarks.peers.reporting import argument, report
from benchmarks.peers.table_location import manifest_list_path
from icestats.read.avro.avro_file import SYNC_SIZE, read_header
from icestats.read.manifests.manifest_pool import default_threads

Blocks = list[tuple[memoryview, int]]
"""Deflated blocks, each with the size that it inflates to, in bytes."""
_ROOM = 1 << 24


def read_blocks(path: str) -> Blocks:
    data = memoryview(Path(path).read_bytes())
    place, blocks = read_header(bytes(data[: 1 << 16]), path).size_bytes, []
    while place < len(data):
        _, place = _read_long(data, place)
        size, place = _read_long(data, place)
        block = data[place : place + size]
        blocks.append((block, len(deflate_decompress(block, _ROOM))))
        place += size + SYNC_SIZE
    return blocks


def inflate(blocks: Blocks) -> int:
    return sum(len(deflate_decompress(data, size)) for data, size in blocks)


def _read_long(data: memoryview, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value >> 1, place
        shift += 7


def main() -> None:
    with Path(manifest_list_path(argument())).open("rb") as file:
        manifest_files: list[Any] = list(fastavro.reader(file))
    paths = [manifest["manifest_path"] for manifest in manifest_files if manifest["content"] == 0]
    manifests = [read_blocks(path) for path in paths]

    def run() -> int:
        with ThreadPoolExecutor(default_threads()) as pool:
            return sum(pool.map(inflate, manifests))

    report(run)


if __name__ == "__main__":
    main()
