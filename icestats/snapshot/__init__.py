"""One snapshot as it is read: each part once, for tables, plans, layouts and SQL.

An opened table comes in; what has been asked of its metadata goes out and is kept. Nothing is read before somebody
asks for it.
"""
