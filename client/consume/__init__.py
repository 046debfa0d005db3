"""What all consumers share: assignment, ProcessQueue, offset stores, start offset, locks."""
