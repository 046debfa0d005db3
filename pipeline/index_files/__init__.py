"""Key index files as jobs read and write them."""
