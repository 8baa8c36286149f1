"""Scans of data files without a JVM: what will be read, and rows into accumulators and counts.

A snapshot, and often a filter, come in; scan tasks, accumulators and true counts go out. Nothing here starts Spark or
writes to a table.
"""
