"""`python -m icestats`: the command line."""

from __future__ import annotations

from icestats.cli.entry import main

if __name__ == "__main__":
    main()
