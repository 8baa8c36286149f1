"""Everything that needs a Spark session; pyspark is imported below here only, and only when used.

A snapshot and a request come in; sketches, statistics, estimates and rewritten manifests go out. No session that
somebody else started is stopped or reconfigured here.
"""
