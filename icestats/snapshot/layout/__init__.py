"""How well a table's metadata is clustered, what is wrong with it, and what maintenance would bring.

The metrics of all live files come in; overlaps, findings and statements of Spark SQL go out. No statement is run here.
"""
