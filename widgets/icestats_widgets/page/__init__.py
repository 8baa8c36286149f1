"""The explorer's document: in come figures, tables and sentences; out go blocks for the page, HTML for a file.

Nothing here reads a table, and no text of a table becomes markup.
"""
