"""What engines are told that do not read Iceberg's statistics, and what makes the others read them.

The figures of a table's columns come in, with their provenance; statements, settings, and calls of a Hive metastore go
out. No figure is made up here, and the Iceberg table is never changed.
"""
