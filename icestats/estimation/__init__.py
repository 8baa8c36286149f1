"""Estimates beside the truth: what each kind of statistics, and each engine, makes of a row filter.

A snapshot's statistics and a bound filter come in; estimates with their bounds and assumptions go out. Nothing here
decides what a scan reads: that is `snapshot`.
"""
