"""Row filters, and what they rule out of a scan.

A filter and the metrics of manifests, files, row groups and partitions come in; what a scan must read, and why, goes
out. No data file is read here but its footer.
"""
