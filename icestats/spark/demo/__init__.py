"""The embedded demo warehouse: two tables, built by PySpark once and then left alone.

A folder comes in; a SQLite catalog with `demo.events` and `demo.flights` goes out. A finished table is never written
again.
"""
