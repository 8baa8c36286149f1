"""Estimates beside the truth: what each kind of statistics, and each engine, makes of a row filter."""
