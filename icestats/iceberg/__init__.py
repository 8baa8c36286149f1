"""Iceberg's basics: table metadata, types and the order of their values, storage, catalogs.

A name or a location comes in; metadata as frozen values, and bytes by location, go out. Nothing here reads a manifest
or changes a table.
"""
