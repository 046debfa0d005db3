"""Transaction messages: half messages, how they end, and asking producers about them (B.14)."""
