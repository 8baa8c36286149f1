from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import icestats_widgets

NODE = Path(sys.executable).with_name("node")
FRONT_END = Path(__file__).parents[2] / "widgets" / "frontend"


def test_the_components_pass_their_own_tests():
    # Not to wait for timers of pages that the tests have left: 8 s for each file.
    command = [NODE, "--test", "--test-force-exit", "--test-reporter=spec", "test/*.test.js"]
    done = subprocess.run(command, cwd=FRONT_END, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_explorer_does_not_style_answers_of_other_cells():
    """Its style sheet is one of the page's: answers of `_repr_html_` were laid out in a row, a letter a line."""
    style = Path(icestats_widgets.__file__).with_name("static") / "explorer.css"
    assert "icestats-answer" not in style.read_text()
