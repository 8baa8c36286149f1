"""What a bound filter says of groups of rows: manifests, files, row groups, partitions.

Predicates and the metrics of groups come in; for each group whether rows may match, whether all must, and why, go out.
A metric that is missing proves nothing.
"""
