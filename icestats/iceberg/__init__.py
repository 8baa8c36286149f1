"""Iceberg's own ground: table metadata, types and the order of their values, storage, catalogs.

A name or a location comes in; metadata as frozen values, and bytes by location, go out. Nothing here reads a
manifest, and nothing changes a table.
"""
