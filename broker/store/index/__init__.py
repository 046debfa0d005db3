"""The key index: which messages were sent under a key."""
