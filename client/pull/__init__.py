"""The pull consumer: the application asks for messages and keeps the offsets."""
