"""The table that a person works with: one snapshot, and everything that its metadata can answer.

A name or location comes in; answers, computed statistics and commits with their previews go out. What an answer needs
is read and computed in the rooms below, not here.
"""
