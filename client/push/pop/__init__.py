"""POP: the broker chooses the queues and keeps the progress; the client acknowledges each message."""
