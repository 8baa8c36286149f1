"""Avro's numbers: of every width, as any reader has them, and none longer than 64 bits."""

from __future__ import annotations

import io

import fastavro
import numpy as np
import pytest

from icestats.read.avro.avro_tokens import LONGEST, decode_numbers, encode_tokens


def test_numbers_of_every_width_survive():
    numbers = np.array([0, -1, 63, 64, -65, 2**31, -(2**63), 2**63 - 1, 8191, 8192, 2**55 - 1, 2**55, 2**62], np.int64)
    nothing = np.zeros_like(numbers)
    data, ends = encode_tokens(numbers, nothing, nothing, np.zeros(0, np.uint8))
    stream = io.BytesIO(data.tobytes())
    schema = fastavro.parse_schema("long")
    assert [fastavro.schemaless_reader(stream, schema, None) for _ in numbers] == numbers.tolist()
    padded = np.concatenate([data, np.zeros(LONGEST, np.uint8)])
    found, behind = decode_numbers(padded, np.array([0, *ends[:-1]]))
    assert found.tolist() == numbers.tolist()
    assert behind.tolist() == ends.tolist()


@pytest.mark.parametrize(
    ("octets", "error"), [(b"\xff" * 10 + b"\x00", EOFError), (b"\xff" * 9 + b"\x7f", OverflowError)]
)
def test_a_number_that_is_too_long_is_refused(octets, error):
    with pytest.raises(error):
        decode_numbers(np.frombuffer(octets + bytes(LONGEST), np.uint8), np.array([0]))
