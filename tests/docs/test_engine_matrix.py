"""The page of what engines use has the facts as they are."""

from __future__ import annotations

from scripts.engine_matrix import PAGE, read_page


def test_the_page_is_what_its_command_writes():
    text = PAGE.read_text()
    assert read_page(text) == text, "run: python scripts/engine_matrix.py"
    assert "| NDV | Theta sketch | Theta sketch |" in text
