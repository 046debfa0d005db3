"""Messages as tests see them: payloads to send, messages to compare, deliveries to a listener."""
