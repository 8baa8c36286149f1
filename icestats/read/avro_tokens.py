"""Avro's binary encoding, many values at a time: each is a token, a number of variable length and the bytes behind it.

NumPy only: numba takes longer to import than a few megabytes take to decode. Source: Avro 1.12 specification, "Binary
Encoding".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.int64]

_LONGEST = 10
"""Bytes of the longest number."""


def encode_tokens(numbers: Words, lengths: Words, parts: Sequence[bytes]) -> tuple[bytes, Words]:
    """Encode tokens one behind the other.

    Parameters
    ----------
    numbers : numpy.ndarray of int64
        The number of each token; of a string or of bytes, their length.
    lengths : numpy.ndarray of int64
        How many bytes stand behind each number: 0 where the token is just a number.
    parts : sequence of bytes
        These bytes, in order; joined they have the sum of `lengths`.

    Returns
    -------
    data : bytes
        The tokens.
    ends : numpy.ndarray of int64
        Where each token ends.

    Examples
    --------
    >>> data, ends = encode_tokens(np.array([-1, 2, 300]), np.array([0, 2, 0]), [b"ab"])
    >>> data.hex(), ends.tolist()
    ('01046162d804', [1, 4, 6])
    """
    words = ((numbers << 1) ^ (numbers >> 63)).astype(np.uint64)
    widths = np.ones(len(words), np.int64)
    for place in range(1, _LONGEST):
        widths += words >= np.uint64(1) << np.uint64(7 * place)
    ends = np.cumsum(widths + lengths)
    starts = ends - widths - lengths
    out = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
    chosen = np.arange(len(words))
    for place in range(_LONGEST):
        chosen = chosen[widths[chosen] > place]
        if not chosen.size:
            break
        more = (widths[chosen] > place + 1).astype(np.uint64) << np.uint64(7)
        part = (words[chosen] >> np.uint64(7 * place)) & np.uint64(0x7F)
        out[starts[chosen] + place] = (part | more).astype(np.uint8)
    behind = np.flatnonzero(lengths)
    if behind.size:
        out[expand_ranges(starts[behind] + widths[behind], lengths[behind])] = np.frombuffer(b"".join(parts), np.uint8)
    return out.tobytes(), ends


def decode_numbers(data: bytes) -> tuple[Words, Words]:
    """Decode data as if it were nothing but numbers.

    Returns
    -------
    numbers : numpy.ndarray of int64
        One for each byte that may end a number. Those inside of strings and bytes, and the first behind them, are
        meaningless; all others are right.
    ends : numpy.ndarray of int64
        The place of that byte.

    Examples
    --------
    >>> numbers, ends = decode_numbers(bytes.fromhex("01d804"))
    >>> numbers.tolist(), ends.tolist()
    ([-1, 300], [0, 2])
    """
    octets = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(octets < 0x80)
    starts = np.zeros_like(ends)
    starts[1:] = ends[:-1] + 1
    widths = np.minimum(ends - starts + 1, _LONGEST)
    words = np.zeros(len(ends), np.uint64)
    chosen = np.arange(len(ends))
    for place in range(_LONGEST):
        chosen = chosen[widths[chosen] > place]
        if not chosen.size:
            break
        words[chosen] |= (octets[starts[chosen] + place] & np.uint8(0x7F)).astype(np.uint64) << np.uint64(7 * place)
    numbers = (words >> np.uint64(1)).astype(np.int64) ^ -(words & np.uint64(1)).astype(np.int64)
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
