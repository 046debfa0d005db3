"""Consumer offsets: commits, their fencing by epochs, marks of resets, and the offset file."""
