"""Builds consume queues, key index, time index and a Parquet copy from the log."""
