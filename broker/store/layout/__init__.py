"""Names and byte layouts of a store's files."""
