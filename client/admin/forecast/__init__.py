"""What brokers will do with a reset, by their modes and releases."""
