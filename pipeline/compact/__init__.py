"""Compaction: writes the newest message of each key, as a compaction store or as a new store."""
