"""Files of a store: the disk seam, memory-mapped files, the lock."""
