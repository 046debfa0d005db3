"""The compaction store: keeps the newest message of each key of compaction topics."""
