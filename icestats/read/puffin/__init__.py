"""Puffin files: footers, blobs, and how old the statistics in them are.

Registered files come in; sketches and column statistics, each with the snapshot that it was made for, go out. A blob
of an older snapshot is never passed off as current.
"""
