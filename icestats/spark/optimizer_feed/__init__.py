"""Statistics for Spark's optimizer, through Iceberg's own scans.

A snapshot and what is known of it come in; a DataFrame comes out that reads it as Spark would, planned with these
statistics. Nothing is called back from the JVM, and nothing of this runs on executors.
"""
