"""Consume queues, key index, time index and a Parquet copy, made from the log."""
