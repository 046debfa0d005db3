"""Messages in and out of a store: append, read by offset, query by key, copy from a master."""
