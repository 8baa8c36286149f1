"""Iceberg's basics: table metadata, types and the order of their values, row filters, storage, catalogs.

A name, a location or a filter comes in; metadata and predicates as frozen values, and bytes by location, go out.
Nothing here reads a manifest or changes a table.
"""
