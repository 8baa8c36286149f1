"""Predicates as sets of values: what pruning, estimates and SQL texts share.

A bound filter comes in; sets of a column's values, intersected and united exactly, go out. Nothing here knows which
values a file holds.
"""
