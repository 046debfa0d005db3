"""Files of a store: the interface to the file system, memory-mapped files, the lock."""
