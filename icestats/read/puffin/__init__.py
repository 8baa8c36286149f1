"""Puffin files: footers, blobs, and how old the statistics in them are.

Registered files come in; sketches and column statistics, with the snapshot that each was made for, go out. A blob of
another snapshot never counts as today's.
"""
