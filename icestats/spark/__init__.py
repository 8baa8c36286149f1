"""Everything that needs a Spark session; pyspark is imported below here only, and only when used."""
