"""The compaction store: topics that keep the newest message of each key."""
