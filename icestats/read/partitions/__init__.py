"""Partition statistics files: reading one, and bringing an ancestor's up to date.

A registered file and the manifests of later commits come in; one row a partition goes out. A file that does not match
its snapshot is never added to.
"""
