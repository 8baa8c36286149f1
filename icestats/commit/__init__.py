"""Writing Puffin files and registering them in a table's metadata."""
