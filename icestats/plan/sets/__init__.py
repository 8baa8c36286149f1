"""Predicates as sets of values, and what they say of intervals and partitions.

A bound filter comes in; value sets, their projections to partition fields and the partitions that they select go out.
What cannot be proved is said to be unknown.
"""
