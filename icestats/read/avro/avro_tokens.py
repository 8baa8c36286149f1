"""Avro's binary encoding, many values at a time: each is a token, a number of variable length and the bytes behind it.

NumPy only: numba takes longer to import than a few megabytes take to decode. Source: Avro 1.12 specification, "Binary
Encoding".
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from icestats.read.avro.avro_file import read_long

Octets = npt.NDArray[np.uint8]
Words = npt.NDArray[np.int64]

LONGEST = 10
"""Bytes of the longest number."""
_STOPS = np.uint64(0x8080_8080_8080_8080)
# Septets are brought together two at a time, then four, then eight: what stays, what moves, and by how many bits.
_JOINS = (
    (np.uint64(0x007F_007F_007F_007F), np.uint64(0x7F00_7F00_7F00_7F00), np.uint64(1)),
    (np.uint64(0x0000_3FFF_0000_3FFF), np.uint64(0x3FFF_0000_3FFF_0000), np.uint64(2)),
    (np.uint64(0x0000_0000_0FFF_FFFF), np.uint64(0x0FFF_FFFF_0000_0000), np.uint64(4)),
)


def encode_tokens(numbers: Words, lengths: Words, places: Words, pool: Octets) -> tuple[Octets, Words]:
    """Encode tokens one behind the other.

    Parameters
    ----------
    numbers : numpy.ndarray of int64
        The number of each token; of a string or of bytes, their length.
    lengths : numpy.ndarray of int64
        How many bytes stand behind each number: 0 where the token is just a number.
    places : numpy.ndarray of int64
        Where in `pool` these bytes begin; meaningless where there are none.
    pool : numpy.ndarray of uint8
        Where the bytes are.

    Returns
    -------
    data : numpy.ndarray of uint8
        The tokens.
    ends : numpy.ndarray of int64
        Where each token ends.

    Examples
    --------
    >>> pool = np.frombuffer(b"..ab", np.uint8)
    >>> data, ends = encode_tokens(np.array([-1, 2, 300]), np.array([0, 2, 0]), np.array([0, 2, 0]), pool)
    >>> data.tobytes().hex(), ends.tolist()
    ('01046162d804', [1, 4, 6])
    """
    words = ((numbers << 1) ^ (numbers >> 63)).astype(np.uint64)
    sizes = lengths + 1
    chosen, rest = _longer(np.arange(len(words)), words)
    septets = []
    while chosen.size:
        sizes[chosen] += 1
        septets.append((chosen, rest & np.uint64(0x7F)))
        chosen, rest = _longer(chosen, rest)
    ends = np.cumsum(sizes)
    starts = ends - sizes
    data: Octets = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
    data[starts] = words & np.uint64(0x7F)
    for place, (chosen, septet) in enumerate(septets, 1):
        at = starts[chosen] + place
        data[at] = septet
        data[at - 1] |= np.uint8(0x80)
    behind = np.flatnonzero(lengths)
    counts = lengths[behind]
    data[expand_ranges(ends[behind] - counts, counts)] = pool[expand_ranges(places[behind], counts)]
    return data, ends


def _longer(chosen: Words, words: npt.NDArray[np.uint64]) -> tuple[Words, npt.NDArray[np.uint64]]:
    rest = words >> np.uint64(7)
    more = np.flatnonzero(rest)
    return chosen[more], rest[more]


def decode_numbers(data: Octets, starts: Words) -> tuple[Words, Words]:
    """Decode the numbers that begin at some places.

    Parameters
    ----------
    data : numpy.ndarray of uint8
        With `LONGEST` bytes at least behind the last place.
    starts : numpy.ndarray of int64
        The places.

    Returns
    -------
    numbers : numpy.ndarray of int64
        The numbers.
    ends : numpy.ndarray of int64
        Where each ends.

    Raises
    ------
    EOFError
        A number has more than `LONGEST` bytes.
    OverflowError
        A number has more than 64 bits.

    Examples
    --------
    >>> data = np.frombuffer(bytes.fromhex("01d804") + bytes(LONGEST), np.uint8)
    >>> [found.tolist() for found in decode_numbers(data, np.array([0, 1]))]
    [[-1, 300], [1, 3]]
    """
    words = data[starts].astype(np.int64)
    ends = starts + 1
    numbers = (words >> 1) ^ -(words & 1)
    longer = np.nonzero(words >= 0x80)
    if longer[0].size:
        numbers[longer], ends[longer] = _decode_longer(data, starts[longer])
    return numbers, ends


def _decode_longer(data: Octets, starts: Words) -> tuple[Words, Words]:
    windows: npt.NDArray[np.uint64] = np.ndarray((len(data) - 7,), "<u8", data, strides=(1,))
    words = windows[starts]
    stops = ~words & _STOPS
    first = stops & (~stops + np.uint64(1))
    # The exponent of the first byte's bit that stops the number: 8, 16, ... 64.
    ends = starts + np.frexp(first.astype(np.float64))[1] // 8
    words &= first - np.uint64(1)
    for stays, moves, by in _JOINS:
        words = (words & stays) | ((words & moves) >> by)
    numbers = (words >> np.uint64(1)).astype(np.int64) ^ -(words & np.uint64(1)).astype(np.int64)
    for i in np.flatnonzero(first == 0):
        start = int(starts[i])
        numbers[i], width = read_long(data[start : start + LONGEST].tobytes(), 0)
        ends[i] = start + width
    return numbers, ends


def expand_ranges(starts: Words, counts: Words) -> Words:
    """Return the numbers of many ranges, one behind the other.

    Examples
    --------
    >>> expand_ranges(np.array([5, 9]), np.array([2, 3])).tolist()
    [5, 6, 9, 10, 11]
    """
    before = np.cumsum(counts) - counts
    places: Words = np.arange(int(counts.sum()), dtype=np.int64) + np.repeat(starts - before, counts)
    return places
