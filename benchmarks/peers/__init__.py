"""One way to read a table's metadata a module: `python -m benchmarks.peers.NAME LOCATION`, each in a process of its own."""
