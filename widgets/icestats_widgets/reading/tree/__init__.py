"""The manifest tree: in come a table and which rows are open, out go rows, read in parts; nothing here draws."""
