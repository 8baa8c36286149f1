"""The filter as a person writes it: in comes text, out go what is wrong with it, what may follow, and what is asked."""
