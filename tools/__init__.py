"""Programs for those who work on RewindMQ."""
