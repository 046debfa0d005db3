"""The bytes that connections hold in a server: unfinished frames, unread responses, and their limits."""
