"""What a table answers, by subject: the facets that `icestats.table.Table` is made of."""
