"""Ways to read a table's metadata, a module each: `python -m benchmarks.peers.NAME LOCATION` in a fresh process."""
