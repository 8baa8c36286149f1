"""Parquet's own metadata: footers, and what the pages of a column would take in memory.

Bytes from a table come in; checked figures go out. pyarrow ends the process on some damaged footers, and reads pages of
any size: nothing here does.
"""
