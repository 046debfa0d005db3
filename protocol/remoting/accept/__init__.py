"""Accepting connections: the listening socket, and the limit of connections."""
