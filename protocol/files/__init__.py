"""Files and folders that only their owner may read and write."""
