"""Transaction messages: half messages, how they end, and asking producers about them (``behaviour.md`` B.14)."""
