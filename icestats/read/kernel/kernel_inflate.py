"""The kernel's inflating: many deflated blocks in one call, which holds no lock of the interpreter between them."""

from __future__ import annotations

from icestats.read.kernel.compiling import call_address, compiled
from icestats.read.kernel.kernel_layout import Integer, Words

# Words of `library`, whose last libdeflate writes: how long the block is that it has inflated.
INFLATE, DECOMPRESSOR, ROOM, ROOM_SIZE, PRODUCED_AT, PRODUCED = range(6)


@compiled
def inflate_blocks(data: Integer, places: Words, least: Integer, library: Words, blocks: Words) -> Integer:
    """Inflate blocks, one behind the other, until they have `least` bytes together.

    Parameters
    ----------
    data : int
        The address of the file's bytes.
    places : numpy.ndarray of int64
        For each block where it begins in the file, where its data begin and end, and its number of entries.
    least : int
        In bytes.
    library : numpy.ndarray of int64
        The addresses of libdeflate's function, its decompressor, the room, the room's length in bytes, and the address
        of the last word.
    blocks : numpy.ndarray of int64
        Takes for each block where it begins and ends in the room, and its number of entries.

    Returns
    -------
    int
        How many were inflated: fewer, or none, where one is damaged or larger than the room that is left, or has more
        entries than bytes.
    """
    used, number = 0, 0
    while number < places.shape[0] and used < least:
        place = places[number]
        result = call_address(
            library[INFLATE],
            library[DECOMPRESSOR],
            data + place[1],
            place[2] - place[1],
            library[ROOM] + used,
            library[ROOM_SIZE] - used,
            library[PRODUCED_AT],
        )
        size = library[PRODUCED]
        if result != 0 or place[3] > size:
            break
        blocks[number, 0] = used
        blocks[number, 1] = used + size
        blocks[number, 2] = place[3]
        used += size
        number += 1
    return number
