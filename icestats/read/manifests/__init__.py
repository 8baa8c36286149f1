"""Manifest lists and manifests: a snapshot's roll-ups and live files.

A snapshot's locations come in; one Arrow row a manifest, partition or file goes out. Entries with status DELETED
count only where they are asked for.
"""
