"""Consumer progress: commits, their fencing by epochs, pending resets, and writing them to disk."""
