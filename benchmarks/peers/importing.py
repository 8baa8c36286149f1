"""icestats: its import, up to what opens tables; the rest is imported when it is first named."""

from __future__ import annotations

import importlib

from benchmarks.peers.reporting import report

if __name__ == "__main__":
    report(lambda: importlib.import_module("icestats").load)
