"""The verbs of the command line, by subject as the facets of a table are."""
