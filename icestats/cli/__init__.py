"""The command line: the methods of `Table` as verbs.

Arguments come in; one answer goes to stdout, or one line of error to stderr. Nothing is computed here that `Table`
could not be asked for.
"""
