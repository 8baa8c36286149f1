"""The notebook layer of icestats."""
