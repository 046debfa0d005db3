"""What a job reads of a store: a consistent prefix of its log, and its queues."""
