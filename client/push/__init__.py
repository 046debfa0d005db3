"""The push consumer: pulls messages and hands them to a listener."""
