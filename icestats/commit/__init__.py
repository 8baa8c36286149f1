"""Writing statistics files and registering them in a table's metadata.

Computed statistics come in; Puffin and partition statistics files, and metadata entries that a commit can prove and
take back, go out. No data file is read or written here, and nothing of anybody else's is lost.
"""
