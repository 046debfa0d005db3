"""Many records at once: log segments as Arrow columns. The layout is ``protocol.message.record``'s."""
