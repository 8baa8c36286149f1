"""The funnel: which manifests, files and row groups a scan with a filter reads, step by step, and why.

Metrics and a bound filter come in; a plan whose every skipped file has its reason goes out. A group that may hold a
matching row is never skipped.
"""
