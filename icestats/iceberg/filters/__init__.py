"""Row filters: text or PyIceberg's expressions in, predicates bound to a schema and sets of values out.

Literals reach the column's type without being rounded or cut. Nothing here knows which values a file holds.
"""
