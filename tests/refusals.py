"""What the kit says where it refuses: one short line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from icestats.errors import IcestatsError


def refused(ask: Callable[[], object], *words: str) -> None:
    with pytest.raises(IcestatsError) as caught:
        ask()
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 1_000
    for word in words:
        assert word in text
