"""Bytes to Arrow: manifest lists, manifests, Puffin and partition statistics files.

Locations come in; Arrow tables and sketches, each checked against the bytes that hold it, go out. Nothing here writes
to a table, and no data file is read.
"""
